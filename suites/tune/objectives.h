#ifndef OPTRAIL_SUITES_TUNE_OBJECTIVES_H_
#define OPTRAIL_SUITES_TUNE_OBJECTIVES_H_

// What operators are tuned for: time, what meters read, memory, distance from
// the reference, and what is computed from these.
//
//   ObjectiveSource source;
//   source.meters = device->meters();
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::vector<proto::Objective> objectives,
//       ParseObjectives("joules,time<=1.05x", {}, source));
//
// | objective | unit | is |
// | time | ns | the median of a call |
// | joules, or another metric of a meter | J | of a call |
// | memory | B | operands, workspace and packed weights of a call |
// | error | tolerances | the largest distance from the reference |
// | edp | J s | joules times time |
// | joules_per_flop, joules_per_byte | J | joules over the work of a call |
// | cost | of a million calls: energy at a tariff, time at a rent |

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/core/device.h"
#include "tuning/proto/session.pb.h"

namespace optrail::suites {

struct ObjectiveSource {
  std::string device;  // as people name it
  absl::Span<ops::Meter* const> meters;
  // The device is not open: its meters are taken to read joules, the one metric
  // that meters of today have.
  bool meters_unknown = false;
  // Why no meter reads joules here ("unsupported here: ..."), where that is
  // known.
  std::string no_joules;
  double price_per_kwh = 0;
  double price_per_hour = 0;  // of the machine
};

// `text`: objectives as of ParseObjective (tuning/session/parse_objective.h),
// separated by commas. InvalidArgument names those that there are here.
absl::StatusOr<std::vector<proto::Objective>> ParseObjectives(
    absl::string_view text, absl::Span<const double> weights,
    const ObjectiveSource& source);

// The objectives of a task whose calls do so much work.
std::vector<proto::Objective> ForTask(std::vector<proto::Objective> objectives,
                                      double flop, double bytes);

// How stores and series name them; "" for time alone.
std::string ObjectiveKey(const std::vector<proto::Objective>& objectives);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_OBJECTIVES_H_
