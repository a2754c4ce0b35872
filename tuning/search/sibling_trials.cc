#include "tuning/search/sibling_trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kMostTrials = 150;
// Room that each sibling has.
constexpr int kRoom = kMostTrials / kMostSiblings;

// Log costs of a sibling's successes.
std::vector<double> LogsOf(absl::Span<const SiblingTrial> trials, int sibling) {
  std::vector<double> logs;
  for (const SiblingTrial& trial : trials) {
    if (trial.sibling == sibling && std::isfinite(trial.log_cost)) {
      logs.push_back(trial.log_cost);
    }
  }
  return logs;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// How much more a config costs there than here.
double OffsetOf(absl::Span<const SiblingTrial> trials, int sibling,
                absl::FunctionRef<double(const Levels&)> cost_of,
                absl::optional<double> mean_log) {
  double sum = 0;
  int common = 0;
  for (const SiblingTrial& trial : trials) {
    if (trial.sibling != sibling || !std::isfinite(trial.log_cost)) continue;
    const double own = cost_of(trial.levels);
    if (!(own > 0) || !std::isfinite(own)) continue;
    sum += trial.log_cost - std::log(own);
    ++common;
  }
  if (common > 0) return sum / common;
  return mean_log ? MeanOf(LogsOf(trials, sibling)) - *mean_log : 0;
}

}  // namespace

int SiblingTrials::CountOf(int sibling) const {
  return static_cast<int>(std::count_if(
      trials_.begin(), trials_.end(),
      [=](const SiblingTrial& trial) { return trial.sibling == sibling; }));
}

void SiblingTrials::DropOne() {
  int most = 0;
  for (int k = 1; k < kMostSiblings; ++k) {
    if (CountOf(k) > CountOf(most)) most = k;
  }
  const auto last = std::find_if(
      trials_.rbegin(), trials_.rend(),
      [=](const SiblingTrial& trial) { return trial.sibling == most; });
  trials_.erase(std::next(last).base());
}

void SiblingTrials::Add(SiblingTrial trial) {
  if (trial.sibling < 0 || trial.sibling >= kMostSiblings) return;
  if (static_cast<int>(trials_.size()) >= kMostTrials) {
    if (CountOf(trial.sibling) >= kRoom) return;
    DropOne();
  }
  trials_.push_back(std::move(trial));
}

std::vector<SiblingTrial> SiblingTrials::Usable() const {
  std::array<bool, kMostSiblings> works = {};
  for (const SiblingTrial& trial : trials_) {
    works[trial.sibling] |= std::isfinite(trial.log_cost);
  }
  std::vector<SiblingTrial> usable;
  for (const SiblingTrial& trial : trials_) {
    if (works[trial.sibling]) usable.push_back(trial);
  }
  return usable;
}

std::vector<double> LogCostsHere(
    absl::Span<const SiblingTrial> trials,
    absl::FunctionRef<double(const Levels&)> cost_of,
    absl::optional<double> mean_log) {
  std::array<double, kMostSiblings> offsets = {}, caps = {};
  for (int k = 0; k < kMostSiblings; ++k) {
    std::vector<double> logs = LogsOf(trials, k);
    if (logs.empty()) continue;
    std::sort(logs.begin(), logs.end());
    caps[k] = logs[static_cast<size_t>(kCapQuantile *
                                       static_cast<double>(logs.size() - 1))];
    offsets[k] = OffsetOf(trials, k, cost_of, mean_log);
  }
  std::vector<double> here;
  for (const SiblingTrial& trial : trials) {
    const int k = trial.sibling;
    here.push_back(std::min(trial.log_cost, caps[k]) - offsets[k]);
  }
  return here;
}

SiblingSpread SpreadOf(absl::Span<const SiblingTrial> trials) {
  SiblingSpread spread;
  for (int k = 0; k < kMostSiblings; ++k) {
    const std::vector<double> logs = LogsOf(trials, k);
    if (logs.size() < 2) continue;
    const double mean = MeanOf(logs);
    for (const double log : logs) spread.squares += (log - mean) * (log - mean);
    spread.freedom += static_cast<int>(logs.size()) - 1;
  }
  return spread;
}

}  // namespace optrail::tuning
