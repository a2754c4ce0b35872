#include "suites/tune/session_evaluator.h"

#include <utility>

#include "tuning/session/objective.h"

namespace optrail::suites {
namespace {

using tuning::Purpose;

constexpr uint64_t kFirstRankSeed = 1000;
constexpr uint64_t kFirstProofSeed = 2000;

}  // namespace

SessionEvaluator::SessionEvaluator(suites::Evaluator& evaluator,
                                   proto::SamplingOptions sampling)
    : evaluator_(evaluator), sampling_(std::move(sampling)) {}

EvaluationOptions SessionEvaluator::OptionsFor(
    const tuning::Request& request) const {
  EvaluationOptions options;
  options.sampling = sampling_;
  if (request.expected && *request.expected >= kLongCallNs) {
    options.sampling.set_warm_up_ns(0);
    options.sampling.set_max_time_ns(1);
  }
  // A bound on what a meter reads says nothing of the stopwatch.
  const bool times =
      request.metrics.empty() || request.metrics.front() == tuning::kTimeMetric;
  if (request.hopeless_above && times) {
    options.sampling.set_hopeless_above_ns(*request.hopeless_above);
  }
  for (const std::string& metric : request.metrics) {
    if (metric != tuning::kTimeMetric) options.metrics.push_back(metric);
  }
  options.input_seed = static_cast<uint64_t>(request.round) % kInputSets;
  if (request.purpose == Purpose::kSearch) return options;
  const bool proof = request.purpose == Purpose::kProve;
  options.input_seed += proof ? kFirstProofSeed : kFirstRankSeed;
  // What a process is like (where its pages lie) is shared by all that is read
  // in its round, and by nothing else.
  options.process_of_round = 2 * request.round + (proof ? 1 : 0);
  return options;
}

tuning::Answer SessionEvaluator::Evaluate(const tuning::Request& request) {
  Evaluation evaluation =
      evaluator_.Evaluate(request.config, OptionsFor(request));
  tuning::Answer answer;
  answer.lost = evaluation.lost;
  proto::Trial& trial = answer.trial;
  trial.set_outcome(evaluation.outcome);
  trial.set_detail(std::move(evaluation.detail));
  trial.set_elapsed_ns(evaluation.elapsed_ns);
  if (evaluation.measurement.has_value()) {
    *trial.add_measurements() = *std::move(evaluation.measurement);
  }
  if (evaluation.time_ns.has_value()) trial.set_time_ns(*evaluation.time_ns);
  if (evaluation.prepare_ns.has_value()) {
    trial.set_compile_ns(*evaluation.prepare_ns);
  }
  if (evaluation.load_ns.has_value()) trial.set_load_ns(*evaluation.load_ns);
  trial.mutable_facts()->Add(evaluation.facts.begin(), evaluation.facts.end());
  if (evaluation.error_in_tolerances.has_value()) {
    trial.set_error_in_tolerances(*evaluation.error_in_tolerances);
  }
  return answer;
}

}  // namespace optrail::suites
