#include "ops/device/energy/sensor_meter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::ops {
namespace {

// What a device does right after it worked is not yet rest.
constexpr absl::Duration kBeforeRest = absl::Seconds(1);
constexpr absl::Duration kLookAtTemperature = absl::Milliseconds(100);
// One look at the sensor in so many is at the device's state, too: what
// explains a reading is seen while calls run, and costs little.
constexpr size_t kLooksForState = 10;

}  // namespace

SensorMeter::SensorMeter(std::unique_ptr<EnergySensor> sensor,
                         SensorMeterOptions options)
    : sensor_(std::move(sensor)), options_(std::move(options)) {
  info_.metric = "joules";
  info_.unit = "J";
  info_.direction = proto::LOWER_IS_BETTER;
  info_.min_window = options_.min_window;
  info_.cool_down = options_.cool_down;
  info_.whole_device = true;
  info_.source = sensor_->name();
}

SensorMeter::~SensorMeter() { (void)StopSampling(); }

void SensorMeter::Sample() {
  const absl::MutexLock lock(&mutex_);
  if (sampling_) Look();
}

void SensorMeter::Look() {
  readings_.push_back(sensor_->Read());
  if (readings_.size() % kLooksForState != 0) return;
  const uint64_t seen = end_.throttle_reasons.value_or(0);
  const bool was_shared = end_.shared.value_or(false);
  end_ = sensor_->State();
  if (end_.throttle_reasons) *end_.throttle_reasons |= seen;
  if (end_.shared) *end_.shared |= was_shared;
}

void SensorMeter::StartSampling() {
  (void)StopSampling();  // of a window that nobody ended
  {
    const absl::MutexLock lock(&mutex_);
    start_ = end_ = sensor_->State();
    readings_ = {sensor_->Read()};
    sampling_ = true;
  }
  if (options_.sample_every <= absl::ZeroDuration()) return;
  thread_ = std::thread([this] {
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !sampling_;
    };
    const absl::MutexLock lock(&mutex_);
    while (!mutex_.AwaitWithTimeout(absl::Condition(&ended),
                                    options_.sample_every)) {
      Look();
    }
  });
}

std::vector<SensorReading> SensorMeter::StopSampling() {
  {
    const absl::MutexLock lock(&mutex_);
    if (!sampling_) return {};
    readings_.push_back(sensor_->Read());
    sampling_ = false;
  }
  if (thread_.joinable()) thread_.join();
  const absl::MutexLock lock(&mutex_);
  return std::move(readings_);
}

absl::Status SensorMeter::Believe(proto::MeterCalibration calibration) {
  calibration_ = std::move(calibration);
  if (!calibration_->refused().empty()) {
    return absl::FailedPreconditionError(absl::StrCat("joules are refused on ",
                                                      options_.device, ": ",
                                                      calibration_->refused()));
  }
  info_.min_window = absl::Nanoseconds(calibration_->window_ns());
  info_.warm_up = absl::Nanoseconds(calibration_->settle_ns());
  return absl::OkStatus();
}

absl::Status SensorMeter::Calibrate(
    absl::FunctionRef<absl::Status(absl::Duration)> load,
    const std::string& folder) {
  if (calibration_) return Believe(*calibration_);
  if (!folder.empty()) {
    auto kept =
        ReadCalibration(folder, options_.device, options_.clock->WallNs(),
                        options_.calibration_age);
    // What was refused once is looked at again: a driver may have been mended.
    if (kept.ok() && kept->refused().empty()) return Believe(*std::move(kept));
  }
  EnergyTrace trace;
  options_.sleep(kBeforeRest);
  StartSampling();
  options_.sleep(options_.calibration.idle);
  trace.idle = StopSampling();
  const DeviceState idle = sensor_->State();
  StartSampling();
  const absl::Status loaded = load(options_.calibration.load);
  trace.load = StopSampling();
  OPTRAIL_RETURN_IF_ERROR(loaded);

  proto::MeterCalibration found = CalibrationOf(
      trace, sensor_->counter_range_joules(), options_.calibration);
  found.set_device(options_.device);
  found.set_source(sensor_->name());
  found.set_taken_unix_ns(options_.clock->WallNs());
  if (idle.celsius) found.set_idle_celsius(*idle.celsius);
  // It is found again where it cannot be kept.
  if (!folder.empty()) (void)KeepCalibration(folder, found);
  return Believe(std::move(found));
}

void SensorMeter::Rest() {
  if (!calibration_ || !calibration_->has_idle_celsius()) return;
  const double cool =
      calibration_->idle_celsius() + options_.rest_margin_celsius;
  for (absl::Duration waited; waited < options_.cool_down;
       waited += kLookAtTemperature) {
    const DeviceState state = sensor_->State();
    if (!state.celsius || *state.celsius <= cool) return;
    options_.sleep(kLookAtTemperature);
  }
}

absl::Status SensorMeter::Begin() {
  StartSampling();
  return absl::OkStatus();
}

absl::StatusOr<proto::MeterWindow> SensorMeter::End(int64_t calls) {
  const std::vector<SensorReading> readings = StopSampling();
  if (readings.size() < 2) {
    return absl::FailedPreconditionError("a window ended that had not begun");
  }
  const absl::StatusOr<double> counted =
      CounterJoules(readings, sensor_->counter_range_joules());
  const absl::StatusOr<double> integrated = IntegratedJoules(readings);
  proto::MeterWindow window;
  if (absl::IsNotFound(counted.status())) {
    if (!integrated.ok()) return integrated.status();
    window.set_value(*integrated);
  } else {
    if (!counted.ok()) return counted.status();
    window.set_value(*counted);
    if (integrated.ok()) window.set_integrated_joules(*integrated);
  }
  window.set_metric(info_.metric);
  window.set_unit(info_.unit);
  window.set_direction(info_.direction);
  window.set_calls(calls);
  window.set_duration_ns(readings.back().now_ns - readings.front().now_ns);
  window.set_whole_device(true);
  window.set_source(info_.source);
  window.set_check(calibration_ ? calibration_->check() : proto::UNCHECKED);
  if (calibration_ && calibration_->has_idle_watts()) {
    window.set_idle_watts(calibration_->idle_watts());
  }
  FillState(&window);
  return window;
}

void SensorMeter::FillState(proto::MeterWindow* window) {
  const absl::MutexLock lock(&mutex_);
  const DeviceState& end = end_;
  if (start_.celsius) window->set_start_celsius(*start_.celsius);
  if (end.celsius) window->set_end_celsius(*end.celsius);
  if (start_.clock_hz) window->set_start_clock_hz(*start_.clock_hz);
  if (end.clock_hz) window->set_end_clock_hz(*end.clock_hz);
  if (end.throttle_reasons) {
    window->set_throttle_reasons(*end.throttle_reasons);
  }
  if (end.power_limit_watts) {
    window->set_power_limit_watts(*end.power_limit_watts);
  }
  if (end.shared) {
    window->set_shared(*end.shared);
  }
}

}  // namespace optrail::ops
