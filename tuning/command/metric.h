#ifndef OPTRAIL_TUNING_COMMAND_METRIC_H_
#define OPTRAIL_TUNING_COMMAND_METRIC_H_

// What a command is judged by, and how it is read from what the command
// printed.
//
//   Metric metric;
//   OPTRAIL_ASSIGN_OR_RETURN(metric.objective,
//                            ParseObjective("throughput:max"));
//   OPTRAIL_ASSIGN_OR_RETURN(const double value, ReadMetric(metric, output));
//
// Metrics are positive: strategies compare ratios. What is not a positive,
// finite number is nonsense and an error.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

struct Metric {
  proto::Objective objective;
  // Finds the value in the output; null: the output is JSON.
  std::shared_ptr<const RE2> pattern;

  const std::string& name() const { return objective.metric(); }
};

// Sets the pattern of a metric: "NAME=REGEXP" in RE2's syntax, whose first
// group is the number. `metrics` must have that name.
absl::Status SetPattern(absl::string_view text, std::vector<Metric>& metrics);

// The metric's value. By pattern: of its last match. From JSON: of the last
// line of the output that is a JSON object, or else of the whole output if it
// is one; NAME is a member or, for nested objects, a path "results.throughput".
// InvalidArgument says what was found instead of a positive, finite number.
absl::StatusOr<double> ReadMetric(const Metric& metric,
                                  absl::string_view output);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_COMMAND_METRIC_H_
