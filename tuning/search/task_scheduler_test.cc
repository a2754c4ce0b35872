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

TEST(TaskSchedulerTest, WarmsUpEveryTask) {
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 100, 0}, {"c", 1, 0}});
  std::vector<int> trials(3);
  for (int i = 0; i < 6; ++i) {
    const int task = *scheduler.Next();
    trials[task] += 8;
    scheduler.Report(task, 8, 1.0);
  }
  EXPECT_EQ(trials, (std::vector<int>{16, 16, 16}));
}

TEST(TaskSchedulerTest, PrefersTheTaskThatWeighsMore) {
  TaskScheduler scheduler({{"rare", 1, 0}, {"frequent", 20, 0}});
  std::vector<FakeTask> tasks = {{1, 100}, {1, 100}};
  for (int i = 0; i < 40; ++i) {
    const int task = *scheduler.Next();
    tasks[task].trials += 8;
    scheduler.Report(task, 8, tasks[task].Cost());
  }
  EXPECT_GT(tasks[1].trials, 2 * tasks[0].trials);
}

TEST(TaskSchedulerTest, LeavesATaskThatStalls) {
  TaskScheduler scheduler({{"stuck", 1000, 0}, {"learning", 1, 0}});
  FakeTask learning = {1, 500};
  int stuck = 0;
  for (int i = 0; i < 60; ++i) {
    const int task = *scheduler.Next();
    if (task == 0) {
      stuck += 8;
      scheduler.Report(task, 8, 1.0);
    } else {
      learning.trials += 8;
      scheduler.Report(task, 8, learning.Cost());
    }
  }
  EXPECT_LE(stuck, 16 + 64);
  EXPECT_GT(learning.trials, 300);
}

TEST(TaskSchedulerTest, DoesNotChaseWhatTheRooflineForbids) {
  TaskScheduler scheduler({{"at its floor", 10, 1.0}, {"far from it", 1, 0.1}});
  for (int i = 0; i < 4; ++i) {
    scheduler.Report(0, 8, 1.0);
    scheduler.Report(1, 8, 1.0 - 0.01 * i);
  }
  EXPECT_EQ(scheduler.ExpectedGain(0), 0);
  EXPECT_EQ(scheduler.Next(), 1);
}

TEST(TaskSchedulerTest, EndsWhenAllHaveStalledOrFinished) {
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 1, 0}});
  scheduler.Finish(0);
  for (int i = 0; i < 20 && scheduler.Next(); ++i) {
    EXPECT_EQ(scheduler.Next(), 1);
    scheduler.Report(1, 8, 3.0);
  }
  EXPECT_FALSE(scheduler.Next().has_value());
  EXPECT_EQ(scheduler.TotalCost(), 3.0);
}

TEST(TaskSchedulerTest, BeatsRoundRobinOnAWorkload) {
  const auto tasks = [] {
    return std::vector<FakeTask>{{1, 60}, {5, 80}, {0.2, 40}, {10, 120}};
  };
  const auto total = [](const std::vector<FakeTask>& list) {
    double sum = 0;
    for (const FakeTask& task : list) sum += task.Cost();
    return sum;
  };
  std::vector<FakeTask> scheduled = tasks(), round_robin = tasks();
  TaskScheduler scheduler({{"a", 1, 0}, {"b", 1, 0}, {"c", 1, 0}, {"d", 1, 0}});
  for (int i = 0; i < 40; ++i) {
    const int task = *scheduler.Next();
    scheduled[task].trials += 8;
    scheduler.Report(task, 8, scheduled[task].Cost());
    round_robin[i % 4].trials += 8;
  }
  EXPECT_LT(total(scheduled), total(round_robin));
}

}  // namespace
}  // namespace optrail::tuning
