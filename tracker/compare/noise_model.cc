#include "tracker/compare/noise_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stats/statistics.h"
#include "tracker/compare/factor_posterior.h"
#include "tracker/compare/shared_factor.h"
#include "tracker/compare/steps.h"

namespace optrail::tracker {
namespace {

// Everything about the levels of runs, benchmark by benchmark. More is worse.
class Model {
 public:
  explicit Model(const Panel& panel)
      : panel_(panel),
        benchmarks_(static_cast<int>(
            panel.candidate.empty() ? 0 : panel.candidate.front().size())),
        runs_(static_cast<int>(panel.runs.size())) {}

  PanelEstimate Estimate() {
    TakeLevels();
    LearnShared();
    LearnRuns();
    PanelEstimate estimate;
    ScoreCandidates();
    for (int j = 0; j < benchmarks_; ++j) {
      estimate.benchmarks.push_back(EstimateBenchmark(j));
    }
    if (factor_.exists()) estimate.factor_spread = prior_.spread;
    return estimate;
  }

 private:
  // The runs from which a benchmark's level is taken.
  struct Base {
    std::vector<int> runs;
    std::vector<int> far_off;  // more likely bad than not: left out
    LowerLevel level;
  };

  int LevelStart(int j) const {
    return panel_.level_starts.empty() ? 0 : panel_.level_starts[j];
  }

  void TakeLevels() {
    noise_.resize(benchmarks_);
    levels_.assign(runs_, std::vector<double>(benchmarks_));
    extras_ = levels_;
    candidate_levels_.assign(panel_.candidate.size(),
                             std::vector<double>(benchmarks_));
    for (int j = 0; j < benchmarks_; ++j) {
      ProcessLevels::Cells runs, candidates;
      bool calibrated = true;
      absl::optional<bool> fastest;  // of all or of none
      const auto look = [&](const PanelRun& run) {
        for (const ProcessLog& process : run[j]) {
          calibrated = calibrated && process.machine.has_value() &&
                       process.machine->fastest ==
                           fastest.value_or(process.machine->fastest);
          if (calibrated) fastest = process.machine->fastest;
        }
      };
      for (const PanelRun& run : panel_.runs) runs.push_back(&run[j]);
      for (const PanelRun& run : panel_.candidate) {
        candidates.push_back(&run[j]);
        look(run);
      }
      for (const int r : panel_.baseline) look(panel_.runs[r]);
      processes_.emplace_back(runs, candidates,
                              calibrated && panel_.terms.calibration,
                              panel_.terms.loneliness, panel_.terms.surprise);
      const ProcessLevels& found = processes_.back();
      std::vector<double> variances;
      for (const RunLevel& run : found.runs()) {
        if (run.processes > 0) variances.push_back(run.variance);
      }
      usual_variance_.push_back(variances.empty() ? found.variance()
                                                  : Median(variances));
      for (int r = 0; r < runs_; ++r) {
        levels_[r][j] = found.runs()[r].level;
        extras_[r][j] = ExtraVariance(j, found.runs()[r]);
      }
      for (size_t c = 0; c < candidates.size(); ++c) {
        candidate_levels_[c][j] = found.candidates()[c].level;
      }
      noise_[j].variance =
          ExpectedRunVariance(found.variance(), found.processes());
    }
  }

  // A run whose processes tell less than usual is less sure than others.
  double ExtraVariance(int j, const RunLevel& run) const {
    return std::max(0., run.variance - usual_variance_[j]);
  }

  // The factor and the steps of levels depend on each other: two turns.
  void LearnShared() {
    centers_.assign(benchmarks_, std::vector<double>(runs_, 0));
    rests_ = levels_;
    shifts_.assign(runs_, std::vector<double>(benchmarks_, 0));
    for (int turn = 0; turn < 2; ++turn) {
      FindSteps();
      Deviations deviations = levels_;
      for (int r = 0; r < runs_; ++r) {
        for (int j = 0; j < benchmarks_; ++j) {
          deviations[r][j] -= centers_[j][r];
        }
      }
      if (panel_.terms.shared_factor) {
        factor_ = SharedFactor::Fit(deviations, kLeastRunSpread);
      } else {
        factor_ = SharedFactor::None(benchmarks_);
      }
      factors_.assign(runs_, 0);
      for (int r = 0; r < runs_; ++r) {
        const SharedFactor::Score score = factor_.ScoreOf(deviations[r]);
        factors_[r] = score.factor;
        for (int j = 0; j < benchmarks_; ++j) {
          shifts_[r][j] = factor_.loading(j) * score.without[j];
          rests_[r][j] = levels_[r][j] - shifts_[r][j];
        }
      }
    }
    FindSteps();
  }

  // Stretches between steps, and their levels by run.
  void FindSteps() {
    stretches_.assign(benchmarks_, {});
    for (int j = 0; j < benchmarks_; ++j) {
      std::vector<double> values;
      std::vector<int> places;
      for (int r = 0; r < runs_; ++r) {
        if (std::isnan(rests_[r][j])) continue;
        values.push_back(rests_[r][j]);
        places.push_back(r);
      }
      const std::vector<int> starts =
          panel_.terms.steps
              ? FindLevelSteps(values, std::sqrt(noise_[j].variance))
              : std::vector<int>{0};
      for (size_t s = 0; s < starts.size(); ++s) {
        const size_t end =
            s + 1 < starts.size() ? starts[s + 1] : values.size();
        stretches_[j].emplace_back(places.begin() + starts[s],
                                   places.begin() + end);
      }
      SetCenters(j);
    }
  }

  void SetCenters(int j) {
    for (size_t s = 0; s < stretches_[j].size(); ++s) {
      const std::vector<int>& stretch = stretches_[j][s];
      if (stretch.empty()) continue;
      const double center = LevelOver(j, stretch).level;
      const int first = s == 0 ? 0 : stretch.front();
      const int last =
          s + 1 < stretches_[j].size() ? stretches_[j][s + 1].front() : runs_;
      for (int r = first; r < last; ++r) centers_[j][r] = center;
    }
  }

  ValueGroup GroupOf(int j, const std::vector<int>& runs) const {
    ValueGroup group;
    for (const int r : runs) {
      group.values.push_back(rests_[r][j]);
      group.extra_variances.push_back(extras_[r][j]);
    }
    return group;
  }

  LowerLevel LevelOver(int j, const std::vector<int>& runs) const {
    ValueGroup group = GroupOf(j, runs);
    for (double& extra : group.extra_variances) extra += noise_[j].variance;
    return FindLowerLevel(group.values, group.extra_variances, noise_[j].slow);
  }

  void LearnRuns() {
    std::vector<BenchmarkRuns> benchmarks;
    for (int j = 0; j < benchmarks_; ++j) {
      BenchmarkRuns& runs = benchmarks.emplace_back();
      runs.places = stretches_[j];
      for (const std::vector<int>& stretch : stretches_[j]) {
        runs.stretches.push_back(GroupOf(j, stretch));
      }
      // Several runs of the candidate tell about noise, too; of a suite with a
      // factor they don't, for it is not out yet.
      for (const std::vector<double>& run : candidate_levels_) {
        if (factor_.exists() || std::isnan(run[j])) continue;
        runs.candidates.values.push_back(run[j]);
        runs.candidates.extra_variances.push_back(0);
      }
      const ProcessLevels& processes = processes_[j];
      runs.expected_variance = noise_[j].variance;
      runs.slow_processes = processes.slow();
      runs.processes = processes.processes();
      runs.calibrated = processes.slope().exists();
    }
    noise_ = LearnRunNoise(benchmarks, factor_.exists());
    for (int j = 0; j < benchmarks_; ++j) SetCenters(j);
  }

  Base BaseOf(int j) const {
    Base base;
    for (const int r : panel_.baseline) {
      if (!std::isnan(rests_[r][j]) && r >= LevelStart(j)) {
        base.runs.push_back(r);
      }
    }
    if (panel_.window) base.runs = CurrentLevel(j, std::move(base.runs));
    base.level = LevelOver(j, base.runs);
    std::vector<int> near;
    for (size_t i = 0; i < base.runs.size(); ++i) {
      (base.level.undisturbed[i] < .5 ? base.far_off : near)
          .push_back(base.runs[i]);
    }
    if (near.empty()) base.far_off.clear();
    if (base.far_off.empty()) return base;
    base.runs = std::move(near);
    base.level = LevelOver(j, base.runs);
    return base;
  }

  // The last stretch of a window, unless it is worse than the one before: what
  // became worse and was never confirmed or acknowledged is no norm.
  std::vector<int> CurrentLevel(int j, std::vector<int> runs) const {
    if (runs.empty()) return runs;
    double level = centers_[j][runs.front()];
    int first = 0, end = static_cast<int>(runs.size());
    for (size_t i = 1; i < runs.size(); ++i) {
      const double next = centers_[j][runs[i]];
      if (next == centers_[j][runs[i - 1]]) continue;
      if (next < level) {
        first = static_cast<int>(i);
        end = static_cast<int>(runs.size());
        level = next;
      } else {
        end = std::min(end, static_cast<int>(i));
      }
    }
    return {runs.begin() + first, runs.begin() + end};
  }

  void ScoreCandidates() {
    bases_.clear();
    for (int j = 0; j < benchmarks_; ++j) bases_.push_back(BaseOf(j));
    if (factor_.exists()) prior_ = PriorOfFactor();
    for (const std::vector<double>& run : candidate_levels_) {
      candidate_scores_.push_back(ScoreOf(run));
    }
  }

  FactorPosterior ScoreOf(std::vector<double> run) const {
    FactorPosterior score;
    score.without.assign(benchmarks_, 0);
    if (!factor_.exists()) return score;
    std::vector<FactorBenchmark> benchmarks;
    for (int j = 0; j < benchmarks_; ++j) {
      run[j] -= bases_[j].level.level;
      benchmarks.push_back({run[j], factor_.loading(j),
                            factor_.loading_variance(j),
                            noise_[j].variance + bases_[j].level.variance});
    }
    score = PosteriorOf(benchmarks, prior_);
    // The learned noise holds, unless the posterior excludes that.
    const SharedFactor::Score usual = factor_.ScoreOf(run);
    const double error = 3 * std::sqrt(score.variance);
    if (usual.factor > score.low - error && usual.factor < score.high + error) {
      score.factor = usual.factor;
      // Between two modes nothing agrees, and the error is that of the prior.
      if (score.variance > .5 * prior_.spread * prior_.spread) {
        score.variance = usual.variance;
      }
      score.without = usual.without;
    }
    return score;
  }

  // What the history shows of the factor, and how unsure calibration leaves it
  // at the candidate's state of the machine.
  FactorPrior PriorOfFactor() const {
    std::vector<double> slope_variances;
    for (int j = 0; j < benchmarks_; ++j) {
      const MachineSlope& slope = processes_[j].slope();
      if (!slope.exists() || bases_[j].runs.empty() || !InCandidate(j)) {
        continue;
      }
      slope_variances.push_back(slope.VarianceOf(StateStep(j, bases_[j].runs)));
    }
    return PriorOf(factors_, factor_.variance(),
                   slope_variances.empty() ? 0 : Median(slope_variances));
  }

  // By how much the machine may have done less (`lower`) or more to benchmark j
  // than its estimate, on the mean of the candidate's runs.
  double FactorDoubt(int j, bool lower) const {
    if (!panel_.terms.factor_doubt) return 0;
    std::vector<double> doubts;
    for (size_t c = 0; c < candidate_scores_.size(); ++c) {
      if (processes_[j].candidates()[c].processes == 0) continue;
      doubts.push_back(candidate_scores_[c].Doubt(lower));
    }
    return doubts.empty() ? 0 : std::abs(factor_.loading(j)) * Mean(doubts);
  }

  BenchmarkEstimate EstimateBenchmark(int j) const {
    BenchmarkEstimate estimate;
    const RunNoise& noise = noise_[j];
    const Base& base = bases_[j];
    const ProcessLevels& found = processes_[j];
    estimate.process_spread = found.spread();
    estimate.candidate_process_spread = found.candidate_spread();
    estimate.run_spread = std::sqrt(noise.variance);
    estimate.baseline_runs = static_cast<int>(base.runs.size());
    estimate.baseline = base.runs;
    estimate.far_off = base.far_off;
    estimate.slow_runs = noise.slow;
    if (!panel_.terms.bad_runs) estimate.slow_runs.share = 0;
    if (!base.runs.empty()) estimate.first_baseline_run = base.runs.front();
    if (!base.far_off.empty()) {
      estimate.first_baseline_run =
          std::min(base.runs.front(), base.far_off.front());
    }

    std::vector<double> rests, variances, raw, shifts;
    for (size_t c = 0; c < panel_.candidate.size(); ++c) {
      const RunLevel& run = found.candidates()[c];
      if (run.processes == 0) continue;
      shifts.push_back(candidate_scores_[c].without[j]);
      rests.push_back(run.level - factor_.loading(j) * shifts.back());
      variances.push_back(noise.variance + ExtraVariance(j, run));
      raw.push_back(run.raw);
    }
    if (rests.empty() || base.runs.empty() || noise.degrees < 1 ||
        found.degrees() + runs_ < 2) {
      return estimate;
    }
    estimate.possible = true;
    const LowerLevel candidate = FindLowerLevel(rests, variances, noise.slow);
    estimate.candidate_runs = static_cast<int>(rests.size());
    estimate.log_ratio = candidate.level - base.level.level;
    if (panel_.window && !base.far_off.empty() &&
        base.far_off.back() > base.runs.back()) {
      const double newest = rests_[base.far_off.back()][j];
      if (newest < base.level.level) {
        estimate.worse_than_newest = candidate.level - newest;
      }
    }
    const bool follows = factor_.loading(j) >= 0;
    estimate.log_ratio_low =
        estimate.log_ratio - FactorDoubt(j, /*lower=*/!follows);
    estimate.log_ratio_high =
        estimate.log_ratio + FactorDoubt(j, /*lower=*/follows);
    double variance = base.level.variance + std::pow(DoubtOf(base), 2);
    if (factor_.exists()) {
      std::vector<double> base_shifts;
      for (const int r : base.runs) base_shifts.push_back(shifts_[r][j]);
      const double loading = factor_.loading(j);
      const double before =
          Median(base_shifts) / (std::abs(loading) < .05 ? .05 : loading);
      variance +=
          factor_.loading_variance(j) * std::pow(Mean(shifts) - before, 2);
    }
    if (found.slope().exists()) {
      variance += found.slope().VarianceOf(StateStep(j, base.runs));
    }
    variance += candidate.variance;
    estimate.log_candidate = Weighted(raw, candidate.undisturbed);
    std::vector<double> raw_base;
    for (const int r : base.runs) raw_base.push_back(found.runs()[r].raw);
    estimate.log_machine = estimate.log_candidate -
                           Weighted(raw_base, base.level.undisturbed) -
                           estimate.log_ratio;
    estimate.standard_error = std::sqrt(variance);
    estimate.degrees_of_freedom = noise.degrees;
    return estimate;
  }

  // One error of all runs that have it: more of them make it no smaller.
  double DoubtOf(const Base& base) const {
    if (panel_.doubts.empty()) return 0;
    std::vector<double> doubts;
    for (const int r : base.runs) doubts.push_back(panel_.doubts[r]);
    return Weighted(doubts, base.level.undisturbed);
  }

  static double Weighted(const std::vector<double>& values,
                         const std::vector<double>& weights) {
    double sum = 0, total = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += (weights[i] + 1e-6) * values[i];
      total += weights[i] + 1e-6;
    }
    return sum / total;
  }

  // How much further than that of `runs` the candidate's machine state is.
  MachineState StateStep(int j, const std::vector<int>& runs) const {
    const auto middle = [](const std::vector<RunLevel>& all,
                           const std::vector<int>& places, size_t witness) {
      std::vector<double> values;
      for (const int place : places) {
        if (all[place].processes == 0) continue;
        values.push_back(all[place].machine.values[witness]);
      }
      return Median(values);
    };
    const ProcessLevels& found = processes_[j];
    std::vector<int> all;
    for (size_t c = 0; c < found.candidates().size(); ++c) {
      all.push_back(static_cast<int>(c));
    }
    MachineState step;
    for (size_t k = 0; k < step.values.size(); ++k) {
      step.values[k] =
          middle(found.candidates(), all, k) - middle(found.runs(), runs, k);
    }
    return step;
  }

  bool InCandidate(int j) const {
    const std::vector<RunLevel>& runs = processes_[j].candidates();
    return std::any_of(runs.begin(), runs.end(),
                       [](const RunLevel& run) { return run.processes > 0; });
  }

  const Panel& panel_;
  const int benchmarks_;
  const int runs_;
  std::vector<ProcessLevels> processes_;
  std::vector<double> usual_variance_;  // of a run's level, by its processes
  std::vector<RunNoise> noise_;
  Deviations levels_, candidate_levels_;  // [run][benchmark], the calibrated
  Deviations extras_;                     // variances beyond the usual one
  Deviations rests_;                      // levels without what is shared
  Deviations shifts_;                     // what is shared
  std::vector<std::vector<double>> centers_;  // [benchmark][run]
  std::vector<std::vector<std::vector<int>>> stretches_;
  SharedFactor factor_;
  std::vector<double> factors_;
  std::vector<Base> bases_;
  FactorPrior prior_;
  std::vector<FactorPosterior> candidate_scores_;
};

// So that more is worse for every benchmark.
Panel Oriented(Panel panel) {
  for (std::vector<PanelRun>* runs : {&panel.runs, &panel.candidate}) {
    for (PanelRun& run : *runs) {
      for (size_t j = 0; j < run.size(); ++j) {
        if (panel.worse_signs[j] > 0) continue;
        for (ProcessLog& process : run[j]) process.value = -process.value;
      }
    }
  }
  return panel;
}

}  // namespace

PanelEstimate EstimateChanges(const Panel& panel) {
  if (std::all_of(panel.worse_signs.begin(), panel.worse_signs.end(),
                  [](int sign) { return sign > 0; })) {
    return Model(panel).Estimate();
  }
  const Panel oriented = Oriented(panel);
  PanelEstimate estimate = Model(oriented).Estimate();
  for (size_t j = 0; j < estimate.benchmarks.size(); ++j) {
    if (panel.worse_signs[j] > 0) continue;
    BenchmarkEstimate& one = estimate.benchmarks[j];
    std::swap(one.log_ratio_low, one.log_ratio_high);
    for (double* log : {&one.log_ratio, &one.log_ratio_low, &one.log_ratio_high,
                        &one.log_machine, &one.log_candidate}) {
      *log = -*log;
    }
  }
  return estimate;
}

}  // namespace optrail::tracker
