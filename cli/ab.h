#ifndef OPTRAIL_CLI_AB_H_
#define OPTRAIL_CLI_AB_H_

// What `optrail compare` does where A and B are to be run, not read.

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "tracker/ab/ab_command.h"

ABSL_DECLARE_FLAG(bool, binaries);
ABSL_DECLARE_FLAG(bool, commits);
ABSL_DECLARE_FLAG(bool, record);
ABSL_DECLARE_FLAG(int32_t, max_rounds);
ABSL_DECLARE_FLAG(uint64_t, seed);

namespace optrail::cli {

// What is built and run: --target, --build, --run and their deadlines, `args`
// are those of the target's program.
absl::StatusOr<tracker::BuildOptions> BuildOptionsFromFlags(
    const std::vector<std::string>& args);
std::vector<std::string> BuildFlags();

// Whether the flags say what to run.
bool HasRunCommand();

// --suite, or what the suite of --run is called.
std::string SuiteOfRuns();

absl::StatusOr<proto::Hardware> ThisMachine();
// This machine, with --hardware as its id if that is given.
absl::StatusOr<proto::Hardware> HardwareOfRuns();

// `options` holds what all comparisons share; the rest comes from the flags
// above and the arguments A B [ARGUMENT...].
absl::StatusOr<int> CompareByRunning(tracker::AbCommand options,
                                     const std::vector<std::string>& arguments,
                                     bool commits);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_AB_H_
