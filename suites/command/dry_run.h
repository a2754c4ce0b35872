#ifndef OPTRAIL_SUITES_COMMAND_DRY_RUN_H_
#define OPTRAIL_SUITES_COMMAND_DRY_RUN_H_

// `tune --dry_run`: the tasks that the same call without it would tune, and
// every setting with its value, its default and where it comes from. It opens
// no device, measures nothing and writes nothing.
//
//   if (absl::GetFlag(FLAGS_dry_run)) {
//     return DryRunTune(op, std::cout, std::cerr);
//   }
//
// Reads the flags, like the command itself, and the same errors come of them.
// Exit code 0.

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "suites/preset/preset.h"
#include "suites/tune/operator_shares.h"
#include "suites/tune/tune_driver.h"
#include "suites/workload/tasks.h"

namespace optrail::suites {

// --preset, found and applied to what is no flag: its shares. An empty one
// without the flag. InvalidArgument for shares without a total to divide.
absl::StatusOr<Preset> PresetFromFlags(TuneDriverOptions* options);

// The preset's shares of these tasks. InvalidArgument with the preset's line
// where they leave nothing for one.
absl::StatusOr<OperatorShares> SharesOf(const Preset& preset,
                                        const std::vector<TaskEntry>& tasks);

// A line that says what the preset sets, "" without one.
std::string PresetText(const Preset& preset);

// `op` as of TuneCommand.
absl::StatusOr<int> DryRunTune(const std::string& op, std::ostream& out,
                               std::ostream& notes);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_DRY_RUN_H_
