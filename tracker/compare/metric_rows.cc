#include "tracker/compare/metric_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/compare/process_log.h"
#include "tracker/history/history.h"
#include "tracker/series/series.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

using RunPointers = std::vector<const proto::Run*>;

// What is judged of a process; nullopt where it does not have it.
absl::optional<ProcessLog> PartOf(const ProcessLog& process, SamplePart of) {
  if (of == SamplePart::kFastest) return process;
  if (!process.shape.has_value()) return absl::nullopt;
  // The machine is in both parts of the samples.
  ProcessLog part;
  part.value =
      of == SamplePart::kMedian ? process.shape->median : process.shape->upper;
  return part;
}

// PriorKey -> processes.
std::map<std::string, std::vector<ProcessLog>> CellsOf(const proto::Run& run,
                                                       SamplePart of) {
  std::map<std::string, std::vector<ProcessLog>> cells;
  for (const proto::BenchmarkResult& result : run.results()) {
    for (const MetricInfo& metric : MetricsOf(result)) {
      for (const proto::Measurement& measurement : result.measurements()) {
        const auto log = ProcessLogOf(measurement, metric.metric);
        if (!log.has_value()) continue;
        const auto part = PartOf(*log, of);
        if (!part.has_value()) continue;
        cells[PriorKey(result.key(), metric.metric)].push_back(*part);
      }
    }
  }
  return cells;
}

// Of row j either all processes have their fastest sample or all their median:
// where one that is compared has its median alone, as after retention, the
// others take theirs. Earlier runs without samples teach nothing then. Returns
// whether it is the fastest.
bool MatchReadings(size_t j, Panel* panel) {
  bool fastest = true;
  const auto look = [&fastest, j](const PanelRun& run) {
    for (const ProcessLog& process : run[j]) {
      fastest = fastest && process.shape.has_value();
    }
  };
  for (const int r : panel->baseline) look(panel->runs[r]);
  for (const PanelRun& run : panel->candidate) look(run);
  for (std::vector<PanelRun>* runs : {&panel->runs, &panel->candidate}) {
    for (PanelRun& run : *runs) {
      std::vector<ProcessLog>& cell = run[j];
      if (fastest) {
        cell.erase(std::remove_if(cell.begin(), cell.end(),
                                  [](const ProcessLog& process) {
                                    return !process.shape.has_value();
                                  }),
                   cell.end());
      } else {
        for (ProcessLog& process : cell) UseMedian(&process);
      }
    }
  }
  return fastest;
}

// The runs of a panel in series order: all that teach, and the baseline.
RunPointers PanelRuns(const RunPointers& baseline, const RunPointers& candidate,
                      const RunPointers& history) {
  RunPointers runs = baseline;
  std::set<std::string> known;
  for (const RunPointers* side : {&baseline, &candidate}) {
    for (const proto::Run* run : *side) known.insert(run->run_id());
  }
  for (const proto::Run* run : history) {
    if (known.insert(run->run_id()).second) runs.push_back(run);
  }
  SortInSeriesOrder(runs);
  return runs;
}

bool Contains(const RunPointers& runs, const proto::Run* run) {
  return std::find(runs.begin(), runs.end(), run) != runs.end();
}

// The estimates of one pair of sides from `there` and from `back`, in which
// they have changed places: the mean, whose error has their disagreement in it.
// The runs of a baseline teach the model and those of a candidate do not, so
// one way alone depends on which side is called the baseline.
PanelEstimate MeanOfBothWays(PanelEstimate there, const PanelEstimate& back) {
  for (size_t j = 0; j < there.benchmarks.size(); ++j) {
    BenchmarkEstimate& one = there.benchmarks[j];
    const BenchmarkEstimate& other = back.benchmarks[j];
    if (!one.possible || !other.possible) continue;
    const double off = (one.log_ratio + other.log_ratio) / 2;
    one.log_ratio -= off;
    one.log_machine += off;
    one.log_ratio_low = (one.log_ratio_low - other.log_ratio_high) / 2;
    one.log_ratio_high = (one.log_ratio_high - other.log_ratio_low) / 2;
    one.standard_error = std::sqrt(
        (std::pow(one.standard_error, 2) + std::pow(other.standard_error, 2)) /
            2 +
        off * off);
    one.degrees_of_freedom =
        std::min(one.degrees_of_freedom, other.degrees_of_freedom);
  }
  return there;
}

}  // namespace

void AddSlowRuns(const SlowValues& slow, int candidates, int baselines,
                 int sign, Ratio* ratio) {
  double& worse = sign > 0 ? ratio->p_greater : ratio->p_less;
  double& better = sign > 0 ? ratio->p_less : ratio->p_greater;
  const double change = sign * ratio->log_ratio;
  worse = std::min(1., worse + SlowRunsTail(slow, candidates, change));
  better = std::min(1., better + SlowRunsTail(slow, baselines, -change));
  ratio->p_two_sided = std::min(1., 2 * std::min(worse, better));
}

// `renamed`: benchmarks have the names that they had before.
PanelRun MetricRows::Read(const proto::Run& run, const ComparedRows* renamed,
                          SamplePart of) const {
  const auto cells = CellsOf(run, of);
  PanelRun read;
  for (const Row* row : rows_) {
    const std::string key = PriorKey(row->key, row->metric);
    const auto found = cells.find(renamed == nullptr ? key : renamed->at(key));
    read.push_back(found == cells.end() ? std::vector<ProcessLog>()
                                        : found->second);
  }
  return read;
}

Panel MetricRows::PanelOf(
    const RunPointers& baseline, const RunPointers& candidate,
    const CompareOptions& options,
    const std::function<PanelRun(const proto::Run&)>& read) const {
  Panel panel;
  for (const proto::Run* run :
       PanelRuns(baseline, candidate, options.history)) {
    if (Contains(baseline, run)) {
      panel.baseline.push_back(static_cast<int>(panel.runs.size()));
    }
    panel.doubts.push_back(tuning::DescribeSettingsChange(
                               run->settings(), candidate.back()->settings())
                                   .empty()
                               ? 0
                               : options.settings_error);
    panel.runs.push_back(read(*run));
  }
  for (const proto::Run* run : candidate) {
    panel.candidate.push_back(read(*run));
  }
  panel.terms = options.terms;
  for (const Row* row : rows_) panel.worse_signs.push_back(WorseSign(*row));
  return panel;
}

MetricRows::MetricRows(const RunPointers& baseline,
                       const RunPointers& candidate,
                       const CompareOptions& options, std::vector<Row*> rows,
                       const ComparedRows& compared, SamplePart of)
    : rows_(std::move(rows)) {
  std::map<const proto::Run*, PanelRun> known;  // two panels have most of them
  const auto read = [&](const proto::Run& run) {
    const auto [found, is_new] = known.try_emplace(&run);
    if (is_new) {
      found->second =
          Read(run, Contains(candidate, &run) ? nullptr : &compared, of);
    }
    return found->second;
  };
  const auto match = [&](Panel* panel) {
    of_fastest_.clear();
    for (size_t j = 0; of == SamplePart::kFastest && j < rows_.size(); ++j) {
      of_fastest_.push_back(MatchReadings(j, panel));
    }
  };
  for (const proto::Run* run :
       PanelRuns(baseline, candidate, options.history)) {
    run_ids_.push_back(run->run_id());
  }
  for (const proto::Run* run : candidate) {
    candidate_ids_.push_back(run->run_id());
  }
  panel_ = PanelOf(baseline, candidate, options, read);
  panel_.window = options.window;
  for (const Row* row : rows_) {
    const std::string start = options.level_start == nullptr
                                  ? ""
                                  : options.level_start(row->key, row->metric);
    const auto place = std::find(run_ids_.begin(), run_ids_.end(), start);
    panel_.level_starts.push_back(
        place == run_ids_.end() ? 0
                                : static_cast<int>(place - run_ids_.begin()));
  }
  match(&panel_);
  estimate_ = EstimateChanges(panel_);
  // A window is a norm, which no candidate is. Other sides may change places.
  if (options.window) return;
  Panel back = PanelOf(candidate, baseline, options, read);
  match(&back);
  estimate_ = MeanOfBothWays(std::move(estimate_), EstimateChanges(back));
}

void MetricRows::SetRatios(double confidence) {
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
                estimate.baseline_runs, WorseSign(row), &ratio);
    ratio.low *= std::exp(estimate.log_ratio_low - estimate.log_ratio);
    ratio.high *= std::exp(estimate.log_ratio_high - estimate.log_ratio);
    ratio.candidate = std::exp(estimate.log_candidate);
    ratio.baseline = ratio.candidate / ratio.ratio;
    ratio.of_fastest = j < of_fastest_.size() && of_fastest_[j];
    ratio.machine = std::exp(estimate.log_machine);
    ratio.process_spread = estimate.process_spread;
    ratio.run_spread = estimate.run_spread;
    ratio.baseline_runs = estimate.baseline_runs;
    row.used_runs.clear();
    for (const int r : estimate.baseline) row.used_runs.insert(run_ids_[r]);
    ratio.baseline_processes = row.baseline.processes;
    ratio.candidate_processes = row.candidate.processes;
    std::vector<double> before, now;
    for (const int r : estimate.baseline) {
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
    row.worse_by = std::expm1(WorseSign(row) * row.ratio->log_ratio);
  }
}

// By how much the best process of row j is worse than the candidate's level, a
// logarithm; NaN where there is none.
double MetricRows::ExcessOf(const PanelRun& run, size_t j) const {
  const BenchmarkEstimate& estimate = estimate_.benchmarks[j];
  double excess = std::numeric_limits<double>::quiet_NaN();
  if (!estimate.possible) return excess;
  for (const ProcessLog& process : run[j]) {
    excess = std::fmin(excess, WorseSign(*rows_[j]) *
                                   (process.value - estimate.log_candidate));
  }
  return excess;
}

MetricRows::SlowRuns MetricRows::SlowRunsOfCandidate(size_t j,
                                                     double least) const {
  SlowRuns slow;
  if (panel_.candidate.size() < 2) return slow;  // its level is its own
  for (size_t r = 0; r < panel_.candidate.size(); ++r) {
    const PanelRun& run = panel_.candidate[r];
    std::vector<double> others;
    for (size_t k = 0; k < rows_.size(); ++k) {
      const double excess = ExcessOf(run, k);
      if (k != j && !std::isnan(excess)) others.push_back(excess);
    }
    const double shared = others.size() < 2 ? 0 : Median(std::move(others));
    const double excess = ExcessOf(run, j) - shared;
    if (!(excess >= least)) continue;
    slow.excess = slow.run_ids.empty() ? excess : std::min(slow.excess, excess);
    slow.run_ids.push_back(candidate_ids_[r]);
  }
  return slow;
}

std::string MetricRows::BaselineText(size_t j) const {
  const BenchmarkEstimate& estimate = estimate_.benchmarks[j];
  std::string text;
  if (!panel_.baseline.empty() &&
      estimate.first_baseline_run > panel_.baseline.front()) {
    absl::StrAppend(&text, "; baseline from run ",
                    run_ids_[estimate.first_baseline_run],
                    " on: the level changed before");
  }
  const int last = estimate.baseline.empty() ? -1 : estimate.baseline.back();
  const auto later =
      std::count_if(panel_.baseline.begin(), panel_.baseline.end(), [&](int r) {
        return last >= 0 && r > last && !panel_.runs[r][j].empty() &&
               !absl::c_linear_search(estimate.far_off, r);
      });
  if (later > 0) {
    absl::StrAppend(&text, "; baseline up to run ", run_ids_[last], ": the ",
                    later, later == 1 ? " run" : " runs",
                    " after it had another level, which nobody has confirmed");
  }
  if (!estimate.far_off.empty()) {
    absl::StrAppend(
        &text, "; run ", run_ids_[estimate.far_off.back()],
        estimate.far_off.size() == 1
            ? ""
            : absl::StrCat(" and ", estimate.far_off.size() - 1, " more"),
        " of the baseline far off, left out");
  }
  if (estimate.candidate_process_spread > 2 * estimate.process_spread) {
    absl::StrAppend(&text, "; the candidate's processes vary by ",
                    FormatShortPercent(estimate.candidate_process_spread),
                    ", earlier ones by ",
                    FormatShortPercent(estimate.process_spread));
  }
  return text;
}

bool MetricRows::HasProcesses() const {
  for (const PanelRun& run : panel_.candidate) {
    for (const auto& cell : run) {
      if (!cell.empty()) return true;
    }
  }
  return false;
}

int MetricRows::processes_per_run() const {
  double processes = 0, cells = 0;
  for (const PanelRun& run : panel_.candidate) {
    for (const auto& cell : run) {
      processes += static_cast<double>(cell.size());
      cells += !cell.empty();
    }
  }
  return cells == 0 ? 1 : std::max(1, static_cast<int>(processes / cells));
}

}  // namespace optrail::tracker
