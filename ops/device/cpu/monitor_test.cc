#include "ops/device/cpu/monitor.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

constexpr int64_t kSampleNs = 1'000'000;
constexpr int64_t kLoopNs = 3000;

// A /proc that says what a test wants, and a calibration loop that takes as
// long as it wants. One thread, 17, on the first core that the test may use.
class CpuMonitorTest : public ::testing::Test {
 protected:
  CpuMonitorTest() : cpu_(UsableCpus()[0]) {
    std::string pattern = ::testing::TempDir() + "/proc_XXXXXX";
    proc_ = mkdtemp(pattern.data());
    EXPECT_TRUE(CreateDirectories(JoinPath(proc_, "self/task/17")).ok());
    SetThread(0, 0, cpu_);
    SetSteal(0, 0);
    Write(JoinPath(proc_, "loadavg"), "0.25 0.5 1 1/1 1\n");
  }

  CpuMonitor::Options Options() {
    CpuMonitor::Options options;
    options.proc = proc_;
    options.time_loop_ns = [this] { return loop_ns_; };
    return options;
  }

  void SetThread(int64_t run_time_ns, int64_t run_delay_ns, int processor) {
    const std::string task = JoinPath(proc_, "self/task/17");
    Write(JoinPath(task, "schedstat"),
          absl::StrCat(run_time_ns, " ", run_delay_ns, " 42\n"));
    std::string stat = "17 (a (test) S";
    for (int field = 4; field < 39; ++field) absl::StrAppend(&stat, " 7");
    Write(JoinPath(task, "stat"), absl::StrCat(stat, " ", processor, " 0\n"));
  }

  // Sets the ticks of the thread's own core and of the next one.
  void SetSteal(int64_t own_ticks, int64_t other_ticks) {
    Write(JoinPath(proc_, "stat"),
          absl::StrCat("cpu  1 2 3 4 5 6 7 ", own_ticks + other_ticks,
                       " 0 0\ncpu", cpu_, " 1 2 3 4 5 6 7 ", own_ticks,
                       " 0 0\ncpu", other(), " 1 2 3 4 5 6 7 ", other_ticks,
                       " 0 0\nintr 1 2 3\n"));
  }

  // A core that the test may use if there is a second one.
  int other() const {
    const std::vector<int> cpus = UsableCpus();
    return cpus.size() > 1 ? cpus[1] : cpu_ + 1;
  }

  // In place: the monitor holds the files open, as it does real ones.
  static void Write(const std::string& path, const std::string& text) {
    FILE* file = fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    fputs(text.c_str(), file);
    fclose(file);
  }

  bool Sample(CpuMonitor& monitor) {
    monitor.Begin();
    return monitor.End(kSampleNs);
  }

  const int cpu_;
  std::string proc_;
  int64_t loop_ns_ = kLoopNs;
};

TEST_F(CpuMonitorTest, AThreadThatWaitedForACoreSpoilsTheSample) {
  SetThread(0, 1000, cpu_);
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetThread(kSampleNs, 1000 + kSampleNs / 10, cpu_);
  EXPECT_TRUE(monitor.End(kSampleNs));
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  EXPECT_DOUBLE_EQ(conditions.run_delay_fraction(), .1);
  EXPECT_DOUBLE_EQ(conditions.load_average(), .25);
}

TEST_F(CpuMonitorTest, SaysHowLongASampleWaitedWhereNothingElseDisturbedIt) {
  CpuMonitor monitor(Options());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Sample(monitor)) << i;
  EXPECT_EQ(monitor.WaitedNs(), 0);
  monitor.Begin();
  SetThread(kSampleNs, kSampleNs / 10, cpu_);
  EXPECT_TRUE(monitor.End(kSampleNs));
  EXPECT_EQ(monitor.WaitedNs(), kSampleNs / 10);
  // On a core that was slow besides, nobody knows the rest.
  monitor.Begin();
  SetThread(2 * kSampleNs, 2 * kSampleNs / 10, cpu_);
  loop_ns_ = 2 * kLoopNs;
  EXPECT_TRUE(monitor.End(kSampleNs));
  EXPECT_EQ(monitor.WaitedNs(), 0);
  loop_ns_ = kLoopNs;
  monitor.Begin();
  SetThread(3 * kSampleNs, 3 * kSampleNs / 10, cpu_);
  SetSteal(1, 0);
  EXPECT_TRUE(monitor.End(kSampleNs));
  EXPECT_EQ(monitor.WaitedNs(), 0);
  monitor.Begin();
  EXPECT_FALSE(monitor.End(kSampleNs));
  EXPECT_EQ(monitor.WaitedNs(), 0);
}

TEST_F(CpuMonitorTest, ABriefWakeUpDoesNot) {
  SetThread(0, 1000, cpu_);
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetThread(kSampleNs, 1000 + CpuMonitor::kMaxRunDelayNs, cpu_);
  EXPECT_FALSE(monitor.End(kSampleNs));
}

TEST_F(CpuMonitorTest, TimeStolenFromTheThreadsCoreSpoilsTheSample) {
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetThread(kSampleNs, 0, cpu_);
  SetSteal(1, 0);
  EXPECT_TRUE(monitor.End(kSampleNs));
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  EXPECT_GT(conditions.steal_fraction(), 0);
}

TEST_F(CpuMonitorTest, TimeStolenFromAnotherCoreDoesNot) {
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetThread(kSampleNs, 0, cpu_);
  SetSteal(0, 100);
  EXPECT_FALSE(monitor.End(kSampleNs));
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  EXPECT_EQ(conditions.steal_fraction(), 0);
}

TEST_F(CpuMonitorTest, AThreadThatFledFromItsCoreTakesTheTheftAlong) {
  if (UsableCpus().size() < 2) GTEST_SKIP() << "needs two cores";
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetThread(kSampleNs, 0, other());
  SetSteal(1, 0);
  EXPECT_TRUE(monitor.End(kSampleNs));
}

TEST_F(CpuMonitorTest, AThreadThatSleptOnTheCoreDoesNotCount) {
  CpuMonitor monitor(Options());
  monitor.Begin();
  SetSteal(1, 0);  // and the thread has not run
  EXPECT_FALSE(monitor.End(kSampleNs));
}

TEST_F(CpuMonitorTest, AClockThatIsAlwaysThirtyPercentLowerUnderLoadIsUsual) {
  CpuMonitor monitor(Options());
  loop_ns_ = kLoopNs * 10 / 7;
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(Sample(monitor)) << i;
}

TEST_F(CpuMonitorTest, AClockThatDropsThirtyPercentOnTheWaySpoilsWhatFollows) {
  CpuMonitor monitor(Options());
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(Sample(monitor)) << i;
  loop_ns_ = kLoopNs * 10 / 7;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Sample(monitor)) << i;
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  EXPECT_NEAR(conditions.calibration_ratio(), 10. / 7, .001);
  // The next sampling starts there, and may use its samples.
  CpuMonitor next(Options());
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(Sample(next)) << i;
}

TEST_F(CpuMonitorTest, OneSlowReadingAtTheStartDoesNotHideLaterOnes) {
  CpuMonitor monitor(Options());
  loop_ns_ = 10 * kLoopNs;
  Sample(monitor);
  loop_ns_ = kLoopNs;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Sample(monitor)) << i;
  loop_ns_ = kLoopNs * 10 / 7;
  EXPECT_TRUE(Sample(monitor));
}

TEST_F(CpuMonitorTest, OneFastReadingDoesNotSpoilTheOthers) {
  CpuMonitor monitor(Options());
  for (int i = 0; i < 40; ++i) {
    loop_ns_ = i % 10 == 3 ? kLoopNs / 2 : kLoopNs;
    EXPECT_FALSE(Sample(monitor)) << i;
  }
}

TEST_F(CpuMonitorTest, TellsWhatTheLoopTookInAbsoluteTime) {
  CpuMonitor monitor(Options());
  for (int i = 0; i < 5; ++i) {
    loop_ns_ = i == 3 ? kLoopNs - 9 : kLoopNs;
    Sample(monitor);
  }
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  ASSERT_EQ(conditions.calibrations_size(), 1);
  EXPECT_EQ(conditions.calibrations(0).fastest_ns(), kLoopNs - 9);
  EXPECT_EQ(conditions.calibrations(0).loop(), "arithmetic");
  EXPECT_EQ(conditions.calibrations(0).time_ns(), kLoopNs);
  EXPECT_EQ(conditions.calibrations(0).readings(), 5);
}

TEST_F(CpuMonitorTest, CalibratesBetweenSamplesWhenItIsTime) {
  Calibration calibration{proto::Hardware()};
  CpuMonitor::Options options = Options();
  options.calibration = &calibration;
  CpuMonitor monitor(options);
  int turns = 0;
  for (int i = 0; i < 20; ++i) {
    Sample(monitor);
    turns += monitor.Calibrate();
  }
  EXPECT_EQ(turns, 20 / CpuMonitor::kCalibrationGapSamples);
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  ASSERT_GT(conditions.calibrations_size(), 1);
  EXPECT_EQ(conditions.calibrations(1).readings(), turns);
  // Short samples are not asked beside more often than long ones.
  CpuMonitor brief(options);
  for (int i = 0; i < 20; ++i) {
    brief.Begin();
    brief.End(CpuMonitor::kCalibrationGapNs / 21);
    EXPECT_FALSE(brief.Calibrate()) << i;
  }
}

TEST_F(CpuMonitorTest, WithoutAnyWitnessTheLoopStillSees) {
  CpuMonitor::Options options = Options();
  options.proc = JoinPath(proc_, "absent");
  CpuMonitor monitor(options);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Sample(monitor));
  loop_ns_ = 2 * kLoopNs;
  EXPECT_TRUE(Sample(monitor));
  proto::Conditions conditions;
  monitor.Fill(&conditions);
  EXPECT_FALSE(conditions.has_run_delay_fraction());
  EXPECT_FALSE(conditions.has_steal_fraction());
}

}  // namespace
}  // namespace optrail::ops
