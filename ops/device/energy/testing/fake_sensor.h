#ifndef OPTRAIL_OPS_DEVICE_ENERGY_TESTING_FAKE_SENSOR_H_
#define OPTRAIL_OPS_DEVICE_ENERGY_TESTING_FAKE_SENSOR_H_

// FakeSensor is an energy sensor without a device, with the flaws that real
// ones are known for, for tests: its true power is what the test says.
//
//   FakeSensor sensor(FakeSensor::Flaws());
//   sensor.SetWatts(700);
//   sensor.Advance(absl::Seconds(2));
//   EXPECT_NEAR(*sensor.Read().joules, sensor.true_joules(), 70);

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "ops/device/energy/sensor.h"

namespace optrail::ops {

class FakeSensor : public EnergySensor {
 public:
  struct Flaws {
    bool has_counter = true;
    bool has_power = true;
    int update_ms = 100;        // counter and power move this often
    int averages_ms = 1000;     // what average_watts is the mean of
    int looks_ms = 0;           // of each update_ms power is looked at so long
    double counter_range = 0;   // wraps around there
    double counter_factor = 1;  // of what is true
    bool counter_stands_still = false;
    double noise = 0;              // of true power, relative, each millisecond
    double watts_per_celsius = 0;  // leakage: power grows as it warms up
    uint64_t seed = 1;
  };

  explicit FakeSensor(Flaws flaws) : flaws_(flaws), rng_(flaws.seed) {}

  std::string name() const override { return "fake"; }
  SensorReading Read() override;
  DeviceState State() override;
  double counter_range_joules() const override { return flaws_.counter_range; }

  void SetWatts(double watts) { watts_ = watts; }
  // Time passes, millisecond by millisecond; on_ms is called after each.
  void Advance(absl::Duration duration);
  std::function<void()> on_ms;
  FakeClock& clock() { return clock_; }
  double true_joules() const { return true_joules_; }
  void SetShared(bool shared) { shared_ = shared; }

 private:
  // The mean of what was true, or looked at, over the milliseconds before `ms`.
  double MeanWatts(int64_t ms, int64_t over_ms) const;

  const Flaws flaws_;
  Rng rng_;
  FakeClock clock_;
  double watts_ = 0;
  double celsius_ = 30;
  bool shared_ = false;
  double true_joules_ = 0;
  std::vector<double> history_;     // true watts, one each millisecond
  std::vector<double> counted_{0};  // joules the counter knows, likewise
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEVICE_ENERGY_TESTING_FAKE_SENSOR_H_
