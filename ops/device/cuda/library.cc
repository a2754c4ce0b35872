#include "ops/device/cuda/library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optrail::ops::cuda {
namespace {

// Where the toolkit's installer puts them, which the loader may not look into.
constexpr const char* kFolders[] = {"", "/usr/local/cuda/lib64/"};

}  // namespace

absl::StatusOr<ToolkitLibrary> ToolkitLibrary::Open(
    const std::vector<std::string>& names) {
  std::string error;
  for (const char* folder : kFolders) {
    for (const std::string& name : names) {
      ToolkitLibrary library;
      library.name_ = name;
      library.handle_ =
          dlopen(absl::StrCat(folder, name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library.handle_ != nullptr) return library;
      if (error.empty()) error = dlerror();
    }
  }
  return absl::UnavailableError(
      absl::StrCat("unsupported here: ", absl::StrJoin(names, " or "),
                   " not found (", error, ")"));
}

absl::Status ToolkitLibrary::Find(const char* name, void** found) const {
  *found = dlsym(handle_, name);
  if (*found != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("unsupported here: ", name_, " has no function ", name));
}

}  // namespace optrail::ops::cuda
