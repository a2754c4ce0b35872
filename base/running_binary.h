#ifndef OPTRAIL_BASE_RUNNING_BINARY_H_
#define OPTRAIL_BASE_RUNNING_BINARY_H_

// Which program this process is, by its contents: tells two builds of one
// commit apart.
//
//   run.mutable_settings()->set_binary_fingerprint(
//       RunningBinaryFingerprint());

#include <string>

namespace optrail {

// Fingerprint (hash.h) of /proc/self/exe, which is the program as it was
// started, also when its file was replaced since; "" where it can't be read.
// Shared libraries are not covered. Computed at the first call (it reads the
// file: about two milliseconds per MiB), kept for the process.
const std::string& RunningBinaryFingerprint();

}  // namespace optrail

#endif  // OPTRAIL_BASE_RUNNING_BINARY_H_
