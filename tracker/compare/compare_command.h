#ifndef OPTRAIL_TRACKER_COMPARE_COMPARE_COMMAND_H_
#define OPTRAIL_TRACKER_COMPARE_COMPARE_COMMAND_H_

// `optrail compare` of what is recorded, as a function, for the command line to
// fill from flags (tracker/command/command_support.h says how commands answer).
// Programs and commits that are still to be run are tracker/ab's.
//
//   CompareCommand options;
//   options.common.history = ".optrail/history";
//   options.a = "latest~1"; options.b = "latest";
//   absl::StatusOr<int> exit_code = RunCompare(options, std::cout);

#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

struct CompareCommand {
  CommonOptions common;
  // Runs or commits in the history, or files of another tool's results. Several
  // comma-separated files are processes of one run.
  std::string a = "latest~1";
  std::string b = "latest";
  // Restrict what is in the history; with "" each suite and hardware that both
  // sides have is compared.
  std::string suite;
  std::string hardware_id;
  proto::Hardware machine;      // this one, for files: see MachineIds
  std::string filter;           // RE2 on benchmark names
  std::string metric = "time";  // RE2
  double min_effect = .03;
  double detect_effect = .05;
  double false_alarm_rate = .01;
  bool only_changes = false;
};
// Exit code 0 however times differ; 1 if a benchmark fails in B alone; else 3
// if it can tell for no benchmark, or if A or B is damaged.
absl::StatusOr<int> RunCompare(const CompareCommand& options,
                               std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_COMPARE_COMMAND_H_
