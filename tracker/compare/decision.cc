#include "tracker/compare/decision.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/compare/metric_rows.h"
#include "tracker/compare/pairs.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

constexpr absl::string_view kMeasureInPairs =
    "measure both sides in pairs, optrail gate --build=COMMAND --run=COMMAND";
constexpr int kMostProcesses = 200;  // a side, that anybody is asked for

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

// Positive is worse.
double WorseLog(const Row& row) {
  return WorseSign(row) * row.ratio->log_ratio;
}

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

// p-values of the rows that have a ratio, adjusted by Benjamini and Hochberg
// for each direction by itself.
struct AdjustedRow {
  const MetricRows* metric;
  size_t place;  // in metric->rows()
  double p_worse, p_better;
};

std::vector<AdjustedRow> Adjust(const std::vector<MetricRows>& metrics) {
  std::vector<AdjustedRow> rows;
  std::vector<double> worse, better;
  for (const MetricRows& metric : metrics) {
    for (size_t j = 0; j < metric.rows().size(); ++j) {
      const Row& row = *metric.rows()[j];
      if (!row.ratio.has_value()) continue;
      rows.push_back({&metric, j, 1, 1});
      const bool lower = WorseSign(row) > 0;
      worse.push_back(lower ? row.ratio->p_greater : row.ratio->p_less);
      better.push_back(lower ? row.ratio->p_less : row.ratio->p_greater);
    }
  }
  worse = BenjaminiHochberg(worse);
  better = BenjaminiHochberg(better);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].p_worse = worse[i];
    rows[i].p_better = better[i];
  }
  return rows;
}

class Decider {
 public:
  Decider(const CompareOptions& options, std::vector<MetricRows> metrics)
      : options_(options), metrics_(std::move(metrics)) {}

  void Decide() {
    // Every look may call a change by mistake, or call none.
    const int looks = std::max(1, options_.looks);
    rate_ = options_.false_alarm_rate / looks;
    for (MetricRows& metric : metrics_) metric.SetRatios(options_.confidence);
    bound_ = ExclusionBound(metrics_, (1 - options_.power) / looks);
    const std::vector<AdjustedRow> rows = Adjust(metrics_);
    for (const AdjustedRow& row : rows) {
      DecideRow(row, rate_ / static_cast<double>(rows.size()));
      DoubtSlowRuns(*row.metric, row.place);
    }
  }

 private:
  // The level of the candidate is that of its undisturbed runs. Where half of
  // them or more would be disturbed, that may as well be the code.
  static void DoubtSlowRuns(const MetricRows& metric, size_t j) {
    Row& row = *metric.rows()[j];
    if (row.verdict != Verdict::kUnchanged && row.verdict != Verdict::kFaster &&
        row.verdict != Verdict::kCannotTell) {
      return;
    }
    const auto slow =
        metric.SlowRunsOfCandidate(j, std::log1p(row.threshold.detect_effect));
    const int runs = metric.estimate(j).candidate_runs;
    const int count = static_cast<int>(slow.run_ids.size());
    if (count == 0) return;
    const std::string text = absl::StrCat(
        count, " of the candidate's ", runs, " runs, ", slow.run_ids.back(),
        count == 1 ? "" : " among them", count == 1 ? ", is " : ", are ",
        FormatShortPercent(std::expm1(slow.excess)),
        count == 1 ? " worse" : " or more worse", " than the best");
    if (2 * count < runs) {
      absl::StrAppend(&row.reason, "; ", text, ": taken for disturbed");
      return;
    }
    row.verdict = Verdict::kSlowerInMostSamples;
    row.slower = Row::Slower{std::exp(WorseSign(row) * slow.excess),
                             "slow runs against the best"};
    row.reason = absl::StrCat(text, ": measure again; ", row.reason);
  }

  // How much worse a row may be, given that the machine may have done less or
  // more than its estimate.
  struct Change {
    double least, estimate, most;  // logarithms; positive is worse
  };
  static Change ChangeOf(const BenchmarkEstimate& estimate, const Row& row) {
    const int sign = WorseSign(row);
    const double low = sign * estimate.log_ratio_low;
    const double high = sign * estimate.log_ratio_high;
    return {std::min(low, high), WorseLog(row), std::max(low, high)};
  }

  // `alpha` is the level at which this row is found if it is the only one.
  void DecideRow(const AdjustedRow& adjusted, double alpha) {
    const MetricRows& metric = *adjusted.metric;
    const size_t j = adjusted.place;
    Row& row = *metric.rows()[j];
    const Ratio& ratio = *row.ratio;
    const BenchmarkEstimate& estimate = metric.estimate(j);
    const Change change = ChangeOf(estimate, row);
    row.adjusted_p = adjusted.p_worse;
    const double bad_run = BadRunEffect(estimate, alpha);
    row.minimum_detectable_effect =
        std::max(MinimumDetectableEffect(
                     ratio.standard_error, ratio.degrees_of_freedom,
                     -StudentTQuantile(alpha, ratio.degrees_of_freedom),
                     options_.power, row.threshold.min_effect),
                 bad_run);
    double at_most = change.estimate + bound_ * ratio.standard_error;
    // What else the machine may have done is improbable by itself.
    const bool by_machine = at_most < change.most;
    at_most = std::max(at_most, change.most);
    row.worse_by_at_most = std::expm1(at_most);
    const std::string renamed =
        row.verdict == Verdict::kRenamed ? absl::StrCat(row.reason, "; ") : "";
    const auto decide = [&](Verdict verdict, std::string reason) {
      row.verdict = verdict;
      row.reason = absl::StrCat(renamed, reason, MachineText(ratio),
                                metric.BaselineText(j));
    };
    const double counts = std::log1p(row.threshold.min_effect);
    const bool found = adjusted.p_worse <= rate_ && change.estimate >= counts;
    if (found && change.least >= counts) {
      decide(Verdict::kSlower,
             absl::StrCat(ChangeText(row), ", ", PText(adjusted.p_worse)));
    } else if (!renamed.empty()) {
      decide(Verdict::kRenamed, absl::StrCat("it ", ChangeText(row)));
    } else if (UndoesTheNewest(estimate, counts)) {
      decide(Verdict::kCannotTell,
             absl::StrCat(
                 FormatShortPercent(std::expm1(*estimate.worse_than_newest)),
                 " worse than the newest run of the baseline, which was better "
                 "than those before it: ",
                 kMeasureInPairs));
    } else if (adjusted.p_better <= rate_ && -change.most >= counts) {
      decide(Verdict::kFaster,
             absl::StrCat(ChangeText(row), ", ", PText(adjusted.p_better)));
    } else if (!found && !TooWide(row) && !ReachesFar(row) &&
               at_most <= std::log1p(row.threshold.detect_effect)) {
      decide(Verdict::kUnchanged,
             UnchangedText(row, bad_run == *row.minimum_detectable_effect));
    } else if (found || (!TooWide(row) && by_machine)) {
      decide(Verdict::kCannotTell, MachineDoubt(metric, change, row));
    } else {
      row.processes_needed = ProcessesNeeded(metric, j, alpha, row);
      decide(Verdict::kCannotTell, NoiseReason(row));
    }
  }

  // Whether the newest run of the window had become better, as far as one run
  // tells, and the candidate is worse than it beyond the noise of two runs.
  static bool UndoesTheNewest(const BenchmarkEstimate& estimate,
                              double counts) {
    constexpr double kErrors = 2;
    return estimate.worse_than_newest >=
           std::max(counts, kErrors * std::sqrt(2.) * estimate.run_spread);
  }

  // An interval that wide says nothing, wherever its middle is.
  static bool TooWide(const Row& row) {
    return 2 * row.ratio->standard_error >
           std::log1p(4 * row.threshold.detect_effect);
  }

  // The end of the interval that is for the worse; a logarithm.
  static double WorseEnd(const Row& row) {
    return WorseSign(row) > 0 ? std::log(row.ratio->high)
                              : -std::log(row.ratio->low);
  }

  // Nobody believes "unchanged" beside an interval that reaches much farther
  // than what is excluded.
  static bool ReachesFar(const Row& row) {
    return WorseEnd(row) > std::log1p(1.5 * row.threshold.detect_effect);
  }

  static std::string MachineText(const Ratio& ratio) {
    if (std::abs(ratio.machine - 1) < .01) return "";
    return absl::StrCat("; the machine alone accounts for ",
                        ratio.machine > 1 ? "+" : "",
                        FormatShortPercent(ratio.machine - 1));
  }

  // Why the code and the machine cannot be told apart.
  static std::string MachineDoubt(const MetricRows& metric,
                                  const Change& change, const Row& row) {
    const auto worse = [](double log) {
      return absl::StrCat(FormatShortPercent(std::expm1(std::abs(log))),
                          log < 0 ? " better" : " worse");
    };
    return absl::StrCat(
        worse(change.least), " to ", worse(change.most), " (", row.metric,
        "), depending on which benchmarks changed and how much the "
        "machine did; it varied by ",
        FormatShortPercent(std::expm1(metric.factor_spread().value_or(0))),
        " between earlier runs: ", kMeasureInPairs);
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
    const double worst =
        std::max(*row.worse_by_at_most, std::expm1(WorseEnd(row)));
    std::string reason =
        worst > row.threshold.detect_effect
            ? absl::StrCat("may be worse by up to ", FormatShortPercent(worst),
                           " (must: ",
                           FormatShortPercent(row.threshold.detect_effect), ")")
            : "the interval is too wide";
    absl::StrAppend(&reason, "; processes vary by ",
                    FormatShortPercent(ratio.process_spread), ", runs by ",
                    FormatShortPercent(ratio.run_spread));
    if (!row.processes_needed.has_value()) {
      return absl::StrCat(reason, ": no reasonable number of processes tells");
    }
    return absl::StrCat(reason, ": ", *row.processes_needed,
                        " processes a side, interleaved, would tell");
  }

  const CompareOptions& options_;
  std::vector<MetricRows> metrics_;
  double rate_ = 0;
  double bound_ = 0;
};

// Times whose fastest samples did not become slower may have others that did.
void DecideShapes(const RunPointers& baseline, const RunPointers& candidate,
                  const CompareOptions& options, const ComparedRows& compared,
                  const std::vector<Row*>& rows) {
  for (const SamplePart part :
       {SamplePart::kMedian, SamplePart::kUpperQuartile}) {
    std::vector<Row> shapes;
    std::vector<Row*> judged, pointers;
    for (Row* row : rows) {
      if (row->metric != "time" || (row->verdict != Verdict::kUnchanged &&
                                    row->verdict != Verdict::kFaster)) {
        continue;
      }
      judged.push_back(row);
      shapes.push_back(*row);
      shapes.back().ratio.reset();
    }
    for (Row& shape : shapes) pointers.push_back(&shape);
    if (pointers.empty()) return;
    std::vector<MetricRows> metrics;
    metrics.emplace_back(baseline, candidate, options, pointers, compared,
                         part);
    if (!metrics.front().HasProcesses()) return;
    metrics.front().SetRatios(options.confidence);
    for (const AdjustedRow& shape : Adjust(metrics)) {
      const double shift = shapes[shape.place].ratio->log_ratio;
      const double least = shape.metric->estimate(shape.place).log_ratio_low;
      const double counts =
          std::log1p(judged[shape.place]->threshold.min_effect);
      if (shape.p_worse <= options.false_alarm_rate && least >= counts) {
        NoteShape(part, shift, judged[shape.place]);
      }
    }
  }
}

}  // namespace

void NoteShape(SamplePart part, double log_shift, Row* row) {
  if (row->verdict != Verdict::kUnchanged && row->verdict != Verdict::kFaster) {
    return;
  }
  const double counts = std::log1p(row->threshold.min_effect);
  const double whole = WorseLog(*row) + log_shift;
  if (log_shift < counts || whole < counts) return;
  row->verdict = Verdict::kSlowerInMostSamples;
  row->slower = Row::Slower{
      std::exp(WorseSign(*row) * whole),
      part == SamplePart::kMedian ? "median samples" : "upper quartiles"};
  row->reason = absl::StrCat(part == SamplePart::kMedian
                                 ? "the median sample takes "
                                 : "the upper quartile of the samples takes ",
                             FormatShortPercent(std::expm1(whole)),
                             " more, the fastest does not; ", row->reason);
}

void NoteMedians(Row* row) {
  const absl::optional<double>& before = row->baseline.value;
  const absl::optional<double>& after = row->candidate.value;
  if (row->verdict == Verdict::kSlowerInMostSamples ||
      !row->ratio.has_value() || !row->ratio->of_fastest ||
      before.value_or(0) <= 0 || after.value_or(0) <= 0) {
    return;
  }
  const double medians = std::log(*after / *before);
  const double apart =
      medians - row->ratio->log_ratio - std::log(row->ratio->machine);
  if (std::abs(apart) < std::log1p(row->threshold.min_effect)) return;
  absl::StrAppend(&row->reason,
                  "; that is of the fastest samples, the medians ",
                  medians < 0 ? "fall" : "rise", " by ",
                  FormatShortPercent(std::abs(std::expm1(medians))));
}

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
  const absl::optional<PairedRounds> pairs =
      PairsOf(baseline, candidate, compared);
  if (pairs.has_value()) {
    DecidePairs(*pairs, options, all);
    return;
  }
  std::vector<MetricRows> metrics;
  for (auto& [metric, rows] : by_metric) {
    metrics.emplace_back(baseline, candidate, options, std::move(rows),
                         compared, SamplePart::kFastest);
  }
  Decider(options, std::move(metrics)).Decide();
  DecideShapes(baseline, candidate, options, compared, all);
}

}  // namespace optrail::tracker
