#include "tuning/search/task_scheduler.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::tuning {
namespace {

// A task whose best cost decays from 2 * floor to its floor with a time
// constant in trials.
struct FakeTask {
  double floor, trials_to_learn;
  int trials = 0;
  double Cost() const {
    return floor * (1 + std::exp(-trials / trials_to_learn));
  }
};

// `batches` of 8 trials; returns the trials of each task.
std::vector<int> Schedule(TaskScheduler& scheduler,
                          std::vector<FakeTask>& tasks, int batches) {
  for (int i = 0; i < batches; ++i) {
    const absl::optional<int> task = scheduler.Next();
    if (!task) break;
    tasks[*task].trials += 8;
    scheduler.Report(*task, {8, tasks[*task].Cost()});
  }
  std::vector<int> trials;
  for (const FakeTask& task : tasks) trials.push_back(task.trials);
  return trials;
}

TEST(TaskSchedulerTest, WarmsUpEveryTask) {
  TaskSchedulerOptions options;
  options.warm_up_trials = 16;
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 100, 0}, {"c", 1, 0}}, options);
  std::vector<FakeTask> tasks = {{1, 10}, {1, 10}, {1, 10}};
  EXPECT_EQ(Schedule(scheduler, tasks, 6), (std::vector<int>{16, 16, 16}));
}

TEST(TaskSchedulerTest, TheWarmUpIsAboutAQuarterOfATotalInWholeTrials) {
  // Rounded up: 52 of 105 trials, which is more than a quarter.
  EXPECT_EQ(WarmUpTrials(105, 26), 2);
  EXPECT_EQ(WarmUpTrials(104, 26), 1);
  EXPECT_EQ(WarmUpTrials(200, 26), 2);
  EXPECT_EQ(WarmUpTrials(100, 26), 1);
  EXPECT_EQ(WarmUpTrials(3, 26), 1);
  EXPECT_EQ(WarmUpTrials(2000, 26), 4);
  EXPECT_EQ(WarmUpTrials(200, 1), 4);
}

TEST(TaskSchedulerTest, ATaskWithoutSuccessGetsALongerWarmUpButNotAll) {
  TaskScheduler scheduler({{"fails", 1, 0}, {"works", 1, 0}});
  int failing = 0;
  for (int i = 0; i < 30; ++i) {
    const int task = *scheduler.Next();
    if (task == 0) failing += 4;
    scheduler.Report(
        task, {4, task == 0 ? absl::nullopt : absl::optional<double>(1.0 / i)});
  }
  EXPECT_EQ(failing, 16);
}

TEST(TaskSchedulerTest, PrefersTheTaskThatWeighsMore) {
  TaskScheduler scheduler({{"rare", 1, 0}, {"frequent", 20, 0}});
  std::vector<FakeTask> tasks = {{1, 100}, {1, 100}};
  const std::vector<int> trials = Schedule(scheduler, tasks, 40);
  EXPECT_GT(trials[1], 2 * trials[0]);
}

TEST(TaskSchedulerTest, LeavesATaskThatStalls) {
  TaskScheduler scheduler({{"stuck", 1000, 0}, {"learning", 1, 0}});
  // Nothing to learn: its cost is the same at once.
  std::vector<FakeTask> tasks = {{1, 1e-9}, {1, 500}};
  const std::vector<int> trials = Schedule(scheduler, tasks, 60);
  EXPECT_LE(trials[0], 8 + 64);
  EXPECT_GT(trials[1], 300);
  EXPECT_TRUE(scheduler.HasStalled(0));
  EXPECT_FALSE(scheduler.HasStalled(1));
  EXPECT_FALSE(scheduler.AllStalled());
}

TEST(TaskSchedulerTest, WhenAllHaveStalledTheyShareWhatIsLeft) {
  TaskScheduler scheduler({{"a", 3, 0}, {"b", 1, 0}});
  std::vector<FakeTask> tasks = {{1, 1e-9}, {1, 1e-9}};
  const std::vector<int> trials = Schedule(scheduler, tasks, 60);
  EXPECT_TRUE(scheduler.AllStalled());
  EXPECT_EQ(trials[0] + trials[1], 8 * 60);
  EXPECT_GT(trials[0], trials[1]);
  EXPECT_GT(trials[1], 100);
}

TEST(TaskSchedulerTest, AGainEndsTheStall) {
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 1, 0}});
  for (int i = 0; i < 9; ++i) scheduler.Report(0, {8, 1.0});
  EXPECT_TRUE(scheduler.HasStalled(0));
  scheduler.Report(0, {8, 0.9});
  EXPECT_FALSE(scheduler.HasStalled(0));
}

TEST(TaskSchedulerTest, ASiblingsBestConfigKeepsATaskFromStalling) {
  TaskScheduler scheduler({{"a", 1, 0, {1}}, {"b", 1, 0, {0}}, {"c"}});
  for (int i = 0; i < 9; ++i) {
    scheduler.Report(0, {8, 1.0, absl::nullopt, 0, "tile=1"});
    scheduler.Report(2, {8, 1.0});
  }
  EXPECT_TRUE(scheduler.HasStalled(0));
  EXPECT_TRUE(scheduler.HasStalled(2));
  scheduler.Report(1, {8, 1.0, absl::nullopt, 0, "tile=2"});
  EXPECT_FALSE(scheduler.HasStalled(0)) << "has tile=2 to try";
  ASSERT_EQ(scheduler.TakeSuggestion(0), "tile=2");
  EXPECT_FALSE(scheduler.HasStalled(0)) << "is trying it";
  scheduler.Report(0, {4, 1.0, absl::nullopt, 0, "tile=1", false});
  EXPECT_FALSE(scheduler.HasStalled(0)) << "has not answered yet";
  scheduler.Report(0, {1, 1.0, absl::nullopt, 0, "tile=1", true});
  EXPECT_TRUE(scheduler.HasStalled(0));
}

TEST(TaskSchedulerTest, DoesNotChaseWhatTheRooflineForbids) {
  TaskScheduler scheduler({{"at its floor", 10, 1.0}, {"far from it", 1, 0.1}});
  for (int i = 0; i < 4; ++i) {
    scheduler.Report(0, {8, 1.0});
    scheduler.Report(1, {8, 1.0 - 0.01 * i});
  }
  EXPECT_EQ(scheduler.ExpectedGain(0), 0);
  EXPECT_EQ(scheduler.Next(), 1);
}

TEST(TaskSchedulerTest, BelievesTheModelAndTheHistory) {
  TaskScheduler scheduler({{"done", 1, 0}, {"promising", 1, 0}});
  for (int task = 0; task < 2; ++task) {
    for (int i = 0; i < 4; ++i) {
      scheduler.Report(task, {8, 1.0 - 0.01 * i, task == 0 ? 1e-5 : 1e-2});
    }
  }
  EXPECT_GT(scheduler.ExpectedGain(1), 10 * scheduler.ExpectedGain(0));
  EXPECT_LT(scheduler.ExpectedGain(1), 1000 * scheduler.ExpectedGain(0));
}

TEST(TaskSchedulerTest, AnExpensiveTaskGainsLessPerEffort) {
  TaskScheduler scheduler({{"cheap", 1, 0}, {"expensive", 1, 0}});
  for (int i = 0; i < 4; ++i) {
    scheduler.Report(0, {8, 1.0 - 0.01 * i, absl::nullopt, 2.0});
    scheduler.Report(1, {8, 1.0 - 0.01 * i, absl::nullopt, 20.0});
  }
  EXPECT_DOUBLE_EQ(scheduler.ExpectedGain(0), 10 * scheduler.ExpectedGain(1));
}

TEST(TaskSchedulerTest, AHeldTaskWaitsUntilTheOthersHaveStalled) {
  TaskScheduler scheduler({{"held", 1000, 0}, {"open", 1, 0}});
  std::vector<FakeTask> tasks = {{1, 500}, {1, 1e-9}};
  scheduler.Hold(0);
  // The warm-up is its own nevertheless; then "open" has all until it stalls.
  EXPECT_EQ(Schedule(scheduler, tasks, 10), (std::vector<int>{8, 72}));
  EXPECT_TRUE(scheduler.HasStalled(1));
  EXPECT_EQ(Schedule(scheduler, tasks, 5), (std::vector<int>{48, 72}));
  // Held, but not stalled: it goes before what has stalled.
  EXPECT_FALSE(scheduler.AllStalled());
}

TEST(TaskSchedulerTest, AHeldTaskDoesNotWaitForFinishedOnes) {
  TaskScheduler scheduler({{"a", 1000, 0}, {"b", 1, 0}});
  std::vector<FakeTask> tasks = {{1, 500}, {1, 500}};
  scheduler.Hold(0);
  EXPECT_EQ(Schedule(scheduler, tasks, 6), (std::vector<int>{8, 40}));
  scheduler.Finish(1);
  EXPECT_EQ(scheduler.Next(), 0);
}

TEST(TaskSchedulerTest, EndsWhenAllAreFinished) {
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 1, 0}});
  scheduler.Finish(0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(scheduler.Next(), 1);
    scheduler.Report(1, {8, 3.0});
  }
  EXPECT_TRUE(scheduler.AllStalled());
  scheduler.Finish(1);
  EXPECT_FALSE(scheduler.Next().has_value());
}

TEST(TaskSchedulerTest, BeatsRoundRobinOnAWorkload) {
  const std::vector<FakeTask> tasks = {{1, 60}, {5, 80}, {0.2, 40}, {10, 120}};
  const auto total = [](const std::vector<FakeTask>& list) {
    double sum = 0;
    for (const FakeTask& task : list) sum += task.Cost();
    return sum;
  };
  std::vector<FakeTask> scheduled = tasks, round_robin = tasks;
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 1, 0}, {"c", 1, 0}, {"d", 1, 0}});
  Schedule(scheduler, scheduled, 40);
  for (int i = 0; i < 40; ++i) round_robin[i % 4].trials += 8;
  EXPECT_LT(total(scheduled), total(round_robin));
}

}  // namespace
}  // namespace optrail::tuning
