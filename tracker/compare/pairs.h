#ifndef OPTRAIL_TRACKER_COMPARE_PAIRS_H_
#define OPTRAIL_TRACKER_COMPARE_PAIRS_H_

// Judges a row by rounds in which both sides were measured in turn: what the
// machine does to both cancels in their ratio.
//
//   const PairedLogs pairs = PairsOf(baseline, candidate);
//   JudgePairs(pairs.at(PriorKey(row.key, row.metric)), test, tests, &row);
//
// The test is base/paired_test.h's and may be looked at after every round.

#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/paired_test.h"
#include "tracker/compare/compare.h"

namespace optrail::tracker {

// PriorKey -> log(candidate / baseline) of each round that has both.
using PairedLogs = std::map<std::string, std::vector<double>>;

// The rounds of runs with a pairing id that both sides share; nullopt if a run
// has none or was not measured in turn with one of the other side.
absl::optional<PairedLogs> PairsOf(
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate);

// Sets verdict, reason, ratio and what follows. `test.false_alarm_rate` is the
// row's share of the comparison's, one of `tests`. Returns the rounds at which
// it is expected to be clear, at most `most_rounds`.
int JudgePairs(absl::Span<const double> log_ratios,
               const PairedTestOptions& test, int tests, int most_rounds,
               Row* row);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_PAIRS_H_
