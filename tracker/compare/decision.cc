#include "tracker/compare/decision.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/distributions.h"
#include "base/statistics.h"
#include "base/units.h"
#include "tracker/compare/noise_model.h"
#include "tracker/compare/pairs.h"
#include "tracker/compare/process_log.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

constexpr int kMostProcesses = 200;  // a side, that anybody is asked for
constexpr int kMostRounds = 400;
// A change of all is one of at least this share of the benchmarks.
constexpr double kAll = .6;

std::string PText(double p) {
  return p < .001 ? "p < 0.001" : absl::StrFormat("p = %.3f", p);
}

// "takes 12% more time", "takes 4.50x the time (+350%)", "joules: 12% higher".
std::string ChangeText(const Row& row) {
  const double ratio = row.ratio->ratio;
  const double change = ratio - 1;
  if (row.metric != "time") {
    return absl::StrCat(row.metric, ": ", FormatShortPercent(std::abs(change)),
                        change > 0 ? " higher" : " lower");
  }
  if (ratio >= 2 || ratio <= .5) {
    return absl::StrCat("takes ", absl::StrFormat("%.2fx", ratio),
                        " the time (", change > 0 ? "+" : "",
                        FormatShortPercent(change), ")");
  }
  return absl::StrCat("takes ", FormatShortPercent(std::abs(change)),
                      change > 0 ? " more time" : " less time");
}

int Sign(const Row& row) {
  return row.direction == proto::HIGHER_IS_BETTER ? -1 : 1;
}

// Positive is worse.
double WorseLog(const Row& row) { return Sign(row) * row.ratio->log_ratio; }

// A run that looks slow is perhaps a bad one, and a baseline, too.
void AddSlowRuns(const SlowValues& slow, int candidates, int baselines,
                 int sign, Ratio* ratio) {
  double& worse = sign > 0 ? ratio->p_greater : ratio->p_less;
  double& better = sign > 0 ? ratio->p_less : ratio->p_greater;
  const double change = sign * ratio->log_ratio;
  worse = std::min(1., worse + SlowRunsTail(slow, candidates, change));
  better = std::min(1., better + SlowRunsTail(slow, baselines, -change));
  ratio->p_two_sided = std::min(1., 2 * std::min(worse, better));
}

// PriorKey -> processes.
std::map<std::string, std::vector<ProcessLog>> CellsOf(const proto::Run& run) {
  std::map<std::string, std::vector<ProcessLog>> cells;
  for (const proto::BenchmarkResult& result : run.results()) {
    for (const MetricInfo& metric : MetricsOf(result)) {
      for (const proto::Measurement& measurement : result.measurements()) {
        const auto log = ProcessLogOf(measurement, metric.metric);
        if (!log.has_value()) continue;
        cells[PriorKey(result.key(), metric.metric)].push_back(*log);
      }
    }
  }
  return cells;
}

// The rows of one metric, judged together: what benchmarks share is only shared
// by numbers of one kind.
class MetricRows {
 public:
  MetricRows(const RunPointers& baseline, const RunPointers& candidate,
             const CompareOptions& options, std::vector<Row*> rows,
             const ComparedRows& compared)
      : rows_(std::move(rows)) {
    RunPointers runs = baseline;
    std::set<std::string> known;
    for (const RunPointers* side : {&baseline, &candidate}) {
      for (const proto::Run* run : *side) known.insert(run->run_id());
    }
    for (const proto::Run* run : options.history) {
      if (known.insert(run->run_id()).second) runs.push_back(run);
    }
    SortInSeriesOrder(runs);
    const std::set<const proto::Run*> base(baseline.begin(), baseline.end());
    for (size_t r = 0; r < runs.size(); ++r) {
      run_ids_.push_back(runs[r]->run_id());
      panel_.doubts.push_back(
          tuning::DescribeSettingsChange(runs[r]->settings(),
                                         candidate.back()->settings())
                  .empty()
              ? 0
              : options.settings_error);
      if (base.count(runs[r]) > 0) {
        panel_.baseline.push_back(static_cast<int>(r));
      }
      const auto cells = CellsOf(*runs[r]);
      PanelRun& cell = panel_.runs.emplace_back();
      for (const Row* row : rows_) {
        const auto found =
            cells.find(compared.at(PriorKey(row->key, row->metric)));
        cell.push_back(found == cells.end() ? std::vector<ProcessLog>()
                                            : found->second);
      }
    }
    for (const proto::Run* run : candidate) {
      const auto cells = CellsOf(*run);
      PanelRun& cell = panel_.candidate.emplace_back();
      for (const Row* row : rows_) {
        const auto found = cells.find(PriorKey(row->key, row->metric));
        cell.push_back(found == cells.end() ? std::vector<ProcessLog>()
                                            : found->second);
      }
    }
    panel_.window = options.window;
    for (const Row* row : rows_) {
      panel_.worse_signs.push_back(Sign(*row));
      const std::string start =
          options.level_start == nullptr
              ? ""
              : options.level_start(row->key, row->metric);
      const auto place = std::find(run_ids_.begin(), run_ids_.end(), start);
      panel_.level_starts.push_back(
          place == run_ids_.end() ? 0
                                  : static_cast<int>(place - run_ids_.begin()));
    }
    estimate_ = EstimateChanges(panel_);
  }

  // Sets the ratios of the rows that have one.
  void SetRatios(double confidence) {
    for (size_t j = 0; j < rows_.size(); ++j) {
      const BenchmarkEstimate& estimate = estimate_.benchmarks[j];
      Row& row = *rows_[j];
      if (!estimate.possible) {
        row.verdict = Verdict::kCannotTell;
        row.reason = "nothing measures noise: more processes are needed";
        continue;
      }
      Ratio ratio = RatioOf(estimate.log_ratio, estimate.standard_error,
                            estimate.degrees_of_freedom, confidence);
      AddSlowRuns(estimate.slow_runs, estimate.candidate_runs,
                  estimate.baseline_runs, Sign(row), &ratio);
      ratio.candidate = std::exp(estimate.log_candidate);
      ratio.baseline = ratio.candidate / ratio.ratio;
      ratio.machine = std::exp(estimate.log_machine);
      ratio.process_spread = estimate.process_spread;
      ratio.run_spread = estimate.run_spread;
      ratio.baseline_runs = estimate.baseline_runs;
      ratio.baseline_processes = row.baseline.processes;
      ratio.candidate_processes = row.candidate.processes;
      std::vector<double> before, now;
      for (const int r : panel_.baseline) {
        for (const ProcessLog& process : panel_.runs[r][j]) {
          before.push_back(process.value);
        }
      }
      for (const PanelRun& run : panel_.candidate) {
        for (const ProcessLog& process : run[j]) now.push_back(process.value);
      }
      const RankTest ranks = MannWhitneyU(before, now);
      ratio.probability_above =
          ranks.u / (static_cast<double>(before.size()) * now.size());
      ratio.mann_whitney_p = ranks.p_value;
      row.ratio = ratio;
      row.worse_by = std::expm1(WorseLog(row));
    }
  }

  const SharedEstimate& shared() const { return estimate_.shared; }
  const BenchmarkEstimate& estimate(size_t j) const {
    return estimate_.benchmarks[j];
  }
  const std::vector<Row*>& rows() const { return rows_; }

  // What was made of the baseline of row j, "" if nothing but its runs.
  std::string BaselineText(size_t j) const {
    const BenchmarkEstimate& estimate = estimate_.benchmarks[j];
    std::string text;
    if (!panel_.baseline.empty() &&
        estimate.first_baseline_run > panel_.baseline.front()) {
      absl::StrAppend(&text, "; baseline from run ",
                      run_ids_[estimate.first_baseline_run],
                      " on: the level changed before");
    }
    if (!estimate.far_off.empty()) {
      absl::StrAppend(
          &text, "; run ", run_ids_[estimate.far_off.back()],
          estimate.far_off.size() == 1
              ? ""
              : absl::StrCat(" and ", estimate.far_off.size() - 1, " more"),
          " of the baseline far off, counted for less");
    }
    if (estimate.candidate_process_spread > 2 * estimate.process_spread) {
      absl::StrAppend(&text, "; the candidate's processes vary by ",
                      FormatShortPercent(estimate.candidate_process_spread),
                      ", earlier ones by ",
                      FormatShortPercent(estimate.process_spread));
    }
    return text;
  }

  int processes_per_run() const {
    double processes = 0, cells = 0;
    for (const PanelRun& run : panel_.candidate) {
      for (const auto& cell : run) {
        processes += static_cast<double>(cell.size());
        cells += !cell.empty();
      }
    }
    return cells == 0 ? 1 : std::max(1, static_cast<int>(processes / cells));
  }

 private:
  std::vector<Row*> rows_;
  std::vector<std::string> run_ids_;
  Panel panel_;
  PanelEstimate estimate_;
};

// The bound, in standard errors above an estimate, below which a worsening of
// detect_effect is excluded: such that one of whichever benchmark is taken for
// unchanged with probability `miss_rate`. Quiet benchmarks leave room to
// others.
double ExclusionBound(const std::vector<MetricRows>& metrics,
                      double miss_rate) {
  double low = 0, high = 10;
  for (int i = 0; i < 50; ++i) {
    const double bound = (low + high) / 2;
    double missed = 0, count = 0;
    for (const MetricRows& metric : metrics) {
      for (const Row* row : metric.rows()) {
        if (!row->ratio.has_value()) continue;
        ++count;
        const double effect = std::log1p(row->threshold.detect_effect);
        const double error = row->ratio->standard_error;
        // What is that unsure is never excluded.
        if (effect <= bound * error) continue;
        // A benchmark this quiet is found before anybody asks.
        if (effect - std::log1p(row->threshold.min_effect) > 6 * error) {
          continue;
        }
        missed += StudentTCdf(-bound, row->ratio->degrees_of_freedom);
      }
    }
    if (count == 0) break;
    (missed > miss_rate * count ? low : high) = bound;
  }
  return high;
}

class Decider {
 public:
  Decider(const CompareOptions& options, std::vector<MetricRows> metrics)
      : options_(options), metrics_(std::move(metrics)) {}

  void Decide(Comparison* comparison) {
    // Every look may call a change by mistake, or call none.
    const int looks = std::max(1, options_.looks);
    rate_ = options_.false_alarm_rate / looks;
    for (MetricRows& metric : metrics_) metric.SetRatios(options_.confidence);
    bound_ = ExclusionBound(metrics_, (1 - options_.power) / looks);
    std::vector<Row> shared;
    for (const MetricRows& metric : metrics_) DecideShared(metric, &shared);
    DecideEach();
    for (Row& row : shared) comparison->rows.push_back(std::move(row));
  }

 private:
  // Benjamini-Hochberg, for each direction by itself, over what was compared.
  void DecideEach() {
    std::vector<std::pair<const MetricRows*, size_t>> places;
    std::vector<double> p_worse, p_better;
    for (const MetricRows& metric : metrics_) {
      for (size_t j = 0; j < metric.rows().size(); ++j) {
        const Row& row = *metric.rows()[j];
        if (!row.ratio.has_value()) continue;
        places.push_back({&metric, j});
        const bool lower = Sign(row) > 0;
        p_worse.push_back(lower ? row.ratio->p_greater : row.ratio->p_less);
        p_better.push_back(lower ? row.ratio->p_less : row.ratio->p_greater);
      }
    }
    const std::vector<double> worse = BenjaminiHochberg(p_worse);
    const std::vector<double> better = BenjaminiHochberg(p_better);
    for (size_t i = 0; i < places.size(); ++i) {
      Row& row = *places[i].first->rows()[places[i].second];
      row.adjusted_p = worse[i];
      DecideRow(*places[i].first, places[i].second, better[i],
                rate_ / static_cast<double>(places.size()), row);
    }
  }

  // `alpha` is the level at which this row is found if it is the only one.
  void DecideRow(const MetricRows& metric, size_t j, double p_better,
                 double alpha, Row& row) {
    const Ratio& ratio = *row.ratio;
    const Threshold& threshold = row.threshold;
    row.minimum_detectable_effect = std::max(
        MinimumDetectableEffect(ratio.standard_error, ratio.degrees_of_freedom,
                                alpha, options_.power, threshold.min_effect),
        BadRunEffect(metric.estimate(j), alpha));
    const double change = WorseLog(row);
    const BenchmarkEstimate& estimate = metric.estimate(j);
    const double at_most = std::min(
        change + bound_ * ratio.standard_error,
        Sign(row) * estimate.log_ratio_bound + bound_ * estimate.bound_error);
    row.worse_by_at_most = std::expm1(at_most);
    const double counts = std::log1p(threshold.min_effect);
    const std::string renamed =
        row.verdict == Verdict::kRenamed ? absl::StrCat(row.reason, "; ") : "";
    std::string machine;
    if (std::abs(ratio.machine - 1) >= .01) {
      machine = absl::StrCat("; the machine alone accounts for ",
                             ratio.machine > 1 ? "+" : "",
                             FormatShortPercent(ratio.machine - 1));
    }
    const auto decide = [&](Verdict verdict, std::string reason) {
      row.verdict = verdict;
      row.reason =
          absl::StrCat(renamed, reason, machine, metric.BaselineText(j));
    };
    if (row.adjusted_p <= rate_ && change >= counts) {
      if (SharedWithAll(metric, row)) {
        decide(Verdict::kUnchanged,
               absl::StrCat(ChangeText(row), ", as all benchmarks do"));
      } else {
        decide(Verdict::kSlower,
               absl::StrCat(ChangeText(row), ", ", PText(row.adjusted_p)));
      }
    } else if (!renamed.empty()) {
      decide(Verdict::kRenamed, absl::StrCat("it ", ChangeText(row)));
    } else if (p_better <= rate_ && -change >= counts) {
      decide(Verdict::kFaster,
             absl::StrCat(ChangeText(row), ", ", PText(p_better)));
    } else if (some_.count(&row) > 0) {
      row.processes_needed = ProcessesNeeded(metric, j, alpha, row);
      decide(Verdict::kCannotTell,
             absl::StrCat("slower together with ", some_.size() - 1,
                          " others, which the machine's calibration does not "
                          "explain and the rest do not follow: both sides in "
                          "turn would tell"));
    } else if (at_most <= std::log1p(threshold.detect_effect)) {
      decide(Verdict::kUnchanged,
             absl::StrCat(
                 "worse by at most ",
                 FormatShortPercent(std::max(0., *row.worse_by_at_most))));
    } else {
      row.processes_needed = ProcessesNeeded(metric, j, alpha, row);
      decide(Verdict::kCannotTell, NoiseReason(row));
    }
  }

  // What a single bad run looks like once in 1 / alpha times, and noise
  // besides.
  double BadRunEffect(const BenchmarkEstimate& estimate, double alpha) const {
    double low = 0, high = 10;
    for (int i = 0; i < 40; ++i) {
      const double by = (low + high) / 2;
      (SlowRunsTail(estimate.slow_runs, estimate.candidate_runs, by) > alpha / 2
           ? low
           : high) = by;
    }
    return std::expm1(high +
                      NormalQuantile(options_.power) * estimate.standard_error);
  }

  // What all benchmarks share beyond calibration: said once, where it is worse
  // than it ever was by chance. Half of the rate goes to it.
  void DecideShared(const MetricRows& metric, std::vector<Row>* rows) {
    const SharedEstimate& shared = metric.shared();
    if (!shared.exists || metric.rows().empty()) return;
    const Row& first = *metric.rows().front();
    Row row;
    row.name = kAllBenchmarks;
    row.metric = first.metric;
    row.unit = first.unit;
    row.direction = first.direction;
    row.threshold = first.threshold;
    row.ratio = RatioOf(shared.log_change, shared.standard_error,
                        shared.degrees_of_freedom, options_.confidence);
    AddSlowRuns(shared.slow_runs, shared.candidate_runs, 1, Sign(row),
                &*row.ratio);
    row.ratio->baseline_runs =
        first.ratio.has_value() ? first.ratio->baseline_runs : 0;
    row.worse_by = std::expm1(WorseLog(row));
    row.adjusted_p = Sign(row) > 0 ? row.ratio->p_greater : row.ratio->p_less;
    row.minimum_detectable_effect = MinimumDetectableEffect(
        shared.standard_error, shared.degrees_of_freedom, rate_ / 2,
        options_.power, row.threshold.min_effect);
    if (!(row.adjusted_p <= rate_ / 2) ||
        WorseLog(row) < std::log1p(row.threshold.min_effect)) {
      return;
    }
    std::vector<const Row*> moved;
    int judged = 0;
    for (const Row* other : metric.rows()) {
      if (!other->ratio.has_value()) continue;
      ++judged;
      if (Sign(row) * RawChange(metric, *other) > WorseLog(row) / 2) {
        moved.push_back(other);
      }
    }
    if (static_cast<double>(moved.size()) < kAll * judged) {
      some_.insert(moved.begin(), moved.end());
      return;
    }
    row.verdict = Verdict::kSlower;
    row.reason = absl::StrCat(
        "all benchmarks together: ", ChangeText(row),
        ", and the machine's calibration ",
        shared.log_calibration == 0
            ? "was not recorded"
            : absl::StrCat("explains only ", FormatShortPercent(std::expm1(
                                                 shared.log_calibration))),
        ", ", PText(row.adjusted_p));
    rows->push_back(std::move(row));
    shared_.push_back(&metric);
  }

  // The machine left in, but for what calibration explains.
  static double RawChange(const MetricRows& metric, const Row& row) {
    return row.ratio->log_ratio + std::log(row.ratio->machine) -
           metric.shared().log_calibration;
  }

  // A benchmark that follows the others less moves with them all the same
  // where all of them change alike.
  bool SharedWithAll(const MetricRows& metric, const Row& row) const {
    if (std::find(shared_.begin(), shared_.end(), &metric) == shared_.end()) {
      return false;
    }
    const SharedEstimate& shared = metric.shared();
    return std::abs(RawChange(metric, row) - shared.log_change) <
           3 * std::max(row.ratio->standard_error, .01);
  }

  // Processes a side, both measured anew in turn, such that either a worsening
  // of detect_effect is found or none is excluded.
  absl::optional<int> ProcessesNeeded(const MetricRows& metric, size_t j,
                                      double alpha, const Row& row) const {
    const Ratio& ratio = *row.ratio;
    const double effect = std::log1p(row.threshold.detect_effect);
    const double wanted =
        -StudentTQuantile(alpha, ratio.degrees_of_freedom) + bound_;
    const int per_run = metric.processes_per_run();
    const int had = std::max(1, row.candidate.processes / per_run);
    for (int runs = had + 1; runs * per_run <= kMostProcesses; ++runs) {
      const double error =
          ratio.run_spread *
          std::sqrt(1. / runs + 1. / (ratio.baseline_runs + runs - had));
      if (wanted * error <= effect && SlowRunsTail(metric.estimate(j).slow_runs,
                                                   runs, effect) <= alpha / 2) {
        return runs * per_run;
      }
    }
    return absl::nullopt;
  }

  static std::string NoiseReason(const Row& row) {
    const Ratio& ratio = *row.ratio;
    std::string reason = absl::StrCat(
        "may be worse by up to ", FormatShortPercent(*row.worse_by_at_most),
        " (must: ", FormatShortPercent(row.threshold.detect_effect),
        "); processes vary by ", FormatShortPercent(ratio.process_spread),
        ", runs by ", FormatShortPercent(ratio.run_spread));
    if (!row.processes_needed.has_value()) {
      return absl::StrCat(reason, ": no reasonable number of processes tells");
    }
    return absl::StrCat(reason, ": ", *row.processes_needed,
                        " processes a side, both sides in turn, would tell");
  }

  const CompareOptions& options_;
  std::vector<MetricRows> metrics_;
  std::vector<const MetricRows*> shared_;  // those with a shared change
  std::set<const Row*> some_;  // that changed together, and not all did
  double rate_ = 0;
  double bound_ = 0;
};

void DecidePairs(const PairedLogs& pairs, const CompareOptions& options,
                 const std::vector<Row*>& rows, const ComparedRows& compared) {
  const int tests = std::max<int>(1, static_cast<int>(rows.size()));
  for (Row* row : rows) {
    PairedTestOptions test;
    test.false_alarm_rate = options.false_alarm_rate / tests;
    test.miss_rate = 1 - options.power;
    test.upwards_only = true;  // as of runs that are no pairs
    test.min_effect = row->threshold.min_effect;
    test.detect_effect = row->threshold.detect_effect;
    const bool renamed = row->verdict == Verdict::kRenamed;
    const std::string reason = row->reason;
    const std::string key = PriorKey(row->key, row->metric);
    const auto found = pairs.find(key);
    if (renamed && compared.at(key) != key) continue;
    JudgePairs(found == pairs.end() ? std::vector<double>() : found->second,
               test, tests, kMostRounds, row);
  }
}

}  // namespace

void DecideRows(const RunPointers& baseline, const RunPointers& candidate,
                const CompareOptions& options, const ComparedRows& compared,
                Comparison* comparison) {
  std::map<std::string, std::vector<Row*>> by_metric;
  std::vector<Row*> all;
  for (Row& row : comparison->rows) {
    if (compared.count(PriorKey(row.key, row.metric)) == 0) continue;
    by_metric[row.metric].push_back(&row);
    all.push_back(&row);
  }
  const absl::optional<PairedLogs> pairs = PairsOf(baseline, candidate);
  if (pairs.has_value()) {
    DecidePairs(*pairs, options, all, compared);
    return;
  }
  std::vector<MetricRows> metrics;
  for (auto& [metric, rows] : by_metric) {
    metrics.emplace_back(baseline, candidate, options, std::move(rows),
                         compared);
  }
  Decider(options, std::move(metrics)).Decide(comparison);
}

}  // namespace optrail::tracker
