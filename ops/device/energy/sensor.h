#ifndef OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_H_
#define OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_H_

// EnergySensor is what a device tells of its energy, as raw as it tells it: a
// counter of joules, its power now, its power averaged by the driver, and what
// explains a reading. SensorMeter (sensor_meter.h) makes joules per call of it.
//
//   const SensorReading reading = sensor.Read();
//   if (reading.joules) Use(*reading.joules);
//
// A sensor only reads: clocks, power limits and modes are left alone.

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace optrail::ops {

// One look. Absent: the device has no such source.
struct SensorReading {
  int64_t now_ns = 0;             // of the steady clock, when it was read
  absl::optional<double> joules;  // counter, from an arbitrary start
  absl::optional<double> watts;   // at this moment, as far as the sensor can
  absl::optional<double> average_watts;  // over what the driver averages
};

// The state that explains a reading. Absent: the device does not tell.
struct DeviceState {
  absl::optional<double> celsius;
  absl::optional<int64_t> clock_hz;
  absl::optional<uint64_t> throttle_reasons;
  absl::optional<double> power_limit_watts;
  absl::optional<bool> shared;  // somebody else uses the device
};

// Called from one thread at a time.
class EnergySensor {
 public:
  virtual ~EnergySensor() = default;

  // "RAPL": names the source in records and messages.
  virtual std::string name() const = 0;
  virtual SensorReading Read() = 0;
  virtual DeviceState State() { return {}; }

  // The counter wraps around at this value; 0: it never does.
  virtual double counter_range_joules() const { return 0; }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_H_
