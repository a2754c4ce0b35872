# find_package(Optrail): the target Optrail::optrail, wherever this folder lies.
get_filename_component(_optrail_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Optrail::optrail)
  add_library(Optrail::optrail SHARED IMPORTED)
  set_target_properties(Optrail::optrail PROPERTIES
    IMPORTED_LOCATION "${_optrail_root}/lib/liboptrail.so.0"
    IMPORTED_SONAME "liboptrail.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_optrail_root}/include")
endif()
unset(_optrail_root)
