#include "suites/worker/evaluator.h"

#include "absl/strings/str_cat.h"

namespace optrail::suites {

Contender ContenderOf(const proto::Config& config) {
  Contender contender;
  *contender.mutable_config() = config;
  return contender;
}

Contender ContenderOf(const std::string& backend, const proto::Config& config) {
  Contender contender = ContenderOf(config);
  contender.set_backend(backend);
  return contender;
}

std::vector<Evaluation> Evaluator::EvaluateTogether(
    const std::vector<proto::Config>& configs,
    const EvaluationOptions& options) {
  std::vector<Contender> contenders;
  for (const proto::Config& config : configs) {
    contenders.push_back(ContenderOf(config));
  }
  std::vector<Evaluation> evaluations = Measure(contenders, options);
  if (evaluations.size() == configs.size()) return evaluations;
  evaluations.clear();
  for (const proto::Config& config : configs) {
    evaluations.push_back(Evaluate(config, options));
  }
  return evaluations;
}

absl::StatusOr<std::vector<Evaluation>> Evaluator::EvaluatePerturbed(
    const std::vector<Contender>& contenders,
    const EvaluationOptions& options) {
  std::vector<Evaluation> evaluations = Measure(contenders, options);
  if (evaluations.size() == contenders.size() &&
      evaluations[0].trial().measurements_size() > 0) {
    return evaluations;
  }
  const proto::Trial& wrong = evaluations.front().trial();
  if (wrong.outcome() == proto::UNSUPPORTED) {
    return absl::UnimplementedError(wrong.detail());
  }
  return absl::InternalError(
      absl::StrCat(proto::Outcome_Name(wrong.outcome()), ": ", wrong.detail()));
}

}  // namespace optrail::suites
