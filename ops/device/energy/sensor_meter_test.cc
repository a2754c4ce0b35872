#include "ops/device/energy/sensor_meter.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/device/energy/testing/fake_sensor.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

constexpr double kIdleWatts = 75;
constexpr double kLoadWatts = 600;

// A meter over a fake sensor: time passes only when something is done.
class Bench {
 public:
  explicit Bench(FakeSensor::Flaws flaws, std::string device = "fake-gpu") {
    auto owned = std::make_unique<FakeSensor>(flaws);
    sensor_ = owned.get();
    sensor_->SetWatts(kIdleWatts);
    SensorMeterOptions options;
    options.device = std::move(device);
    options.sample_every = absl::ZeroDuration();
    options.clock = &sensor_->clock();
    options.sleep = [this](absl::Duration duration) {
      slept_ += duration;
      sensor_->Advance(duration);
    };
    meter_ = std::make_unique<SensorMeter>(std::move(owned), options);
    sensor_->on_ms = [this] {
      if (++ms_ % 5 == 0) meter_->Sample();
    };
  }

  absl::Status Calibrate(const std::string& folder = "") {
    return meter_->Calibrate(
        [this](absl::Duration duration) {
          loaded_ += duration;
          Work(duration);
          return absl::OkStatus();
        },
        folder);
  }
  void Work(absl::Duration duration) {
    sensor_->SetWatts(kLoadWatts);
    sensor_->Advance(duration);
    sensor_->SetWatts(kIdleWatts);
  }
  // Of calls of a millisecond, as the stopwatch takes it.
  proto::MeterWindow Window(absl::Duration at_least = absl::ZeroDuration()) {
    meter_->Rest();
    const absl::Duration length = std::max(at_least, meter_->info().min_window);
    sensor_->SetWatts(kLoadWatts);
    sensor_->Advance(meter_->info().warm_up);
    EXPECT_TRUE(meter_->Begin().ok());
    const double before = sensor_->true_joules();
    sensor_->Advance(length);
    truth_ = sensor_->true_joules() - before;
    auto window = meter_->End(absl::ToInt64Milliseconds(length));
    sensor_->SetWatts(kIdleWatts);
    EXPECT_TRUE(window.ok()) << window.status();
    return window.ok() ? *window : proto::MeterWindow();
  }

  FakeSensor* sensor_;
  std::unique_ptr<SensorMeter> meter_;
  absl::Duration slept_, loaded_;
  double truth_ = 0;

 private:
  int64_t ms_ = 0;
};

FakeSensor::Flaws Noisy() {
  FakeSensor::Flaws flaws;
  flaws.noise = .2;
  return flaws;
}

TEST(SensorMeterTest, ReadsWhatIsTrueThoughTheCounterMovesTenTimesASecond) {
  Bench bench(Noisy());
  ASSERT_TRUE(bench.Calibrate().ok());
  EXPECT_EQ(bench.meter_->calibration()->counter_update_ns(), 100'000'000);
  for (int i = 0; i < 5; ++i) {
    const proto::MeterWindow window = bench.Window();
    EXPECT_NEAR(window.value(), bench.truth_, .015 * bench.truth_);
    EXPECT_EQ(window.check(), proto::AGREES);
    EXPECT_NEAR(window.integrated_joules(), window.value(),
                .05 * window.value());
    EXPECT_NEAR(window.idle_watts(), kIdleWatts, 2);
    EXPECT_FALSE(window.estimated());
  }
}

// Without steps a window that begins and ends anywhere between two updates is
// wrong by up to an update: a tenth of a second's.
TEST(SensorMeterTest, WindowsThatBeginBetweenUpdatesLoseNothing) {
  Bench bench((FakeSensor::Flaws()));
  ASSERT_TRUE(bench.Calibrate().ok());
  for (int ms = 0; ms < 100; ms += 17) {
    bench.sensor_->Advance(absl::Milliseconds(ms));
    const proto::MeterWindow window = bench.Window(absl::Milliseconds(1030));
    EXPECT_NEAR(window.value(), bench.truth_, .01 * bench.truth_) << ms;
  }
}

TEST(SensorMeterTest, WaitsUntilAveragesFollowTheLoad) {
  FakeSensor::Flaws flaws;
  flaws.has_counter = false;
  flaws.update_ms = 20;
  Bench bench(flaws);
  ASSERT_TRUE(bench.Calibrate().ok());
  const proto::MeterWindow window = bench.Window();
  EXPECT_EQ(window.check(), proto::UNCHECKED);
  EXPECT_NEAR(window.value(), bench.truth_, .02 * bench.truth_);
}

TEST(SensorMeterTest, ACounterAloneIsLabelledUnchecked) {
  FakeSensor::Flaws flaws;
  flaws.has_power = false;
  flaws.update_ms = 1;
  Bench bench(flaws);
  ASSERT_TRUE(bench.Calibrate().ok());
  const proto::MeterWindow window = bench.Window();
  EXPECT_EQ(window.check(), proto::UNCHECKED);
  EXPECT_FALSE(window.has_integrated_joules());
  EXPECT_NEAR(window.value(), bench.truth_, .01 * bench.truth_);
}

TEST(SensorMeterTest, RefusesJoulesWhereItsSourcesDisagree) {
  FakeSensor::Flaws flaws;
  flaws.counter_factor = 187. / 327;  // as published of one idle GPU
  Bench bench(flaws);
  const absl::Status refused = bench.Calibrate();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("joules are refused on fake-gpu: the energy counter "
                        "says 343.1 W and integrated power 600 W"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("5% is allowed"));
  // No second look within the same process.
  const absl::Duration loaded = bench.loaded_;
  EXPECT_FALSE(bench.Calibrate().ok());
  EXPECT_EQ(bench.loaded_, loaded);
}

TEST(SensorMeterTest, AllowsWhatIsWithinTheMargin) {
  for (const double factor : {.96, 1.04}) {
    FakeSensor::Flaws flaws;
    flaws.counter_factor = factor;
    EXPECT_TRUE(Bench(flaws).Calibrate().ok()) << factor;
  }
  for (const double factor : {.94, 1.06}) {
    FakeSensor::Flaws flaws;
    flaws.counter_factor = factor;
    EXPECT_FALSE(Bench(flaws).Calibrate().ok()) << factor;
  }
}

TEST(SensorMeterTest, RefusesACounterThatStandsStill) {
  FakeSensor::Flaws flaws;
  flaws.counter_stands_still = true;
  EXPECT_THAT(std::string(Bench(flaws).Calibrate().message()),
              HasSubstr("the energy counter stood still for"));
}

TEST(SensorMeterTest, RefusesASensorThatDoesNotSeeTheLoad) {
  Bench bench((FakeSensor::Flaws()));
  const absl::Status refused = bench.meter_->Calibrate(
      [&](absl::Duration duration) {
        bench.sensor_->Advance(duration);
        return absl::OkStatus();
      },
      "");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("75 W at rest and 75"));
}

// Power under a steady load does not show that a sensor looks at a quarter of
// the time, and so does not its energy: only loads that go up and down in step
// with it are misread, and calls back to back are none.
TEST(SensorMeterTest, ASensorThatLooksAtAQuarterOfTheTimeReadsSteadyLoads) {
  FakeSensor::Flaws flaws = Noisy();
  flaws.looks_ms = 25;
  Bench bench(flaws);
  ASSERT_TRUE(bench.Calibrate().ok());
  const proto::MeterWindow window = bench.Window(absl::Seconds(2));
  EXPECT_NEAR(window.value(), bench.truth_, .03 * bench.truth_);
}

TEST(SensorMeterTest, ACounterMayWrapAroundManyTimes) {
  FakeSensor::Flaws flaws;
  flaws.counter_range = 100;  // six times a second
  Bench bench(flaws);
  ASSERT_TRUE(bench.Calibrate().ok());
  const proto::MeterWindow window = bench.Window(absl::Seconds(3));
  EXPECT_NEAR(window.value(), bench.truth_, .01 * bench.truth_);
}

TEST(SensorMeterTest, NoisierSensorsGetLongerWindows) {
  const auto window = [](double noise) {
    FakeSensor::Flaws flaws;
    flaws.noise = noise;
    flaws.update_ms = 20;
    Bench bench(flaws);
    EXPECT_TRUE(bench.Calibrate().ok());
    return bench.meter_->info().min_window;
  };
  EXPECT_EQ(window(0), absl::Milliseconds(250));
  EXPECT_GE(window(.3), absl::Milliseconds(500));
  // No length is precise enough: the longest that could be judged.
  EXPECT_GE(window(1), absl::Seconds(2));
}

TEST(SensorMeterTest, KeepsWhatItFoundByDevice) {
  std::string pattern = testing::TempDir() + "/meter_XXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  Bench first((FakeSensor::Flaws()));
  ASSERT_TRUE(first.Calibrate(folder).ok());
  EXPECT_GT(first.loaded_, absl::Seconds(5));

  Bench second((FakeSensor::Flaws()));
  second.sensor_->clock().Advance(absl::Hours(1));
  ASSERT_TRUE(second.Calibrate(folder).ok());
  EXPECT_EQ(second.loaded_, absl::ZeroDuration());
  EXPECT_EQ(second.meter_->info().min_window, first.meter_->info().min_window);

  Bench other((FakeSensor::Flaws()), "another-gpu");
  other.sensor_->clock().Advance(absl::Hours(1));
  ASSERT_TRUE(other.Calibrate(folder).ok());
  EXPECT_GT(other.loaded_, absl::Seconds(5));

  Bench late((FakeSensor::Flaws()));
  late.sensor_->clock().Advance(absl::Hours(24 * 30));
  ASSERT_TRUE(late.Calibrate(folder).ok());
  EXPECT_GT(late.loaded_, absl::Seconds(5));

  // A file that was cut off counts as none.
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/meters/fake-gpu.textproto", "device: \"f")
          .ok());
  Bench again((FakeSensor::Flaws()));
  again.sensor_->clock().Advance(absl::Hours(1));
  ASSERT_TRUE(again.Calibrate(folder).ok());
  EXPECT_GT(again.loaded_, absl::Seconds(5));
}

TEST(SensorMeterTest, RestsUntilItIsCoolAndNoLongerThanAllowed) {
  Bench bench((FakeSensor::Flaws()));
  ASSERT_TRUE(bench.Calibrate().ok());
  bench.Work(absl::Seconds(60));  // 26 K above what it was
  bench.slept_ = absl::ZeroDuration();
  bench.meter_->Rest();
  EXPECT_GT(bench.slept_, absl::Milliseconds(500));
  EXPECT_LE(bench.slept_, absl::Seconds(5));
  bench.slept_ = absl::ZeroDuration();
  bench.sensor_->Advance(absl::Seconds(60));
  bench.meter_->Rest();
  EXPECT_EQ(bench.slept_, absl::ZeroDuration());
}

TEST(SensorMeterTest, RecordsWhatExplainsAReading) {
  Bench bench((FakeSensor::Flaws()));
  ASSERT_TRUE(bench.Calibrate().ok());
  bench.sensor_->SetShared(true);
  const proto::MeterWindow window = bench.Window(absl::Seconds(4));
  EXPECT_EQ(window.source(), "fake");
  EXPECT_TRUE(window.whole_device());
  EXPECT_TRUE(window.shared());
  EXPECT_GT(window.end_celsius(), window.start_celsius());
  EXPECT_EQ(window.start_clock_hz(), 1'980'000'000);
  EXPECT_EQ(window.power_limit_watts(), 700);
  EXPECT_EQ(window.throttle_reasons(), 0u);
  EXPECT_NEAR(static_cast<double>(window.duration_ns()), 4e9, 1e7);
}

// Two seconds at rest, then twenty under a product of 8192^3 in bf16, as NVML
// told them on an H200: its counter moves ten times a second.
TEST(SensorMeterTest, FindsHowAnH200HasToBeRead) {
  const auto csv = ReadFile("ops/device/energy/testdata/h200_product.csv");
  ASSERT_TRUE(csv.ok()) << csv.status();
  EnergyTrace trace;
  for (const absl::string_view line : absl::StrSplit(*csv, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
    double values[5];
    bool is_row = fields.size() == 5;
    for (size_t i = 0; is_row && i < 5; ++i) {
      is_row = absl::SimpleAtod(fields[i], &values[i]);
    }
    if (!is_row) continue;
    SensorReading reading;
    reading.now_ns = static_cast<int64_t>(values[1] * 1e6);
    reading.joules = values[2];
    reading.watts = values[3];
    reading.average_watts = values[4];
    (values[0] == 0 ? trace.idle : trace.load).push_back(reading);
  }
  ASSERT_EQ(trace.load.size(), 1601u);
  const proto::MeterCalibration found =
      CalibrationOf(trace, 0, CalibrationOptions());
  EXPECT_EQ(found.refused(), "");
  EXPECT_EQ(found.check(), proto::AGREES);
  EXPECT_NEAR(found.counter_watts() / found.integrated_watts(), 1, .01);
  EXPECT_NEAR(static_cast<double>(found.counter_update_ns()), 1e8, 2e6);
  EXPECT_NEAR(found.idle_watts(), 127, 2);
  EXPECT_GE(found.settle_ns(), 500'000'000);
  EXPECT_LE(found.settle_ns(), 3'000'000'000);
  // Half a second scatters by 3%, a second by .7%.
  EXPECT_EQ(found.window_ns(), 1'000'000'000) << CalibrationText(found);

  // Windows of two seconds that begin anywhere: from step to step they scatter
  // by a quarter of a percent, by what the counter says at both ends by 4.6%.
  const auto spread = [&](bool steps) {
    std::vector<double> watts;
    for (size_t i = 200; i + 170 < trace.load.size(); i += 31) {
      const auto window = absl::MakeConstSpan(trace.load).subspan(i, 165);
      const double seconds =
          static_cast<double>(window.back().now_ns - window.front().now_ns) *
          1e-9;
      watts.push_back((steps ? *CounterJoules(window, 0)
                             : *window.back().joules - *window.front().joules) /
                      seconds);
    }
    return 2 * StandardDeviation(watts) / Mean(watts);
  };
  EXPECT_LT(spread(true), .01);
  EXPECT_GT(spread(false), .03);
}

TEST(SensorMeterTest, ACounterThatGoesBackEndsTheWindow) {
  std::vector<SensorReading> readings(3);
  readings[0].joules = 5;
  readings[1].joules = 7;
  readings[2].joules = 6;
  EXPECT_THAT(std::string(CounterJoules(readings, 0).status().message()),
              HasSubstr("went back by 1 J"));
  readings[2].joules = absl::nullopt;
  EXPECT_THAT(std::string(CounterJoules(readings, 0).status().message()),
              HasSubstr("went away"));
}

TEST(SensorMeterTest, AThreadOfItsOwnLooksWhileCallsRun) {
  // Real time; the sensor's stands still, and so does its counter.
  FakeSensor::Flaws flaws;
  flaws.has_counter = false;
  auto sensor = std::make_unique<FakeSensor>(flaws);
  sensor->SetWatts(kLoadWatts);
  SensorMeterOptions options;
  options.device = "fake-gpu";
  options.sample_every = absl::Milliseconds(1);
  SensorMeter meter(std::move(sensor), options);
  ASSERT_TRUE(meter.Begin().ok());
  EXPECT_TRUE(meter.End(1).ok());
  EXPECT_FALSE(meter.End(1).ok()) << "it has ended";
}

}  // namespace
}  // namespace optrail::ops
