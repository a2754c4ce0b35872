#ifndef OPTRAIL_TRACKER_BISECT_BISECT_COMMAND_H_
#define OPTRAIL_TRACKER_BISECT_BISECT_COMMAND_H_

// `optrail bisect` as a function, for the command line to fill from flags
// (tracker/command/command_support.h says how).
//
// It builds at GOOD and BAD, compares the two interleaved, takes the
// benchmark that is most surely slower, and searches the commits between by
// noisy_bisection.h. Exit codes: 0 found, 3 not sure, or nothing is slower.

#include <cstdint>
#include <iosfwd>
#include <string>

#include "absl/status/statusor.h"
#include "tracker/bisect/looks.h"
#include "tracker/checkout/commit_builder.h"
#include "tracker/checkout/worktree.h"
#include "tracker/command/command_support.h"

namespace optrail::tracker {

// One measurement in place of a search, printed as a line of JSON (looks.h), as
// a machine of a fleet is asked for it: GOOD and BAD as at the beginning of a
// search, or `rounds` rounds of them.
enum class BisectLook { kNone, kEnds, kCommit };

struct BisectCommand {
  CommonOptions common;
  std::string good, bad;  // names of commits
  // What is built and run; `trees` and `quiet` are filled in.
  BuildOptions build;
  std::string filter;           // RE2 on benchmark names
  std::string metric = "time";  // RE2
  double min_effect = .03;
  double false_alarm_rate = .01;  // of GOOD against BAD
  int max_rounds = 40;            // of GOOD against BAD
  int rounds = 6;                 // of each measurement in between
  double confidence = .98;        // that the commit is the one
  uint64_t seed = 1;
  bool quiet = false;
  BisectLook look = BisectLook::kNone;
};

absl::StatusOr<int> RunBisect(const BisectCommand& options, std::ostream& out);

// The same with another place to measure, by which `build`, `filter`, `metric`
// and the rounds of the ends go.
absl::StatusOr<int> RunBisectBy(const BisectCommand& options,
                                const Worktrees& trees, Looks& looks,
                                std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_BISECT_COMMAND_H_
