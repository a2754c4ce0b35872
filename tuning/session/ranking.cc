#include "tuning/session/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/stats/distributions.h"
#include "base/stats/statistics.h"

namespace optrail::tuning {

int ReadingsWanted(double spread) {
  constexpr double kQuantile95 = 1.645;
  const double in_units = kQuantile95 * spread / kWorthFinding;
  return static_cast<int>(
      std::ceil(std::min<double>(2 * in_units * in_units, kMostRankReadings)));
}

SequentialHalving::SequentialHalving(int members, int readings)
    : readings_left_(readings) {
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

void SequentialHalving::Sort() {
  const std::map<int, double> scores = Scores();
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [member, score] : scores) best = std::min(best, score);
  const auto key = [&](int member) {
    const double score = scores.at(member);
    return std::make_pair(score <= best + kEqualWithin ? best : score, member);
  };
  std::sort(alive_.begin(), alive_.end(),
            [&](int a, int b) { return key(a) < key(b); });
}

void SequentialHalving::EndStage() {
  --stages_left_;
  Sort();
  const size_t half = (alive_.size() + 1) / 2;
  left_.insert(left_.begin(), alive_.begin() + half, alive_.end());
  alive_.resize(half);
}

std::vector<int> SequentialHalving::NextRound() const {
  if (done()) return {};
  std::vector<int> round = alive_;
  std::rotate(round.begin(), round.begin() + rounds() % round.size(),
              round.end());
  return round;
}

void SequentialHalving::AddRound(const std::map<int, double>& costs) {
  log_costs_.emplace_back();
  for (const auto& [member, cost] : costs) {
    log_costs_.back()[member] = std::log(cost);
  }
  readings_ += static_cast<int>(alive_.size());
  readings_left_ -= static_cast<int>(alive_.size());
  if (IsSettled()) {
    Stop();
    return;
  }
  if (--rounds_left_ > 0 && !alive_.empty()) return;
  EndStage();
  StartStage();
}

void SequentialHalving::Stop() {
  if (done()) return;
  readings_left_ = 0;
  EndStage();
  StartStage();
}

std::map<int, double> SequentialHalving::Scores() const {
  std::map<int, double> scores;
  for (const int member : alive_) scores[member] = Score(member);
  return scores;
}

bool SequentialHalving::IsSettled() const {
  // The rounds in which all were read.
  std::vector<std::vector<double>> rounds;
  for (const std::map<int, double>& costs : log_costs_) {
    std::vector<double> round;
    for (const int member : alive_) {
      const auto found = costs.find(member);
      if (found != costs.end()) round.push_back(found->second);
    }
    if (round.size() == alive_.size()) rounds.push_back(std::move(round));
  }
  const size_t n = rounds.size(), members = alive_.size();
  if (n < kLeastRankRounds || members < 2) return false;
  std::vector<double> means(members);
  for (const std::vector<double>& round : rounds) {
    for (size_t j = 0; j < members; ++j) means[j] += round[j] / n;
  }
  // The sum of squares that neither a member nor a round explains.
  double squares = 0;
  for (const std::vector<double>& round : rounds) {
    const double shared = Mean(round) - Mean(means);
    for (size_t j = 0; j < members; ++j) {
      const double rest = round[j] - means[j] - shared;
      squares += rest * rest;
    }
  }
  const auto freedom = static_cast<double>((n - 1) * (members - 1));
  const double error = std::sqrt(2 * squares / freedom / n);
  const double within = StudentTQuantile(.975, freedom) * error;
  if (within > kSettledWithin) return false;
  // The first by its score, which an outlier may have put before others. A lead
  // is no excuse for noise: that of three rounds may be luck.
  const std::map<int, double> scores = Scores();
  const auto first = std::min_element(
      alive_.begin(), alive_.end(),
      [&](int a, int b) { return scores.at(a) < scores.at(b); });
  const double behind = means[first - alive_.begin()] -
                        *std::min_element(means.begin(), means.end());
  return behind + within <= kSettledWithin;
}

void SequentialHalving::Disqualify(int member) {
  alive_.erase(std::remove(alive_.begin(), alive_.end(), member), alive_.end());
  left_.erase(std::remove(left_.begin(), left_.end(), member), left_.end());
  if (alive_.size() < 2) rounds_left_ = 0;
}

double SequentialHalving::Score(int member) const {
  std::vector<double> values;
  for (const std::map<int, double>& round : log_costs_) {
    const auto found = round.find(member);
    if (found != round.end()) values.push_back(found->second);
  }
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> means;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) {
      means.push_back(.5 * (values[i] + values[j]));
    }
  }
  return Median(means);
}

double SequentialHalving::Spread() const {
  // How the difference of two members changes from one round to the next holds
  // neither what the members are like nor what a round is.
  std::vector<double> changes;
  for (size_t r = 1; r < log_costs_.size(); ++r) {
    const std::map<int, double>& before = log_costs_[r - 1];
    const std::map<int, double>& after = log_costs_[r];
    for (auto a = after.begin(); a != after.end(); ++a) {
      for (auto b = after.begin(); b != a; ++b) {
        if (before.count(a->first) == 0 || before.count(b->first) == 0) {
          continue;
        }
        changes.push_back(
            std::abs((a->second - b->second) -
                     (before.at(a->first) - before.at(b->first))));
      }
    }
  }
  // The median of |N(0, 1)|; four readings make a change.
  constexpr double kMedianOfNormal = .6745;
  return changes.empty() ? 0 : Median(changes) / kMedianOfNormal / 2;
}

std::vector<int> SequentialHalving::Order() const {
  std::vector<int> order = alive_;
  order.insert(order.end(), left_.begin(), left_.end());
  return order;
}

}  // namespace optrail::tuning
