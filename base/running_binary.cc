#include "base/running_binary.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/hash.h"

namespace optrail {

namespace {

// The folder of the bundle whose loader runs this process; else empty. A
// program that a bundle's command line started sees the same environment.
std::string Bundle() {
  const char* const folder = std::getenv("OPTRAIL_BUNDLE");
  if (folder == nullptr) return "";
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return "";
  return std::string(self, static_cast<size_t>(length)) ==
                 JoinPath(folder, "lib/ld-linux-x86-64.so.2")
             ? folder
             : "";
}

}  // namespace

std::string RunningBinary() {
  const std::string bundle = Bundle();
  return bundle.empty() ? "/proc/self/exe" : JoinPath(bundle, "optrail");
}

const std::string& RunningBinaryFingerprint() {
  static const auto* const fingerprint = [] {
    const absl::StatusOr<std::string> contents =
        ReadFile(Bundle().empty() ? "/proc/self/exe"
                                  : JoinPath(Bundle(), "lib/optrail"));
    return new std::string(contents.ok() ? Fingerprint(*contents) : "");
  }();
  return *fingerprint;
}

}  // namespace optrail
