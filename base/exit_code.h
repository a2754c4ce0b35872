#ifndef OPTRAIL_BASE_EXIT_CODE_H_
#define OPTRAIL_BASE_EXIT_CODE_H_

// What a process of Optrail tells its caller, usually a CI script.
//
//   if (!status.ok()) {
//     std::cerr << "optrail: " << status.message() << "\n";
//     return ToInt(ExitCodeOf(status));
//   }

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace optrail {

enum class ExitCode {
  kOk = 0,
  kCheckFailed = 1,    // a regression or a failed check
  kBadInput = 2,       // wrong use, bad input, failed I/O
  kNotEnoughData = 3,  // can't tell
};

constexpr int ToInt(ExitCode code) { return static_cast<int>(code); }

// An error that means kCheckFailed, and one that means kNotEnoughData.
absl::Status CheckFailedError(absl::string_view message);
absl::Status NotEnoughDataError(absl::string_view message);

// kOk for OK, what the two above say for their errors, else kBadInput.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace optrail

#endif  // OPTRAIL_BASE_EXIT_CODE_H_
