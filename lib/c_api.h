#ifndef OPTRAIL_LIB_C_API_H_
#define OPTRAIL_LIB_C_API_H_

// Helpers that the functions of optrail.h share: statuses with their messages,
// and structs of programs that were built with an older or a newer header.
//
//   optrail_status optrail_store_open(const char* path, optrail_store** out) {
//     return Guarded([&]() -> absl::Status {
//       OPTRAIL_RETURN_IF_ERROR(NotNull(out, "store"));
//       ...
//       return absl::OkStatus();
//     });
//   }

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/optrail.h"

namespace optrail::lib {

// Keeps the message for optrail_message() of this thread.
optrail_status Report(const absl::Status& status);
optrail_status Report(optrail_status status, const char* message);

// Runs `body`; what it throws becomes a status.
template <class Body>
optrail_status Guarded(const Body& body) noexcept {
  try {
    const absl::Status status = body();
    if (status.ok()) return OPTRAIL_OK;
    return Report(status);
  } catch (const std::bad_alloc&) {
    return Report(OPTRAIL_OUT_OF_MEMORY, "memory could not be had");
  } catch (const std::exception& error) {
    return Report(OPTRAIL_INTERNAL, error.what());
  } catch (...) {
    return Report(OPTRAIL_INTERNAL, "an exception of unknown type");
  }
}

inline absl::Status NotNull(const void* pointer, absl::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

// Copies a caller's struct: fields that its header did not have are 0.
// InvalidArgument where struct_size was not set, and for fields of a newer
// header that are not 0.
template <class Struct>
absl::Status ReadStruct(const Struct* from, absl::string_view name,
                        Struct* to) {
  if (absl::Status null = NotNull(from, name); !null.ok()) return null;
  const size_t size = from->struct_size;
  if (size <= sizeof(size_t)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, "->struct_size is ", size, ", expected ", sizeof(Struct),
        ": initialise the struct with the _INIT macro of its type"));
  }
  *to = Struct();
  std::memcpy(static_cast<void*>(to), from, std::min(size, sizeof(Struct)));
  const char* const bytes = reinterpret_cast<const char*>(from);
  for (size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " has a field that this library does not know (byte ", i,
          " of ", size, "): the program was built for a newer one"));
    }
  }
  return absl::OkStatus();
}

// The fields that the caller's header has; struct_size stays.
template <class Struct>
absl::Status WriteStruct(const Struct& from, absl::string_view name,
                         Struct* to) {
  if (absl::Status null = NotNull(to, name); !null.ok()) return null;
  const size_t size = to->struct_size;
  if (size <= sizeof(size_t)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, "->struct_size is ", size, ", expected ", sizeof(Struct),
        ": initialise the struct with the _INIT macro of its type"));
  }
  std::memcpy(static_cast<void*>(to), &from, std::min(size, sizeof(Struct)));
  to->struct_size = size;
  return absl::OkStatus();
}

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_C_API_H_
