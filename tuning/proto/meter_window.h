#ifndef OPTRAIL_TUNING_PROTO_METER_WINDOW_H_
#define OPTRAIL_TUNING_PROTO_METER_WINDOW_H_

// What the windows of a measurement say of one call, computed in this one
// place. A measurement with several windows of a metric repeated it: their
// median counts.
//
//   for (const MeteredMetric& metric : MeteredMetrics(measurement)) {
//     Add(metric.metric, metric.unit, Median(metric.per_call));
//   }
//
// Windows that know what the device takes at rest have a second metric,
// "joules_above_idle": the value without that. It is what calls add to a device
// that is on anyway; "joules" is what they take where it would be off.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tuning {

inline constexpr char kJoules[] = "joules";
inline constexpr char kJoulesAboveIdle[] = "joules_above_idle";

struct MeteredMetric {
  std::string metric;
  std::string unit;
  proto::Direction direction = proto::LOWER_IS_BETTER;
  std::vector<double> per_call;  // one a window, in their order
  bool estimated = false;        // one of them is a model's answer
};

// In the order in which windows name them, derived ones behind theirs. Windows
// of no call say nothing.
std::vector<MeteredMetric> MeteredMetrics(
    const proto::Measurement& measurement);

// The median of one of them; nullopt where no window tells.
absl::optional<double> MeteredPerCall(const proto::Measurement& measurement,
                                      absl::string_view metric);

// "NVML energy counter, counter and power agree; 75.1 W at rest", or what is
// known of that; "" if nothing is.
std::string WindowText(const proto::MeterWindow& window);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_METER_WINDOW_H_
