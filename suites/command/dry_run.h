#ifndef OPTRAIL_SUITES_COMMAND_DRY_RUN_H_
#define OPTRAIL_SUITES_COMMAND_DRY_RUN_H_

// `tune --dry_run`: the tasks that the same call without it would tune, and
// every setting with its value, its default and where it comes from. It opens
// no device, measures nothing and writes nothing.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const TunePlan plan,
//                            MakeTunePlan(op, preset, dry_run, std::cerr));
//   if (dry_run) return DryRunTune(plan, op, std::cout, std::cerr);
//
// The command and its dry run have one plan, so wrong flags get the same errors
// from both. Only the command finds out what takes an open device (which meters
// it has) or a write (whether the folders take one). Exit code 0.

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "suites/preset/preset.h"
#include "suites/proto/workload.pb.h"
#include "suites/tune/operator_shares.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/store/bucket.h"

namespace optrail::suites {

// A TunePlan says what a call of `tune` is to do by its flags and preset.
struct TunePlan {
  Preset preset;  // empty without --preset
  proto::Workload workload;
  TaskSelection selection;
  TuneDriverOptions options;
  RunContext context;
  absl::optional<tuning::Bucket> range;  // --shape is a range
  std::vector<TaskEntry> tasks;          // of a range: those of its first shape
  OperatorShares shares;
};

// `op` as of TuneCommand. `preset`: what --preset names, as the command line
// read it. A dry run opens no device. InvalidArgument for flags that do not go
// together, such as shares without a total to divide; the line of the preset
// is named where its shares leave nothing for a task.
absl::StatusOr<TunePlan> MakeTunePlan(const std::string& op,
                                      const Preset& preset, bool dry_run,
                                      std::ostream& notes);

// A line that says what the preset sets, "" without one.
std::string PresetText(const Preset& preset);

// `op` as of TuneCommand.
absl::StatusOr<int> DryRunTune(const TunePlan& plan, const std::string& op,
                               std::ostream& out, std::ostream& notes);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_COMMAND_DRY_RUN_H_
