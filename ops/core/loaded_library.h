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
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  void* const handle_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_LOADED_LIBRARY_H_
