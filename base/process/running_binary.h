#ifndef OPTRAIL_BASE_PROCESS_RUNNING_BINARY_H_
#define OPTRAIL_BASE_PROCESS_RUNNING_BINARY_H_

// Which program this process is: how to start it again, and its contents, which
// tell two builds of one commit apart.
//
//   Subprocess::Start({RunningBinary(), "--worker"});
//   run.mutable_settings()->set_binary_fingerprint(
//       RunningBinaryFingerprint());

#include <string>

namespace optrail {

// /proc/self/exe, which is the program as it was started, also when its file
// was replaced since. The command line of a bundle (cli/bundle.sh) is started
// by the bundle's own loader, and /proc/self/exe is that: then the launcher.
std::string RunningBinary();

// Fingerprint (hash.h) of the program; "" where it can't be read.
// Shared libraries are not covered. Computed at the first call (it reads the
// file: about two milliseconds per MiB), kept for the process.
const std::string& RunningBinaryFingerprint();

// Tells this program from another one as surely, and at once: the build id by
// which the linker marks what it made, in hexadecimal digits. A program without
// one gets the fingerprint.
const std::string& RunningBuildId();

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_RUNNING_BINARY_H_
