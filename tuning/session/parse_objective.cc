#include "tuning/session/parse_objective.h"

#include <cmath>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "re2/re2.h"

namespace optrail::tuning {

absl::StatusOr<proto::Objective> ParseObjective(absl::string_view text,
                                                proto::Direction known) {
  static const RE2* const kSyntax =
      new RE2(R"(([A-Za-z_][\w.]*)(:min|:max)?(?:(<=|>=)(.+?)(x?))?)");
  std::string name, direction, relation, limit, times_best;
  const bool matches =
      RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *kSyntax,
                     &name, &direction, &relation, &limit, &times_best);
  if (!matches ||
      (direction.empty() && known == proto::DIRECTION_UNSPECIFIED)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metric '", text, "': expected NAME",
        known == proto::DIRECTION_UNSPECIFIED ? ":min or NAME:max" : "",
        ", with an optional limit as in memory_mb:min<=32 or, of "
        "the best value, time:min<=1.05x"));
  }
  proto::Objective objective;
  objective.set_metric(name);
  objective.set_direction(direction == ":max"   ? proto::HIGHER_IS_BETTER
                          : direction == ":min" ? proto::LOWER_IS_BETTER
                                                : known);
  const bool maximise = objective.direction() == proto::HIGHER_IS_BETTER;
  if (known != proto::DIRECTION_UNSPECIFIED && objective.direction() != known) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric '", text, "': ", name, " is ",
                     maximise ? "minimised" : "maximised"));
  }
  if (relation.empty()) return objective;
  double value = 0;
  if ((relation == ">=") != maximise || !absl::SimpleAtod(limit, &value) ||
      !std::isfinite(value) || value <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "metric '", text, "': expected a limit ",
        maximise ? ">=" : "<=", " a positive number, since the metric ",
        maximise ? "is maximised" : "is minimised"));
  }
  if (times_best.empty()) {
    objective.set_limit(value);
    return objective;
  }
  if (maximise ? value > 1 : value < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric '", text, "': no config is better than the best; ",
                     "expected ", maximise ? "at most 1x" : "at least 1x"));
  }
  objective.set_limit_over_best(value);
  return objective;
}

absl::Status SetWeights(absl::Span<const double> weights,
                        std::vector<proto::Objective>& objectives) {
  absl::flat_hash_set<std::string> names;
  for (const proto::Objective& objective : objectives) {
    if (!names.insert(objective.metric()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("metric '", objective.metric(), "' is named twice"));
    }
  }
  if (weights.empty()) return absl::OkStatus();
  if (weights.size() != objectives.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(weights.size(), " weights for ", objectives.size(),
                     " metrics, expected one each"));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    objectives[i].set_weight(weights[i]);
  }
  return absl::OkStatus();
}

}  // namespace optrail::tuning
