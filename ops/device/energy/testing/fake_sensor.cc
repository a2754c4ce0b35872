#include "ops/device/energy/testing/fake_sensor.h"

#include <algorithm>
#include <cmath>

namespace optrail::ops {

void FakeSensor::Advance(absl::Duration duration) {
  const int64_t steps = absl::ToInt64Milliseconds(duration);
  for (int64_t i = 0; i < steps; ++i) {
    clock_.Advance(absl::Milliseconds(1));
    const double warm = flaws_.watts_per_celsius * (celsius_ - 30);
    const double watts = std::max(0.0, watts_ + warm) *
                         std::max(0.0, 1 + flaws_.noise * rng_.Gaussian());
    true_joules_ += watts * 1e-3;
    // 20 s to two thirds of 30 K at 700 W.
    celsius_ += (30 + watts * 30 / 700 - celsius_) * 1e-3 / 20;
    // Of each update only its first part is looked at, and stands for all.
    double seen = watts;
    if (flaws_.looks_ms > 0) {
      const auto at = static_cast<int64_t>(history_.size());
      const int64_t phase = at % flaws_.update_ms;
      if (phase >= flaws_.looks_ms) {
        seen = MeanWatts(at - phase + flaws_.looks_ms, flaws_.looks_ms);
      }
    }
    history_.push_back(watts);
    counted_.push_back(counted_.back() + seen * 1e-3);
    if (on_ms) on_ms();
  }
}

double FakeSensor::MeanWatts(int64_t ms, int64_t over_ms) const {
  const int64_t from = std::max<int64_t>(ms - over_ms, 0);
  if (ms <= from) return watts_;
  double sum = 0;
  for (int64_t i = from; i < ms; ++i) sum += history_[i];
  return sum / static_cast<double>(ms - from);
}

SensorReading FakeSensor::Read() {
  SensorReading reading;
  reading.now_ns = clock_.NowNs();
  const auto ms = static_cast<int64_t>(history_.size());
  const int64_t updated_ms = ms - ms % flaws_.update_ms;
  if (flaws_.has_counter) {
    double joules = flaws_.counter_stands_still
                        ? 0
                        : counted_[updated_ms] * flaws_.counter_factor;
    if (flaws_.counter_range > 0) {
      joules = std::fmod(joules, flaws_.counter_range);
    }
    reading.joules = joules;
  }
  if (flaws_.has_power) {
    reading.watts = MeanWatts(
        updated_ms, flaws_.looks_ms > 0 ? flaws_.looks_ms : flaws_.update_ms);
    reading.average_watts = MeanWatts(updated_ms, flaws_.averages_ms);
  }
  return reading;
}

DeviceState FakeSensor::State() {
  DeviceState state;
  state.celsius = celsius_;
  state.clock_hz = 1'980'000'000;
  state.throttle_reasons = watts_ > 690 ? 4 : 0;
  state.power_limit_watts = 700;
  state.shared = shared_;
  return state;
}

}  // namespace optrail::ops
