#include "tracker/bisect/noisy_bisection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/check.h"
#include "base/stats/distributions.h"

namespace optrail::tracker {
namespace {

// At either side of the answer.
constexpr int kLooks = 2;

double NormalDensity(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return std::exp(-.5 * z * z) / (sigma * std::sqrt(2 * M_PI));
}

}  // namespace

double WidenedStandardError(double standard_error, int rounds) {
  OPTRAIL_CHECK(rounds >= 2) << "rounds is " << rounds;
  constexpr double kTail = .975;
  return standard_error * StudentTQuantile(kTail, rounds - 1) /
         NormalQuantile(kTail);
}

NoisyBisection::NoisyBisection(int commits, const BisectOptions& options)
    : commits_(commits),
      options_(options),
      posterior_(commits + 1, 1. / commits),
      states_(commits + 1, State::kUnknown),
      looks_(commits + 1),
      failed_(commits + 1) {
  OPTRAIL_CHECK(commits >= 1) << "commits is " << commits;
  OPTRAIL_CHECK(options.log_effect != 0) << "there is nothing to look for";
  posterior_[0] = 0;
  const double effect = std::abs(options.log_effect);
  const double error = options.expected_standard_error > 0
                           ? options.expected_standard_error
                           : effect / 4;
  separation_ = effect / std::hypot(error, options.level_spread * effect);
}

// Of one look at a commit that is bad with this probability, in nats: the
// entropy of what will be read less that of its noise, by the midpoint rule.
double NoisyBisection::ExpectedInformation(double probability_bad) const {
  constexpr double kReach = 5;
  constexpr int kSteps = 80;
  const double width = (separation_ + 2 * kReach) / kSteps;
  double information = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = -kReach + (i + .5) * width;
    const double good = NormalDensity(x, 0, 1);
    const double bad = NormalDensity(x, separation_, 1);
    const double both = (1 - probability_bad) * good + probability_bad * bad;
    information +=
        width * ((1 - probability_bad) * good * std::log(good / both) +
                 probability_bad * bad * std::log(bad / both));
  }
  return std::max(0., information);
}

std::vector<int> NoisyBisection::Unconfirmed(const BisectAnswer& answer) const {
  std::vector<int> commits;
  for (const int commit : {answer.last, answer.first - 1}) {
    if (commit < 1 || commit >= commits_ || states_[commit] != State::kBuilt) {
      continue;
    }
    for (int look = looks_[commit]; look < kLooks; ++look) {
      commits.push_back(commit);
    }
  }
  return commits;
}

// The neighbours of a commit that does not build are likely to have what it
// has.
std::vector<int> NoisyBisection::DistancesToSkipped() const {
  std::vector<int> distance(commits_ + 1, commits_);
  for (int i = 1, last = -commits_; i <= commits_; ++i) {
    if (states_[i] == State::kSkipped) last = i;
    distance[i] = std::min(distance[i], i - last);
  }
  for (int i = commits_, last = 2 * commits_; i >= 1; --i) {
    if (states_[i] == State::kSkipped) last = i;
    distance[i] = std::min(distance[i], last - i);
  }
  return distance;
}

// A look at one of `others` is taken to tell without doubt on which side of it
// the culprit is. Then a commit between two of them tells something only if the
// culprit is between these.
absl::optional<int> NoisyBisection::BestBeside(
    const std::vector<int>& others) const {
  const std::vector<int> distance = DistancesToSkipped();
  std::vector<double> up_to(commits_ + 1);
  std::partial_sum(posterior_.begin(), posterior_.end(), up_to.begin());
  up_to[commits_] = 1;
  absl::optional<int> best;
  double best_value = 1e-9;
  size_t above = 0;  // the first of the others that is no lower
  for (int i = 1; i < commits_; ++i) {
    while (above < others.size() && others[above] < i) ++above;
    if (above < others.size() && others[above] == i) continue;
    if (states_[i] == State::kSkipped || failed_[i] >= kLooks) continue;
    const double low = above == 0 ? 0 : up_to[others[above - 1]];
    const double high = above == others.size() ? 1 : up_to[others[above]];
    const double between = high - low;
    if (!(between > 0)) continue;
    const double p = std::clamp((up_to[i] - low) / between, 0., 1.);
    if (p <= 0 || p >= 1) continue;
    const bool built = states_[i] == State::kBuilt;
    const double builds_with = built ? 1 : 1 - std::exp2(-distance[i]);
    const double cost = 1 + (built ? 0 : options_.build_cost);
    const double weight = between * builds_with / cost;
    // A commit that can't be better need not be worked out: information is at
    // most the entropy of good or bad.
    const double bound = -(p * std::log(p) + (1 - p) * std::log1p(-p)) * weight;
    if (bound <= best_value) continue;
    const double value = ExpectedInformation(p) * weight;
    if (value > best_value) {
      best_value = value;
      best = i;
    }
  }
  return best;
}

absl::optional<int> NoisyBisection::Next() const {
  const std::vector<int> batch = NextBatch(1);
  if (batch.empty()) return absl::nullopt;
  return batch[0];
}

std::vector<int> NoisyBisection::NextBatch(int most) const {
  most = std::min(most, options_.max_measurements - measurements_);
  if (most <= 0) return {};
  const BisectAnswer answer = Answer();
  if (answer.is_sure) {
    std::vector<int> unconfirmed = Unconfirmed(answer);
    if (static_cast<int>(unconfirmed.size()) > most) unconfirmed.resize(most);
    std::sort(unconfirmed.begin(), unconfirmed.end());
    return unconfirmed;
  }
  std::vector<int> chosen;  // rising
  const auto add = [&](int commit) {
    chosen.insert(std::lower_bound(chosen.begin(), chosen.end(), commit),
                  commit);
  };
  while (static_cast<int>(chosen.size()) < most) {
    const absl::optional<int> best = BestBeside(chosen);
    if (!best.has_value()) break;
    add(*best);
  }
  // The first were chosen without the last. Each moves to where it tells most
  // beside the others, until none does.
  constexpr int kMostPasses = 8;
  bool moved = chosen.size() > 1;
  for (int pass = 0; moved && pass < kMostPasses; ++pass) {
    moved = false;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const int before = chosen[i];
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
      const int best = BestBeside(chosen).value_or(before);
      add(best);
      moved |= best != before;
    }
  }
  return chosen;
}

void NoisyBisection::Tell(int commit, const BisectMeasurement& measurement) {
  OPTRAIL_CHECK(commit >= 1 && commit < commits_) << "commit " << commit;
  ++measurements_;
  states_[commit] = State::kBuilt;
  ++looks_[commit];
  const double effect = std::abs(options_.log_effect);
  const double level = options_.level_spread * effect;
  const double sigma_good = std::hypot(measurement.standard_error, level);
  const double sigma_bad =
      std::hypot(sigma_good, options_.effect_standard_error);
  // What means nothing may be anywhere, on either side alike.
  const double nothing =
      options_.outlier_rate *
      NormalDensity(measurement.log_ratio, options_.log_effect / 2,
                    3 * (effect + measurement.standard_error));
  const double something = 1 - options_.outlier_rate;
  const double good =
      something * NormalDensity(measurement.log_ratio, 0, sigma_good) + nothing;
  const double bad = something * NormalDensity(measurement.log_ratio,
                                               options_.log_effect, sigma_bad) +
                     nothing;
  // Too far from everything to tell: both underflow.
  if (!(good > 0 && bad > 0)) return;
  for (int k = 1; k <= commits_; ++k) {
    posterior_[k] *= k <= commit ? bad : good;
  }
  Normalise();
}

void NoisyBisection::TellCertain(int commit, bool bad) {
  OPTRAIL_CHECK(commit >= 1 && commit < commits_) << "commit " << commit;
  ++measurements_;
  states_[commit] = State::kBuilt;
  looks_[commit] = kLooks;
  double left = 0;
  for (int k = 1; k <= commits_; ++k) {
    if ((k <= commit) == bad) left += posterior_[k];
  }
  if (!(left > 0)) return;  // contradicts what was certain before
  for (int k = 1; k <= commits_; ++k) {
    if ((k <= commit) != bad) posterior_[k] = 0;
  }
  Normalise();
}

void NoisyBisection::Skip(int commit) {
  OPTRAIL_CHECK(commit >= 1 && commit < commits_) << "commit " << commit;
  if (states_[commit] != State::kBuilt) {
    states_[commit] = State::kSkipped;
    return;
  }
  // One compiler that fails does not undo what was measured.
  ++measurements_;
  ++looks_[commit];
  ++failed_[commit];
}

void NoisyBisection::Normalise() {
  double sum = 0;
  for (const double p : posterior_) sum += p;
  for (double& p : posterior_) p /= sum;
}

BisectAnswer NoisyBisection::Answer() const {
  BisectAnswer best;
  // A commit that can't be measured leaves itself and the next one together.
  for (int first = 1; first <= commits_;) {
    BisectAnswer group;
    group.first = group.last = first;
    group.probability = posterior_[first];
    while (group.last < commits_ && states_[group.last] == State::kSkipped) {
      group.probability += posterior_[++group.last];
    }
    if (group.probability > best.probability) best = group;
    first = group.last + 1;
  }
  best.is_sure = best.probability >= options_.confidence;
  return best;
}

int NoisyBisection::ExpectedLooks() const {
  const BisectAnswer answer = Answer();
  int confirming = 0;
  for (const int commit : {answer.last, answer.first - 1}) {
    if (commit < 1 || commit >= commits_) continue;
    // Before the end it is the search that looks there first.
    confirming += answer.is_sure ? std::max(0, kLooks - looks_[commit]) : 1;
  }
  if (answer.is_sure) return confirming;
  double entropy = 0;
  for (const double p : posterior_) {
    if (p > 0) entropy -= p * std::log(p);
  }
  return confirming +
         static_cast<int>(std::ceil(entropy / ExpectedInformation(.5)));
}

int NoisyBisection::builds() const {
  return static_cast<int>(
      std::count_if(states_.begin(), states_.end(),
                    [](State state) { return state != State::kUnknown; }));
}

}  // namespace optrail::tracker
