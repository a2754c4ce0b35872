#ifndef OPTRAIL_TUNING_SESSION_RESULTS_H_
#define OPTRAIL_TUNING_SESSION_RESULTS_H_

// The results of a session: the one account of which configs count, with which
// values, for the console, the reports and the findings.
//
//   const std::vector<Result> results = ResultsOf(session);
//   for (const int i : FrontOf(ObjectivesOf(session), results)) ...

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// A config that worked, within the limits of the objectives.
struct Result {
  int trial = 0;  // in the session's trials
  // One for each objective. If the config was read again, these are the
  // verified values: the reading that made it a finalist is a lucky one.
  std::vector<absl::optional<double>> values;
  bool verified = false;
  int readings = 1;
};

// The time that a session spent on choosing configs and waiting, and the time
// by which its trials overlapped. At least one of them is 0.
int64_t WaitedNs(const proto::SessionTime& time);
int64_t OverlapNs(const proto::SessionTime& time);

// In the order of trials, without configs that failed when they were read
// again.
std::vector<Result> ResultsOf(const proto::Session& session);

// The session's proof in a sentence that names what was compared:
// "proven: 22.4% better than the default in time (20.8% to 24.0%, 44 paired
// rounds)", "no gain is proven, the default stays: tile=8 is 7.2% worse than it
// in time (...)", "the default is beyond m<=8 and may not win; the best config
// within is ...".
std::string ProofText(const proto::Session& session);

// Why a session has neither a winner nor a front.
enum class NoWinner {
  kHasOne,         // it has a winner, or its objectives name none
  kNothingWorked,  // no config gave a result
  kBeyondLimits,   // configs worked, all of them beyond the limits
  kBusy,           // the machine was too busy to run a finalist again
  kFailedAgain,    // finalists failed when they were run again
  kNotRunAgain,    // the session ended before it chose finalists
  kMayNotWin,      // the session wants more: batch-invariant results, say
};

NoWinner WhyNoWinner(const proto::Session& session);

// A few words for a table: "no config works", "machine too busy"; "" for
// kHasOne.
const char* NoWinnerName(NoWinner why);

// The same in a sentence: "no config is within m<=3: the nearest is b=2 with m
// 8", "no config worked: b=2 failed when it was run again: CRASHED, exit code
// 7"; "" for kHasOne.
std::string NoWinnerText(const proto::Session& session);

// One sentence for each finalist that could not be read: "b=2 failed when it
// was run again: CRASHED, exit code 7", "the machine was too busy to measure
// b=2 again".
std::vector<std::string> FinalistFailures(const proto::Session& session);

// The results that no other one beats in every objective, the best in the first
// objective first; indices of `results`. A result with an unknown value does
// not compare and is left out.
std::vector<int> FrontOf(const std::vector<proto::Objective>& objectives,
                         const std::vector<Result>& results);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_RESULTS_H_
