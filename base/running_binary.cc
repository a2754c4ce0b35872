#include "base/running_binary.h"

#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/hash.h"

namespace optrail {

const std::string& RunningBinaryFingerprint() {
  static const auto* const fingerprint = [] {
    const absl::StatusOr<std::string> contents = ReadFile("/proc/self/exe");
    return new std::string(contents.ok() ? Fingerprint(*contents) : "");
  }();
  return *fingerprint;
}

}  // namespace optrail
