#ifndef OPTRAIL_OPS_DEVICE_ENERGY_CALIBRATION_H_
#define OPTRAIL_OPS_DEVICE_ENERGY_CALIBRATION_H_

// How a device's energy sensor has to be read, found out from one look at it at
// rest and under a steady load: how long a window must be, how long the sensor
// takes to follow, and whether its two sources, counter and power, agree.
//
//   const proto::MeterCalibration found =
//       CalibrationOf(trace, sensor.counter_range_joules(), options);
//   if (!found.refused().empty()) return Refuse(found.refused());
//
// Why: counters move every 20 to 100 ms, power readings are averages over up to
// a second, and some sensors look at a quarter of the time only (Yang, Adamek,
// Armour, "Part-time power measurements: nvidia-smi's lack of attention",
// 2023). A source that is wrong by itself is found by the other one; where
// there is only one, the reading is labelled unchecked.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ops/device/energy/calibration.pb.h"
#include "ops/device/energy/sensor.h"

namespace optrail::ops {

struct CalibrationOptions {
  absl::Duration idle = absl::Seconds(2);
  absl::Duration load = absl::Seconds(16);
  // Counter and integrated power may differ by this fraction.
  double margin = .05;
  // A window is long enough if twice the relative standard deviation of power
  // over windows of its length is within this.
  double spread = .01;
  absl::Duration shortest_window = absl::Milliseconds(250);
};

// Readings in order of time, closer together than the counter moves.
struct EnergyTrace {
  std::vector<SensorReading> idle, load;
};

// Joules by the counter from the first to the last of `readings`, at most one
// turn of `range` (0: no turns) between two of them. The counter moves in
// steps: where there are enough, power is taken from the first step to the last
// one, so that the steps that are cut off at both ends do not count.
// FailedPrecondition if it stands still or goes back; NotFound if there is no
// counter.
absl::StatusOr<double> CounterJoules(absl::Span<const SensorReading> readings,
                                     double range);

// Joules by power readings, trapezoids between them; NotFound if there are
// none.
absl::StatusOr<double> IntegratedJoules(
    absl::Span<const SensorReading> readings);

// The calibration that follows from a trace, but for device, source and date.
proto::MeterCalibration CalibrationOf(const EnergyTrace& trace, double range,
                                      const CalibrationOptions& options);

// Calibrations are kept in `folder`/meters, a file for each device. NotFound
// where there is none that is younger than `age`; unreadable ones count as
// none.
absl::StatusOr<proto::MeterCalibration> ReadCalibration(
    const std::string& folder, const std::string& device, int64_t now_unix_ns,
    absl::Duration age);
absl::Status KeepCalibration(const std::string& folder,
                             const proto::MeterCalibration& calibration);

// For people: "counter and power agree within 1.2%; windows of 1s, ...".
std::string CalibrationText(const proto::MeterCalibration& calibration);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_ENERGY_CALIBRATION_H_
