#include "tracker/bisect/noisy_bisection.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/distributions.h"

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
      looks_(commits + 1) {
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

absl::optional<int> NoisyBisection::Unconfirmed(
    const BisectAnswer& answer) const {
  for (const int commit : {answer.last, answer.first - 1}) {
    if (commit >= 1 && commit < commits_ && states_[commit] == State::kBuilt &&
        looks_[commit] < kLooks) {
      return commit;
    }
  }
  return absl::nullopt;
}

absl::optional<int> NoisyBisection::Next() const {
  if (measurements_ >= options_.max_measurements) return absl::nullopt;
  const BisectAnswer answer = Answer();
  if (answer.is_sure) return Unconfirmed(answer);
  // How far the nearest commit that did not build is: its neighbours are
  // likely to have what it has.
  std::vector<int> distance(commits_ + 1, commits_);
  for (int i = 1, last = -commits_; i <= commits_; ++i) {
    if (states_[i] == State::kSkipped) last = i;
    distance[i] = std::min(distance[i], i - last);
  }
  for (int i = commits_, last = 2 * commits_; i >= 1; --i) {
    if (states_[i] == State::kSkipped) last = i;
    distance[i] = std::min(distance[i], last - i);
  }
  absl::optional<int> best;
  double best_value = 1e-9;
  double bad = 0;
  for (int i = 1; i < commits_; ++i) {
    bad += posterior_[i];
    if (states_[i] == State::kSkipped) continue;
    const bool built = states_[i] == State::kBuilt;
    // What can't be better need not be worked out: information is at most the
    // entropy of good or bad.
    const double p = std::clamp(bad, 0., 1.);
    if (p <= 0 || p >= 1) continue;
    const double builds_with = built ? 1 : 1 - std::exp2(-distance[i]);
    const double cost = 1 + (built ? 0 : options_.build_cost);
    const double bound =
        -(p * std::log(p) + (1 - p) * std::log1p(-p)) * builds_with / cost;
    if (bound <= best_value) continue;
    const double value = ExpectedInformation(p) * builds_with / cost;
    if (value > best_value) {
      best_value = value;
      best = i;
    }
  }
  return best;
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
  states_[commit] = State::kSkipped;
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
