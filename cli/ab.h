#ifndef OPTRAIL_CLI_AB_H_
#define OPTRAIL_CLI_AB_H_

// What `optrail compare` does where A and B are to be run, not read.

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/ab/ab_command.h"

ABSL_DECLARE_FLAG(bool, binaries);
ABSL_DECLARE_FLAG(bool, commits);
ABSL_DECLARE_FLAG(std::string, target);
ABSL_DECLARE_FLAG(int32_t, max_rounds);
ABSL_DECLARE_FLAG(absl::Duration, process_deadline);
ABSL_DECLARE_FLAG(absl::Duration, build_deadline);
ABSL_DECLARE_FLAG(uint64_t, seed);

namespace optrail::cli {

// --process_deadline and --build_deadline.
absl::Status CheckDeadlines();

// `options` holds what all comparisons share; the rest comes from the flags
// above and the arguments A B [ARGUMENT...].
absl::StatusOr<int> CompareByRunning(tracker::AbCommand options,
                                     const std::vector<std::string>& arguments,
                                     bool commits);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_AB_H_
