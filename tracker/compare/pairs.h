#ifndef OPTRAIL_TRACKER_COMPARE_PAIRS_H_
#define OPTRAIL_TRACKER_COMPARE_PAIRS_H_

// Judges rows by rounds in which both sides were measured in turn: what the
// machine does to both cancels in their ratio.
//
//   const absl::optional<PairedRounds> pairs =
//       PairsOf(baseline, candidate, compared);
//   if (pairs.has_value()) DecidePairs(*pairs, options, rows);
//
// The test is base/stats/paired_test.h's and may be looked at after every
// round, so whoever schedules rounds asks Compare() after each of them.

#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/compare/compare.h"
#include "tracker/compare/decision.h"

namespace optrail::tracker {

// The evidence of the rounds on one benchmark and metric.
struct PairedBenchmark {
  // log(candidate / baseline) of each round that has both.
  std::vector<double> log_ratios;
  // The same of median over fastest sample and of upper quartile over fastest;
  // empty where a process has too few samples.
  std::vector<double> median_shifts, upper_shifts;
  double log_candidate = 0;  // the level of the candidate
  bool of_fastest = false;   // see Ratio
  int one_sided = 0;         // rounds that only one side has
};

// By PriorKey of the candidate.
using PairedRounds = std::map<std::string, PairedBenchmark>;

// The rounds of runs with a pairing id that both sides share; nullopt if a run
// has none or was not measured in turn with one of the other side.
absl::optional<PairedRounds> PairsOf(
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate,
    const ComparedRows& compared);

// Where both sides are of one commit each and hold runs that were measured in
// pairs with each other, and these have all benchmarks of their side, takes the
// other runs away: they tell less. Returns the note of that; "" if no run was
// taken away.
std::string KeepPairs(std::vector<const proto::Run*>* baseline,
                      std::vector<const proto::Run*>* candidate);

// "worse by at most 3.9%". Such a row excludes a worsening, which says little
// of the one that would be found: where that is far more, the text says how
// much more. Neighbours only slow down, so a run that is as fast as ever
// excludes a worsening even where a slow one would be taken for one of many bad
// runs.
std::string UnchangedText(const Row& row, bool is_for_bad_runs);

// Sets verdict, reason, ratio and what follows of each row.
void DecidePairs(const PairedRounds& pairs, const CompareOptions& options,
                 const std::vector<Row*>& rows);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_PAIRS_H_
