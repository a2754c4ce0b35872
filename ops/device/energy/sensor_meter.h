#ifndef OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_METER_H_
#define OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_METER_H_

// SensorMeter is the meter "joules" of any device that has an EnergySensor: it
// looks at the sensor while calls run, counts in steps, and knows how long a
// window has to be (calibration.h).
//
//   SensorMeter meter(std::move(sensor), options);
//   OPTRAIL_RETURN_IF_ERROR(meter.Calibrate(load, folder));
//   meter.Rest();
//   OPTRAIL_RETURN_IF_ERROR(meter.Begin());
//   ...  // calls
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::MeterWindow window,
//   meter.End(calls));
//
// The value of a window is what the whole device took, with what it takes at
// rest; `idle_watts` beside it says how much that is.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "ops/core/device.h"
#include "ops/device/energy/calibration.h"
#include "ops/device/energy/sensor.h"

namespace optrail::ops {

struct SensorMeterOptions {
  std::string device;  // hardware id, by which calibrations are kept
  // While something is metered a thread looks at the sensor this often; zero:
  // nobody but who calls Sample().
  absl::Duration sample_every = absl::Milliseconds(10);
  CalibrationOptions calibration;
  // A kept calibration that is older is made anew.
  absl::Duration calibration_age = absl::Hours(7 * 24);
  // Until the first calibration.
  absl::Duration min_window = absl::Milliseconds(500);
  // Rest() ends this much above the temperature at rest.
  double rest_margin_celsius = 20;
  absl::Duration cool_down = absl::Seconds(5);
  Clock* clock = Clock::Real();
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

class SensorMeter : public Meter {
 public:
  SensorMeter(std::unique_ptr<EnergySensor> sensor, SensorMeterOptions options);
  ~SensorMeter() override;

  const MeterInfo& info() const override { return info_; }
  absl::Status Calibrate(absl::FunctionRef<absl::Status(absl::Duration)> load,
                         const std::string& folder) override;
  void Rest() override;
  absl::Status Begin() override;
  absl::StatusOr<proto::MeterWindow> End(int64_t calls) override;

  // Looks at the sensor once, while something is metered.
  void Sample();

  // The calibration of this device, once Calibrate() found it.
  const absl::optional<proto::MeterCalibration>& calibration() const {
    return calibration_;
  }

 private:
  void StartSampling();
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<SensorReading> StopSampling();
  absl::Status Believe(proto::MeterCalibration calibration);
  void FillState(proto::MeterWindow* window);

  const std::unique_ptr<EnergySensor> sensor_;
  const SensorMeterOptions options_;
  MeterInfo info_;
  absl::optional<proto::MeterCalibration> calibration_;

  absl::Mutex mutex_;
  std::vector<SensorReading> readings_ ABSL_GUARDED_BY(mutex_);
  // At the first and the last look of those that asked for it.
  DeviceState start_ ABSL_GUARDED_BY(mutex_), end_ ABSL_GUARDED_BY(mutex_);
  bool sampling_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_ENERGY_SENSOR_METER_H_
