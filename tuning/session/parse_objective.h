#ifndef OPTRAIL_TUNING_SESSION_PARSE_OBJECTIVE_H_
#define OPTRAIL_TUNING_SESSION_PARSE_OBJECTIVE_H_

// An objective as people write it, for operators and for commands:
//
//   throughput:max          more is better
//   memory_mb:min<=32       and no more than 32
//   accuracy:max>=0.9       and no less than 0.9
//   time<=1.05x             and no more than 1.05 times the least of any config
//
//   OPTRAIL_ASSIGN_OR_RETURN(proto::Objective objective,
//                            ParseObjective("time:min<=1.05x"));
//
// Units are those of the metric. InvalidArgument says what was expected.

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// Without :min or :max the direction is `known`; if that is unspecified, one of
// them is expected.
absl::StatusOr<proto::Objective> ParseObjective(
    absl::string_view text,
    proto::Direction known = proto::DIRECTION_UNSPECIFIED);

// What several objectives have to keep together: no metric is named twice, and
// there is no weight or one for each, which become theirs.
absl::Status SetWeights(absl::Span<const double> weights,
                        std::vector<proto::Objective>& objectives);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_PARSE_OBJECTIVE_H_
