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
  // One an objective. Verified ones where it was read again: the reading that
  // made it a finalist is a lucky one and does not count.
  std::vector<absl::optional<double>> values;
  bool verified = false;
  int readings = 1;
};

// The time that a session spent on choosing configs and waiting, and the time
// by which its trials overlapped. At least one of them is 0.
int64_t WaitedNs(const proto::SessionTime& time);
int64_t OverlapNs(const proto::SessionTime& time);

// In the order of trials. A config that failed when it was read again is none.
std::vector<Result> ResultsOf(const proto::Session& session);

// The session's proof in a sentence that names what was compared:
// "proven: 22.4% better than the default in time (20.8% to 24.0%, 44 paired
// rounds)", "no gain is proven, the default stays: tile=8 is 7.2% worse than it
// in time (...)", "the default is beyond m<=8, and this is the best within it:
// ...".
std::string ProofText(const proto::Session& session);

// Says why a session whose objectives name a winner has none: "no config is
// within m<=3: the nearest is b=2 with m 8", "no config worked: b=2 failed when
// it was run again: CRASHED, exit code 7"; "" if it has one.
std::string NoWinnerText(const proto::Session& session);

// Those that no other beats in every objective, the best in the first
// objective first; indices of `results`. Of which a value is unknown, they do
// not compare and are no part of it.
std::vector<int> FrontOf(const std::vector<proto::Objective>& objectives,
                         const std::vector<Result>& results);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_RESULTS_H_
