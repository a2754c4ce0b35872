#include "suites/disturbance.h"

#include <sched.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSampleNs = 1'000'000;

// A /proc that says what a test wants.
class DisturbanceTest : public ::testing::Test {
 protected:
  DisturbanceTest() {
    std::string pattern = ::testing::TempDir() + "/proc_XXXXXX";
    proc_ = mkdtemp(pattern.data());
  }

  void SetRunDelayNs(int64_t ns) {
    const std::string task = JoinPath(proc_, "self/task/17");
    ASSERT_TRUE(CreateDirectories(task).ok());
    Write(JoinPath(task, "schedstat"), absl::StrCat("123456 ", ns, " 42\n"));
  }

  // On the first core that the test may use; on one that it may not, there is
  // always more.
  void SetStealTicks(int64_t ticks) {
    static int64_t elsewhere = 0;
    elsewhere += 100;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    ASSERT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &cpus)) ++cpu;
    Write(JoinPath(proc_, "stat"),
          absl::StrCat("cpu  1 2 3 4 5 6 7 ", elsewhere, " 0 0\n", "cpu", cpu,
                       " 1 2 3 4 5 6 7 ", ticks, " 0 0\n",
                       "cpu1000000 1 2 3 4 5 6 7 ", elsewhere, " 0 0\n",
                       "intr 1 2 3\n"));
  }

  // In place: the monitor holds the files open, as it does real ones.
  static void Write(const std::string& path, const std::string& text) {
    FILE* file = fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    fputs(text.c_str(), file);
    fclose(file);
  }

  std::string proc_;
};

TEST_F(DisturbanceTest, AThreadThatWaitedForACoreSpoilsTheSample) {
  SetRunDelayNs(1000);
  ProcDisturbanceMonitor monitor(proc_);
  monitor.BeginSample();
  SetRunDelayNs(1000 + kSampleNs / 10);
  EXPECT_TRUE(monitor.EndSample(kSampleNs));
  proto::Conditions conditions;
  monitor.FillConditions(&conditions);
  EXPECT_DOUBLE_EQ(conditions.run_delay_fraction(), .1);
}

TEST_F(DisturbanceTest, StolenTimeSpoilsTheSample) {
  SetStealTicks(5);
  ProcDisturbanceMonitor monitor(proc_);
  monitor.BeginSample();
  SetStealTicks(6);
  EXPECT_TRUE(monitor.EndSample(kSampleNs));
}

TEST_F(DisturbanceTest, ABriefWakeUpDoesNot) {
  SetRunDelayNs(1000);
  SetStealTicks(5);
  ProcDisturbanceMonitor monitor(proc_);
  // The calibration loop is real: on a busy machine it may object to some.
  bool clean = false;
  for (int i = 0; i < 10'000 && !clean; ++i) {
    monitor.BeginSample();
    SetRunDelayNs(1000 + ProcDisturbanceMonitor::kMaxRunDelayNs - 1);
    SetStealTicks(5);  // the other cores lose more
    clean = !monitor.EndSample(kSampleNs);
    SetRunDelayNs(1000);
  }
  EXPECT_TRUE(clean);
}

TEST_F(DisturbanceTest, SaysWhichWitnessesThereAre) {
  ProcDisturbanceMonitor blind(proc_);
  EXPECT_THAT(blind.Describe(), HasSubstr("run delay: unsupported here"));
  SetRunDelayNs(0);
  SetStealTicks(0);
  ProcDisturbanceMonitor seeing(proc_);
  EXPECT_THAT(seeing.Describe(), HasSubstr("run delay: watched"));
}

}  // namespace
}  // namespace optrail::suites
