#include "ops/core/loaded_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optrail::ops {

absl::StatusOr<std::unique_ptr<LoadedLibrary>> LoadedLibrary::Load(
    absl::string_view bytes) {
  // A file without a name: nobody can change it, and nothing stays behind.
  const int fd = memfd_create("optrail-code", MFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memfd_create: ", std::strerror(errno)));
  }
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    if (n <= 0) {
      close(fd);
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write compiled code: ", std::strerror(errno)));
    }
    written += static_cast<size_t>(n);
  }
  void* const handle =
      dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string why = dlerror();
    close(fd);
    return absl::InternalError(
        absl::StrCat("cannot load what was compiled: ", why));
  }
  return std::unique_ptr<LoadedLibrary>(new LoadedLibrary(handle, fd));
}

LoadedLibrary::~LoadedLibrary() {
  dlclose(handle_);
  close(fd_);
}

void* LoadedLibrary::Symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace optrail::ops
