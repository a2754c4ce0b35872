#include "tuning/search/shared_winners.h"

#include <algorithm>
#include <cmath>

namespace optrail::tuning {
namespace {

// The first config of a sibling may save this much, before the two have any
// config in common.
constexpr double kFirstGain = 0.2;
// A trial is worth no less than this.
constexpr double kLeastGain = 0.01;

}  // namespace

SharedWinners::SharedWinners(std::vector<std::vector<int>> siblings) {
  for (std::vector<int>& of_task : siblings) {
    State state;
    state.siblings = std::move(of_task);
    states_.push_back(std::move(state));
  }
}

void SharedWinners::SetCommon(int sibling, int task, double there,
                              double here) {
  common_[{sibling, task}] = {there, here};
  common_[{task, sibling}] = {here, there};
}

void SharedWinners::Report(int task, absl::string_view best_config,
                           double best_cost, bool answered) {
  State& state = states_[task];
  state.best_config = std::string(best_config);
  state.best_cost = best_cost;
  if (!state.under_way || !answered) return;
  ++state.tried;
  if (state.best_config == state.under_way->config) ++state.became_best;
  // The task has something at least as good as the config now.
  SetCommon(state.under_way->from, task, state.cost_there, best_cost);
  state.under_way.reset();
}

double SharedWinners::GainFrom(int sibling, int task) const {
  const State& from = states_[sibling];
  const State& to = states_[task];
  if (!from.best_cost || from.best_config == to.best_config ||
      to.taken.count(from.best_config) > 0) {
    return 0;
  }
  double gain = kFirstGain;
  const auto common = common_.find({sibling, task});
  if (common != common_.end() && to.best_cost) {
    gain = std::log(common->second.there / *from.best_cost) -
           std::log(common->second.here / *to.best_cost);
  }
  const double trust = (1.0 + to.became_best) / (2.0 + to.tried);
  return trust * gain;
}

absl::optional<SharedWinners::Offer> SharedWinners::For(int task) const {
  const State& state = states_[task];
  if (state.under_way) return absl::nullopt;
  absl::optional<Offer> best;
  for (const int sibling : state.siblings) {
    const double gain = GainFrom(sibling, task);
    if (gain < kLeastGain || (best && gain <= best->gain)) continue;
    best = Offer{sibling, states_[sibling].best_config, gain};
  }
  return best;
}

void SharedWinners::Take(int task, const Offer& offer) {
  State& state = states_[task];
  state.taken.insert(offer.config);
  state.under_way = offer;
  state.cost_there = *states_[offer.from].best_cost;
}

void SharedWinners::Refuse(int task) {
  State& state = states_[task];
  if (!state.under_way) return;
  if (state.best_cost) {
    SetCommon(state.under_way->from, task, state.cost_there, *state.best_cost);
  }
  state.under_way.reset();
}

}  // namespace optrail::tuning
