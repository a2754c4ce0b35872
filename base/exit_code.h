#ifndef OPTRAIL_BASE_EXIT_CODE_H_
#define OPTRAIL_BASE_EXIT_CODE_H_

// The exit codes that a process of Optrail ends with; its caller is usually a
// CI script.
//
//   if (!status.ok()) {
//     std::cerr << "optrail: " << status.message() << "\n";
//     return ToInt(ExitCodeOf(status));
//   }

#include "absl/status/status.h"

namespace optrail {

enum class ExitCode {
  kOk = 0,
  kCheckFailed = 1,    // a regression or a failed check
  kBadInput = 2,       // wrong use, bad input, failed I/O
  kNotEnoughData = 3,  // can't tell
};

constexpr int ToInt(ExitCode code) { return static_cast<int>(code); }

// kOk for OK, else kBadInput: what a check finds is no error.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  return status.ok() ? ExitCode::kOk : ExitCode::kBadInput;
}

}  // namespace optrail

#endif  // OPTRAIL_BASE_EXIT_CODE_H_
