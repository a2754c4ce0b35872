#include "suites/predict/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/stats/rank_correlation.h"
#include "base/stats/statistics.h"
#include "suites/tune/transfer_sources.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_clock.h"

namespace optrail::suites {
namespace {

// Distances of tasks that TaskDistance does not compare, in doublings.
constexpr double kOtherTypes = 5;  // or another backend or attribute
constexpr double kOtherOperator = 14;
constexpr double kOtherDevice = 18;
// A doubling of the time of a call counts so many doublings of a dimension.
constexpr double kTimeDoubling = 2;

// The weight of an error beyond all that were seen, at either end, in units of
// the heaviest session's. 1 is the choice that holds for exchangeable sessions
// and covers 99% of those recorded.
constexpr double kBeyondWeight = 0.2;

constexpr double kTail = 0.05;  // outside the interval, at either end

double TaskWeight(const proto::Task& a, const proto::Task& b) {
  const absl::optional<double> distance = TaskDistance(a, b);
  double doublings = kOtherDevice;
  if (distance.has_value()) {
    doublings = *distance;
  } else if (a.device_kind() == b.device_kind()) {
    doublings =
        a.operator_name() == b.operator_name() ? kOtherTypes : kOtherOperator;
  }
  return std::exp(-doublings / 2);
}

using Weighted = std::pair<double, double>;  // value, weight

// The value at which the weights of smaller ones reach the share `p`.
double WeightedQuantile(std::vector<Weighted> values, double p) {
  std::sort(values.begin(), values.end());
  double total = 0, sum = 0;
  for (const auto& [value, weight] : values) total += weight;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= p * total) return value;
  }
  return values.back().first;
}

bool IsOfTime(const proto::Session& session) {
  return session.objectives().empty() && !session.has_command() &&
         !session.task().operator_name().empty();
}

double SecondsOf(const proto::Session& session) {
  return static_cast<double>(tuning::ClockNs(session)) / 1e9;
}

double DefaultNs(const proto::Proof& proof) {
  std::vector<double> medians_ns;
  for (const proto::Measurement& one : proof.default_measurements()) {
    if (one.has_median_ns()) medians_ns.push_back(one.median_ns());
  }
  return medians_ns.empty() ? 0 : Median(medians_ns);
}

}  // namespace

std::string GainPredictor::NameOf(proto::Task task) {
  task.clear_kernel_id();
  return tuning::TrialKey(task, proto::Config());
}

GainPredictor::GainPredictor(const std::vector<tracker::SessionInfo>& sessions,
                             WorkFunction work)
    : work_(std::move(work)) {
  std::set<std::string> tasks;
  for (auto info = sessions.rbegin(); info != sessions.rend(); ++info) {
    const proto::Session& header = info->header;
    if (!IsOfTime(header) || !header.has_proof() ||
        !header.proof().has_gain()) {
      continue;
    }
    Case one;
    one.name = NameOf(header.task());
    if (!tasks.insert(one.name).second) continue;
    one.session = info->id();
    one.task = header.task();
    // If the proof claims nothing, the default stays.
    one.log_gain = header.proof().claimed()
                       ? std::log1p(std::max(header.proof().gain(), 0.0))
                       : 0;
    one.seconds = SecondsOf(header);
    one.default_ns = DefaultNs(header.proof());
    if (work_) one.work = work_(one.task);
    cases_.push_back(std::move(one));
  }
  std::reverse(cases_.begin(), cases_.end());
  if (cases_.size() < 2) return;
  for (Case& one : cases_) {
    one.error = one.log_gain - Mean(one.task, one.default_ns, one.name);
    one.estimate_ns = EstimateNs(one.task, one.work, one.name);
    one.estimated_error =
        one.log_gain - Mean(one.task, one.estimate_ns, one.name);
  }
}

double GainPredictor::WeightOf(const proto::Task& task, double call_ns,
                               const proto::Task& other, double other_ns) {
  const double weight = TaskWeight(task, other);
  if (call_ns <= 0 || other_ns <= 0) return weight;
  const double doublings = std::abs(std::log2(call_ns / other_ns));
  return weight * std::exp(-kTimeDoubling * doublings / 2);
}

double GainPredictor::Mean(const proto::Task& task, double call_ns,
                           const std::string& name) const {
  double sum = 0, weights = 0;
  for (const Case& one : cases_) {
    if (one.name == name) continue;
    const double weight = WeightOf(task, call_ns, one.task, one.default_ns);
    sum += weight * one.log_gain;
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

absl::optional<Prediction> GainPredictor::Predict(const proto::Task& task,
                                                  CallTime call) const {
  const std::string name = NameOf(task);
  std::vector<Weighted> errors, seconds;
  Prediction prediction;
  double heaviest = 0, heaviest_error = 0, most_gain = 0;
  for (const Case& one : cases_) {
    if (one.name == name) continue;
    const double weight = WeightOf(task, call.ns, one.task, one.default_ns);
    // Errors made with estimated times weigh by those: of this task no other
    // is known.
    const double error_weight =
        call.is_estimated ? WeightOf(task, call.ns, one.task, one.estimate_ns)
                          : weight;
    errors.push_back(
        {call.is_estimated ? one.estimated_error : one.error, error_weight});
    heaviest_error = std::max(heaviest_error, error_weight);
    seconds.push_back({one.seconds, weight});
    most_gain = std::max(most_gain, one.log_gain);
    ++prediction.sessions;
    if (weight > heaviest) {
      heaviest = weight;
      prediction.nearest_session = one.session;
    }
  }
  if (prediction.sessions == 0) return absl::nullopt;
  const double mean = Mean(task, call.ns, name);
  // The error of this task may be larger than any that was seen.
  constexpr double kBeyond = std::numeric_limits<double>::infinity();
  errors.push_back({kBeyond, kBeyondWeight * heaviest_error});
  errors.push_back({-kBeyond, kBeyondWeight * heaviest_error});
  const double low = mean + WeightedQuantile(errors, kTail);
  const double high = mean + WeightedQuantile(errors, 1 - kTail);
  prediction.gain = std::expm1(mean);
  prediction.seconds = WeightedQuantile(seconds, 0.5);
  if (prediction.sessions < kFewestForBounds) {
    prediction.gain_high = prediction.seconds_high = kBeyond;
    return prediction;
  }
  prediction.gain_low = std::expm1(std::max(low, 0.0));
  prediction.gain_high = std::expm1(std::min(high, std::max(most_gain, mean)));
  prediction.seconds_low = WeightedQuantile(seconds, kTail);
  prediction.seconds_high = WeightedQuantile(seconds, 1 - kTail);
  return prediction;
}

absl::optional<double> GainPredictor::Realised(const proto::Task& task) const {
  const std::string name = NameOf(task);
  for (const Case& one : cases_) {
    if (one.name == name) return std::expm1(one.log_gain);
  }
  return absl::nullopt;
}

absl::optional<GainPredictor::CallTime> GainPredictor::TimeOf(
    const proto::Task& task) const {
  const std::string name = NameOf(task);
  for (const Case& one : cases_) {
    if (one.name == name && one.default_ns > 0) {
      return CallTime{one.default_ns, /*is_estimated=*/false};
    }
  }
  if (!work_) return absl::nullopt;
  const double estimate_ns = EstimateNs(task, work_(task), name);
  if (estimate_ns <= 0) return absl::nullopt;
  return CallTime{estimate_ns, /*is_estimated=*/true};
}

double GainPredictor::EstimateNs(const proto::Task& task, double work,
                                 const std::string& name) const {
  if (!(work > 0)) return 0;
  double sum = 0, weights = 0;
  for (const Case& one : cases_) {
    if (one.name == name || one.default_ns <= 0) continue;
    if (one.task.device_kind() != task.device_kind()) continue;
    if (!(one.work > 0)) continue;
    const double weight = TaskWeight(task, one.task);
    sum += weight * std::log(one.default_ns / one.work);
    weights += weight;
  }
  return weights > 0 ? work * std::exp(sum / weights) : 0;
}

std::vector<GainPredictor::Scored> GainPredictor::LeaveOneOut(
    bool estimates) const {
  std::vector<Scored> scored;
  for (const Case& one : cases_) {
    // Errors of the other sessions do not depend on the one that is left out
    // by more than its own share of their means.
    const CallTime call = {estimates ? one.estimate_ns : one.default_ns,
                           estimates};
    const absl::optional<Prediction> prediction = Predict(one.task, call);
    if (!prediction.has_value()) continue;
    scored.push_back({one.session, std::expm1(one.log_gain), *prediction});
  }
  return scored;
}

PredictionScore ScorePredictions(
    const std::vector<GainPredictor::Scored>& predictions) {
  PredictionScore score;
  std::vector<double> predicted, realised, errors;
  for (const GainPredictor::Scored& one : predictions) {
    ++score.predictions;
    if (one.realised >= one.predicted.gain_low &&
        one.realised <= one.predicted.gain_high) {
      ++score.covered;
    }
    predicted.push_back(one.predicted.gain);
    realised.push_back(one.realised);
    errors.push_back(std::abs(one.predicted.gain - one.realised));
  }
  if (predictions.empty()) return score;
  score.rank_correlation = RankCorrelation(predicted, realised);
  score.median_error = Median(errors);
  return score;
}

}  // namespace optrail::suites
