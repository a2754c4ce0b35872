#ifndef OPTRAIL_OPS_CORE_LOADED_LIBRARY_H_
#define OPTRAIL_OPS_CORE_LOADED_LIBRARY_H_

// A shared object that was compiled at run time, loaded from memory.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto library,
//                            LoadedLibrary::Load(artifact.bytes));
//   auto* const run = reinterpret_cast<Run*>(library->Symbol("run"));

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::ops {

class LoadedLibrary {
 public:
  // ResourceExhausted without memory, Internal for what cannot be loaded.
  static absl::StatusOr<std::unique_ptr<LoadedLibrary>> Load(
      absl::string_view bytes);
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  // nullptr if there is none of that name.
  void* Symbol(const char* name) const;

 private:
  LoadedLibrary(void* handle, int fd) : handle_(handle), fd_(fd) {}
  void* const handle_;
  // Open as long as the library is there: its number is part of the name by
  // which the loader would take another library for this one.
  const int fd_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_LOADED_LIBRARY_H_
