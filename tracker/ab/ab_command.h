#ifndef OPTRAIL_TRACKER_AB_AB_COMMAND_H_
#define OPTRAIL_TRACKER_AB_AB_COMMAND_H_

// `optrail compare --binaries` and `--commits`, and `optrail gate` where it is
// to measure itself, as functions for the command line to fill from flags.
//
//   AbCommand options;
//   options.a = "old_benchmark"; options.b = "new_benchmark";
//   absl::StatusOr<int> exit_code = RunCompareBinaries(options, std::cout);
//
// Exit codes: 0 nothing is worse, 1 something is slower, crashed or missing,
// 3 it can't tell after all rounds. With a policy, what that makes of it. A
// Status is an error: exit 2.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tracker/checkout/commit_builder.h"
#include "tracker/command/command_support.h"
#include "tracker/notify/notify.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

struct AbCommand {
  CommonOptions common;
  // Binaries that take Google Benchmark's flags; or names of commits. A is the
  // base. RunGateCommits takes an empty A for the merge base of B and
  // `base_branch`, and its parent where B is that merge base itself.
  std::string a, b;
  std::string base_branch;  // "": origin/main, main, origin/master or master
  // For commits: what is built and run; `trees` and `quiet` are filled in. For
  // binaries: `args` and `deadline`.
  BuildOptions build;

  std::string filter;           // RE2 on benchmark names
  std::string metric = "time";  // RE2
  double min_effect = .03;
  double detect_effect = .05;
  double false_alarm_rate = .01;
  int max_rounds = 40;
  uint64_t seed = 1;
  bool only_changes = false;
  bool quiet = false;  // no progress

  // Judge by a policy instead of by the four numbers above: its file, "" for
  // the default policy.
  absl::optional<std::string> policy;
  GateOutputs outputs;             // without a policy only markdown_out
  std::vector<std::string> notes;  // of the gate, before those of its own

  // Lines on how the code of two programs, or of all programs below two
  // folders, differs, given what `git diff -U0` prints. It is asked where
  // something is worse. May be null.
  std::function<std::vector<std::string>(const std::string& before,
                                         const std::string& after,
                                         const std::string& source_diff)>
      code_difference;

  // Add both sides to the history as runs that belong together.
  bool record = false;
  std::string suite;  // "": as the results say
  // Of this machine; without an id, what the results say.
  proto::Hardware hardware;
};

absl::StatusOr<int> RunCompareBinaries(const AbCommand& options,
                                       std::ostream& out);

absl::StatusOr<int> RunCompareCommits(const AbCommand& options,
                                      std::ostream& out);

// The same, by a policy: the default one where none is named.
absl::StatusOr<int> RunGateCommits(AbCommand options, std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_AB_COMMAND_H_
