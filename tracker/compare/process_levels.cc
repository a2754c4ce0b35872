#include "tracker/compare/process_levels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stats/distributions.h"
#include "base/stats/statistics.h"
#include "tracker/compare/robust.h"

namespace optrail::tracker {
namespace {

constexpr double kLeastSpread = 1e-4;  // of processes, in logarithms
// How often a process is slow and by how much, before anything is known.
constexpr SlowValues kSlow = {.3, .1};
// Fewer runs tell less of processes than the candidate does.
constexpr size_t kFewRuns = 4;
// What the error of a correction for neighbours is of it: a process' own, and
// one that all processes of a run share. Loops that ran between the samples
// know twice as well what was there meanwhile.
struct CorrectionError {
  double own, common;
};
constexpr CorrectionError kOfMedians = {.7, .5}, kOfFastest = {.35, .25};

CorrectionError ErrorOf(const MachineState& machine) {
  return machine.fastest ? kOfFastest : kOfMedians;
}

// And of the distance to the next process, where a single one is undisturbed.
constexpr double kLonelyError = .5;
// So improbable a number of slow processes is no chance.
constexpr double kSurprise = .002;

// By how many standard deviations the lowest two of n values differ.
double LowestGap(size_t n) {
  constexpr double kGaps[] = {0, 0, 1.13, .85, .73, .67};
  return n < 6 ? kGaps[n] : .6;
}

// A first guess that slow processes do not move.
double LowestSpread(const std::vector<ValueGroup>& groups) {
  std::vector<double> spreads;
  for (const ValueGroup& group : groups) {
    if (group.values.size() < 2) continue;
    std::vector<double> values = group.values;
    std::partial_sort(values.begin(), values.begin() + 2, values.end());
    spreads.push_back((values[1] - values[0]) / LowestGap(values.size()));
  }
  return spreads.empty() ? 0 : Median(spreads);
}

// Of a group around its median, scaled to the variance of one process: the
// median of n normal values takes up about that much of it.
void AddSpread(const ValueGroup& group, std::vector<double>* deviations) {
  const double n = static_cast<double>(group.values.size());
  if (n < 2) return;
  const double center = Median(group.values);
  const double left = n < 5 ? 1 - 1 / n : 1 - .56 / n;
  for (const double value : group.values) {
    deviations->push_back((value - center) / std::sqrt(left));
  }
}

MachineSlope FitSlope(const ProcessLevels::Cells& runs) {
  std::vector<double> values;
  std::vector<MachineState> states;
  double cells = 0;
  for (const std::vector<ProcessLog>* cell : runs) {
    cells += !cell->empty();
    for (const ProcessLog& process : *cell) {
      if (!process.machine.has_value()) continue;
      values.push_back(process.value);
      states.push_back(*process.machine);
    }
  }
  if (values.empty()) return MachineSlope();
  return MachineSlope::Fit(values, states,
                           static_cast<double>(values.size()) / cells);
}

}  // namespace

ProcessLevels::ProcessLevels(const Cells& runs, const Cells& candidates,
                             bool calibrated, bool loneliness, bool surprise)
    : loneliness_(loneliness), surprise_(surprise) {
  if (calibrated) slope_ = FitSlope(runs);
  std::vector<ValueGroup> groups, candidate_groups;
  double processes = 0, cells = 0;
  for (const auto* cell : runs) {
    groups.push_back(GroupOf(*cell));
    cells += cell->size() > 1;
    processes += cell->size() > 1 ? static_cast<double>(cell->size()) : 0;
  }
  if (cells > 0) processes_ = processes / cells;
  for (const auto* cell : candidates) {
    candidate_groups.push_back(GroupOf(*cell));
  }
  std::vector<double> spread, candidate_spread;
  for (const ValueGroup& group : groups) AddSpread(group, &spread);
  for (const ValueGroup& group : candidate_groups) {
    AddSpread(group, &candidate_spread);
  }
  spread_ = std::sqrt(WinsorisedVariance(spread));
  candidate_spread_ = std::sqrt(WinsorisedVariance(candidate_spread));

  std::vector<ValueGroup> learned = groups;
  if (runs.size() < kFewRuns) {
    learned.insert(learned.end(), candidate_groups.begin(),
                   candidate_groups.end());
  }
  SlowValuesPrior prior;
  // The lowest two of few cells may agree by chance.
  const double few = kFewRuns / (kFewRuns + static_cast<double>(cells));
  std::vector<double> all = spread;
  all.insert(all.end(), candidate_spread.begin(), candidate_spread.end());
  prior.variance = (1 - few) * std::pow(LowestSpread(learned), 2) +
                   few * WinsorisedVariance(all);
  prior.slow = kSlow;
  fit_ = FitSlowValues(learned, prior, kLeastSpread * kLeastSpread);
  for (size_t r = 0; r < groups.size(); ++r) {
    runs_.push_back(LevelOf(*runs[r], groups[r], fit_.levels[r]));
  }
  for (size_t c = 0; c < candidate_groups.size(); ++c) {
    const ValueGroup& group = candidate_groups[c];
    std::vector<double> variances;
    for (const double extra : group.extra_variances) {
      variances.push_back(fit_.variance + extra);
    }
    const LowerLevel found = FindLowerLevel(group.values, variances, fit_.slow);
    candidates_.push_back(LevelOf(*candidates[c], group, found));
    if (surprise_) candidates_.back().variance += Surprise(group, found);
  }
}

ValueGroup ProcessLevels::GroupOf(const std::vector<ProcessLog>& cell) const {
  ValueGroup group;
  for (const ProcessLog& process : cell) {
    const bool known = slope_.exists() && process.machine.has_value();
    group.values.push_back(process.value -
                           (known ? slope_.Explains(*process.machine) : 0));
    group.extra_variances.push_back(
        known ? std::pow(ErrorOf(*process.machine).own *
                             slope_.Disturbance(*process.machine),
                         2)
              : 0);
  }
  return group;
}

RunLevel ProcessLevels::LevelOf(const std::vector<ProcessLog>& cell,
                                const ValueGroup& group,
                                const LowerLevel& found) const {
  RunLevel run;
  run.processes = static_cast<int>(cell.size());
  if (cell.empty()) return run;
  run.level = found.level;
  run.variance = found.variance;
  double total = 0, error = 0;
  for (size_t i = 0; i < cell.size(); ++i) {
    const double weight = (found.undisturbed[i] + 1e-6) /
                          (fit_.variance + group.extra_variances[i]);
    total += weight;
    run.raw += weight * cell[i].value;
    if (!cell[i].machine.has_value()) continue;
    const MachineState& machine = *cell[i].machine;
    error += weight * ErrorOf(machine).common * slope_.Disturbance(machine);
    for (size_t k = 0; k < machine.values.size(); ++k) {
      run.machine.values[k] += weight * machine.values[k];
    }
  }
  run.raw /= total;
  for (double& value : run.machine.values) value /= total;
  // A wrong correction is wrong for all processes of a run.
  run.variance += std::pow(error / total, 2);
  if (loneliness_) {
    run.variance += std::pow(kLonelyError * Loneliness(group, found), 2);
  }
  return run;
}

// By how much the level may be too high because a single process supports it:
// where all others were disturbed, that one may have been.
double ProcessLevels::Loneliness(const ValueGroup& group,
                                 const LowerLevel& found) {
  const double support =
      std::accumulate(found.undisturbed.begin(), found.undisturbed.end(), 0.);
  if (support >= 2 || group.values.size() < 3) return 0;
  std::vector<double> values = group.values;
  std::partial_sort(values.begin(), values.begin() + 2, values.end());
  return std::min(1., 2 - support) * (values[1] - values[0]);
}

// A candidate with more slow processes than chance has is perhaps one whose
// code is slow now and then: its level may be anywhere between.
double ProcessLevels::Surprise(const ValueGroup& group,
                               const LowerLevel& found) const {
  double slow = 0;
  for (const double undisturbed : found.undisturbed) slow += 1 - undisturbed;
  const auto count = static_cast<int64_t>(std::lround(slow));
  const auto all = static_cast<int64_t>(group.values.size());
  if (count == 0 ||
      1 - BinomialCdf(count - 1, all, fit_.slow.share) > kSurprise) {
    return 0;
  }
  return std::pow(Mean(group.values) - found.level, 2);
}

}  // namespace optrail::tracker
