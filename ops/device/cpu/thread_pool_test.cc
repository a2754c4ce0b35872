#include "ops/device/cpu/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

TEST(ThreadPool, RunsEveryIterationExactlyOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      pool.ParallelFor(count, [&](int64_t i) { calls[i].fetch_add(1); });
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(calls[i].load(), 1)
            << "iteration " << i << " of " << count << ", threads " << threads;
      }
    }
  }
}

TEST(ThreadPool, WritesAreVisibleAfterEachOfManyShortLoops) {
  ThreadPool pool(3);
  std::vector<int64_t> plain(5, 0);  // not atomic: the loop's end orders it
  for (int64_t round = 1; round <= 20000; ++round) {
    pool.ParallelFor(5, [&](int64_t i) { plain[i] += i; });
    for (int64_t i = 0; i < 5; ++i) ASSERT_EQ(plain[i], round * i);
  }
}

TEST(ThreadPool, LoopsOfDifferentLengthsDoNotMix) {
  ThreadPool pool(4);
  for (int64_t round = 0; round < 5000; ++round) {
    const int64_t count = 2 + round % 17;
    std::atomic<int64_t> sum{0};
    pool.ParallelFor(count, [&](int64_t i) {
      ASSERT_LT(i, count);
      sum.fetch_add(i + 1);
    });
    ASSERT_EQ(sum.load(), count * (count + 1) / 2);
  }
}

TEST(ThreadPool, WakesThreadsThatSleep) {
  ThreadPool pool(2);
  // The second iteration ends only after the first has begun on another
  // thread: both threads must take part, however long the worker has slept.
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> begun{0};
    pool.ParallelFor(2, [&](int64_t) {
      begun.fetch_add(1);
      while (begun.load() < 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun.load(), 2);
  }
}

TEST(ThreadPool, AThreadBeginsWithTheSameShareEveryTime) {
  constexpr int kThreads = 3;
  ThreadPool pool(kThreads);
  std::vector<std::thread::id> ran(kThreads);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> begun{0};
    pool.ParallelFor(kThreads, [&](int64_t i) {
      // Nobody is free for another's iteration.
      begun.fetch_add(1);
      while (begun.load() < kThreads) std::this_thread::yield();
      if (round == 0) ran[i] = std::this_thread::get_id();
      EXPECT_EQ(ran[i], std::this_thread::get_id()) << "iteration " << i;
    });
  }
  EXPECT_EQ(ran[0], std::this_thread::get_id());
}

TEST(ThreadPool, WhoIsDoneTakesFromOthers) {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  // The first iteration waits for all others, which are of both shares.
  pool.ParallelFor(10, [&](int64_t i) {
    if (i != 0) {
      done.fetch_add(1);
      return;
    }
    while (done.load() < 9) std::this_thread::yield();
  });
  EXPECT_EQ(done.load(), 9);
}

TEST(ThreadPool, ALoopInsideALoopRunsToo) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  pool.ParallelFor(4, [&](int64_t) {
    pool.ParallelFor(3, [&](int64_t) { calls.fetch_add(1); });
  });
  EXPECT_EQ(calls.load(), 12);
}

TEST(ThreadPool, MakesProgressWhenAllThreadsShareOneCore) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  std::atomic<int64_t> calls{0};
  {
    ThreadPool pool(4);  // its threads inherit the mask
    for (int round = 0; round < 1000; ++round) {
      pool.ParallelFor(8, [&](int64_t) { calls.fetch_add(1); });
    }
  }
  EXPECT_EQ(calls.load(), 8000);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(ThreadPool, EndsWithoutEverHavingRunALoop) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

}  // namespace
}  // namespace optrail::ops
