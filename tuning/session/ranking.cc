#include "tuning/session/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/statistics.h"

namespace optrail::tuning {

SequentialHalving::SequentialHalving(int members, int readings)
    : log_costs_(members), readings_left_(readings) {
  alive_.resize(members);
  std::iota(alive_.begin(), alive_.end(), 0);
  for (int n = members; n > 1; n = (n + 1) / 2) ++stages_left_;
  StartStage();
}

void SequentialHalving::StartStage() {
  rounds_left_ = 0;
  while (stages_left_ > 0 && rounds_left_ == 0) {
    const int n = static_cast<int>(alive_.size());
    if (n < 2) return;
    rounds_left_ = std::min(readings_left_ / n,
                            std::max(1, readings_left_ / stages_left_ / n));
    if (rounds_left_ == 0) EndStage();
  }
}

void SequentialHalving::EndStage() {
  --stages_left_;
  std::vector<double> scores(log_costs_.size());
  for (const int member : alive_) scores[member] = Score(member);
  std::stable_sort(alive_.begin(), alive_.end(),
                   [&](int a, int b) { return scores[a] < scores[b]; });
  const size_t half = (alive_.size() + 1) / 2;
  left_.insert(left_.begin(), alive_.begin() + half, alive_.end());
  alive_.resize(half);
}

std::vector<int> SequentialHalving::NextRound() const {
  if (done()) return {};
  std::vector<int> round = alive_;
  std::rotate(round.begin(), round.begin() + rounds_ % round.size(),
              round.end());
  return round;
}

void SequentialHalving::AddRound(const std::map<int, double>& costs) {
  for (const auto& [member, cost] : costs) {
    log_costs_[member].push_back(std::log(cost));
  }
  readings_left_ -= static_cast<int>(alive_.size());
  ++rounds_;
  if (--rounds_left_ > 0 && !alive_.empty()) return;
  EndStage();
  StartStage();
}

void SequentialHalving::Disqualify(int member) {
  alive_.erase(std::remove(alive_.begin(), alive_.end(), member), alive_.end());
  left_.erase(std::remove(left_.begin(), left_.end(), member), left_.end());
  if (alive_.size() < 2) rounds_left_ = 0;
}

double SequentialHalving::Score(int member) const {
  const std::vector<double>& values = log_costs_[member];
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) {
      means.push_back(.5 * (values[i] + values[j]));
    }
  }
  return Median(means);
}

std::vector<int> SequentialHalving::Order() const {
  std::vector<int> order = alive_;
  order.insert(order.end(), left_.begin(), left_.end());
  return order;
}

}  // namespace optrail::tuning
