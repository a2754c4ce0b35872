#ifndef OPTRAIL_TRACKER_AB_AB_COMMAND_H_
#define OPTRAIL_TRACKER_AB_AB_COMMAND_H_

// `optrail compare --binaries` and `--commits` as functions, for the command
// line to fill from flags (command_support.h says how).
//
//   AbCommand options;
//   options.a = "old_benchmark"; options.b = "new_benchmark";
//   absl::StatusOr<int> exit_code = RunCompareBinaries(options, std::cout);
//
// Exit codes: 0 nothing is worse, 1 something is slower, crashed or missing,
// 3 it can't tell after all rounds. A Status is an error: exit 2.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

struct AbCommand {
  CommonOptions common;
  // Binaries that take Google Benchmark's flags; or, for RunCompareCommits,
  // names of commits. A is the base.
  std::string a, b;
  std::string target;             // of commits: "//path:benchmark"
  std::vector<std::string> args;  // for both programs
  std::string filter;             // RE2 on benchmark names
  std::string metric = "time";    // RE2
  double min_effect = .03;
  double detect_effect = .05;
  double false_alarm_rate = .01;
  int max_rounds = 40;
  uint64_t seed = 1;
  absl::Duration deadline = absl::Minutes(10);  // of one process
  absl::Duration build_deadline = absl::Hours(1);
  bool only_changes = false;
  bool quiet = false;  // no progress
};

absl::StatusOr<int> RunCompareBinaries(const AbCommand& options,
                                       std::ostream& out);

absl::StatusOr<int> RunCompareCommits(const AbCommand& options,
                                      std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_AB_COMMAND_H_
