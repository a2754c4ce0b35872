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
// (Benjamini-Hochberg; docs/gating.md).
//
// It knows no policy, no exit code and no history: see gate.h.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/ratio.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/measurement_settings.pb.h"

namespace optrail::tracker {

enum class Verdict {
  kUnchanged,    // a change of detect_effect would have been found
  kSlower,       // worse, whatever the metric
  kFaster,       // better
  kCannotTell,   // see Row::reason and Row::processes_needed
  kMissing,      // in the baseline only
  kNew,          // in the candidate only
  kRenamed,      // in the candidate, beside a missing one that looks like it
  kNewVersion,   // the benchmark changed its meaning; not compared
  kCrashed,      // worked in the baseline; crashed, timed out, ... now
  kWrongResult,  // worked in the baseline; its result is wrong now
};

// "slower", "can't tell", ...
absl::string_view VerdictName(Verdict verdict);
inline constexpr int kVerdictCount = 10;

// What one benchmark is held to. Effects are relative: .03 is 3%.
struct Threshold {
  // Overrides what the metric says of itself.
  proto::Direction direction = proto::DIRECTION_UNSPECIFIED;
  double min_effect = .03;     // smaller changes are never called a change
  double detect_effect = .05;  // what must be found for "unchanged"
};

struct CompareOptions {
  double false_alarm_rate = .01;  // of the whole comparison
  double power = .95;
  double confidence = .95;  // of the intervals shown
  int min_processes = 2;    // per side
  // Benchmark and metric -> what it is held to. Metrics for which it returns
  // nullopt are left out. Null: time only, with the default Threshold.
  std::function<absl::optional<Threshold>(absl::string_view name,
                                          absl::string_view metric)>
      threshold;
  // Spread known from earlier runs, by PriorKey(). May be empty.
  std::map<std::string, SpreadPrior> priors;
};

// "<canonical benchmark>|<metric>".
std::string PriorKey(const proto::BenchmarkKey& key, absl::string_view metric);

// The spread between processes within each of `runs`.
std::map<std::string, SpreadPrior> SpreadPriors(
    const std::vector<const proto::Run*>& runs);

// One side of a row.
struct Side {
  std::vector<std::string> run_ids;
  proto::Commit commit;  // of the last run
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  std::string detail;
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
  // How much worse (+) or better (-): ratio - 1 for LOWER_IS_BETTER, else
  // 1 / ratio - 1.
  double worse_by = 0;
  double adjusted_p = 1;  // for worse, Benjamini-Hochberg over all rows
  Threshold threshold;
  // The smallest worsening that this comparison finds with the stated power.
  absl::optional<double> minimum_detectable_effect;
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
};

// All processes of a side's runs at one benchmark are its evidence; a side of
// several runs also tells how much runs differ. FailedPrecondition if the two
// sides are from different hardware; InvalidArgument if a side is empty.
absl::StatusOr<Comparison> Compare(
    const std::vector<const proto::Run*>& baseline,
    const std::vector<const proto::Run*>& candidate,
    const CompareOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_COMPARE_H_
