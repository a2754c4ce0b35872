#ifndef OPTRAIL_TRACKER_COMPARE_COMPARE_H_
#define OPTRAIL_TRACKER_COMPARE_COMPARE_H_

// Compare judges every benchmark of two sets of runs on one hardware.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Comparison c,
//                            Compare({&base_run}, {&candidate_run}, {}));
//   for (const Row& row : c.rows) std::cout << row.name << row.reason << "\n";
//
// The chance that a comparison of identical code calls anything slower is at
// most `false_alarm_rate`, over all its benchmarks together
// (Benjamini-Hochberg; docs/method/gating.md). The sources of noise are
// learned from `history` (noise_model.h); sides that were measured interleaved
// are judged as pairs (pairs.h).
//
// It knows no policy, no exit code and no history: see gate.h.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/noise_model.h"
#include "tracker/compare/ratio.h"
#include "tracker/compare/verdict.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/measurement_settings.pb.h"

namespace optrail::tracker {

// The limits for one benchmark. Effects are relative: .03 is 3%.
struct Threshold {
  // Overrides what the metric says of itself.
  proto::Direction direction = proto::DIRECTION_UNSPECIFIED;
  double min_effect = .03;     // smaller changes are never called a change
  double detect_effect = .05;  // what must be found for "unchanged"
};

struct CompareOptions {
  double false_alarm_rate = .01;  // of the whole comparison
  // How often it may be asked while processes are added: the looks share the
  // rate, and 1 - power. Pairs pay for their looks themselves.
  int looks = 1;
  // Pairs are not decided before that many rounds.
  int min_rounds = 5;
  // With which a worsening of detect_effect, of whichever benchmark, is not
  // called unchanged.
  double power = .95;
  double confidence = .95;  // of the intervals shown
  int min_processes = 2;    // per side
  // Benchmark and metric -> what it is held to. Metrics for which it returns
  // nullopt are left out. Null: time only, by `effects`.
  std::function<absl::optional<Threshold>(absl::string_view name,
                                          absl::string_view metric)>
      threshold;
  Threshold effects;
  // Runs that noise is learned from, beside those of the baseline: of the same
  // suite, hardware, toolchain and settings. Those of the sides don't count
  // twice.
  std::vector<const proto::Run*> history;
  // What the level of a run may be off by if it was measured differently than
  // the candidate: a standard deviation of the logarithm. A longer look alone
  // finds faster samples.
  double settings_error = .02;
  // The baseline is a window over a history: see Panel::window.
  bool window = false;
  // Benchmark and metric -> the id of the first run that may count as its
  // baseline, because a change before it is known; "" for any. Null: any.
  std::function<std::string(const proto::BenchmarkKey& key,
                            absl::string_view metric)>
      level_start;
  // For evaluations, which leave one out.
  NoiseTerms terms;
};

// "<canonical benchmark>|<metric>".
std::string PriorKey(const proto::BenchmarkKey& key, absl::string_view metric);

// One side of a row.
struct Side {
  std::vector<std::string> run_ids;
  proto::Commit commit;                                 // of the last run
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;  // the worst
  std::string detail;
  std::map<proto::Outcome, int> outcomes;  // of its runs
  std::string config;
  std::string kernel_id;
  int processes = 0;
  bool aggregate_only = false;
  absl::optional<double> value;  // median of process medians
  // How its last run that tells was measured.
  proto::MeasurementSettings settings;
};

struct Row {
  proto::BenchmarkKey key;
  std::string name;  // DisplayName(key)
  std::string metric;
  std::string unit;
  proto::Direction direction = proto::LOWER_IS_BETTER;

  Side baseline;
  Side candidate;

  Verdict verdict = Verdict::kCannotTell;
  std::string reason;        // one sentence
  std::string renamed_from;  // kRenamed
  // What differs in how the sides were measured, "" if nothing is known to:
  // "min sample 100 us -> 500 us". The verdict stands all the same.
  std::string measured_differently;

  absl::optional<Ratio> ratio;  // candidate / baseline
  // kSlowerInMostSamples is about this, candidate / baseline of the samples or
  // runs that became slower, where `ratio` is that of the others.
  struct Slower {
    double ratio = 1;
    std::string of;  // "median samples"
  };
  absl::optional<Slower> slower;
  // Ids of the runs of the baseline that the ratio is of; empty: all of them.
  // `baseline` holds these alone.
  std::set<std::string> used_runs;
  int unused_runs = 0;  // those of the baseline that the ratio is not of
  int rounds = 0;       // that both sides have; 0 if not in pairs
  // How much worse (+) or better (-): ratio - 1 for LOWER_IS_BETTER, else
  // 1 / ratio - 1.
  double worse_by = 0;
  double adjusted_p = 1;  // for worse, Benjamini-Hochberg over all rows
  Threshold threshold;
  // The smallest worsening that this comparison finds with the stated power.
  absl::optional<double> minimum_detectable_effect;
  // Returns whether that is far more than what must be excluded.
  bool DetectsLittle() const {
    return minimum_detectable_effect > 4 * threshold.detect_effect;
  }
  // With the stated power it is worse by no more than this.
  absl::optional<double> worse_by_at_most;
  // kCannotTell: processes per side that would tell; absent if that is beyond
  // reason or noise is unknown.
  absl::optional<int> processes_needed;
};

struct Comparison {
  std::vector<Row> rows;  // by name, then metric
  // Worth saying about all rows: "compiler: g++ 12 -> g++ 13", "measured
  // differently: min sample 100 us -> 500 us", ...
  std::vector<std::string> notes;

  int Count(Verdict verdict) const;
  // Rows with a verdict about how much changed: slower, faster, unchanged.
  int CountTold() const;
};

// FailedPrecondition if the two
// sides are from different hardware; InvalidArgument if a side is empty.
absl::StatusOr<Comparison> Compare(
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate,
    const CompareOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_COMPARE_H_
