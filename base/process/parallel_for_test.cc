#include "base/process/parallel_for.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace optrail {
namespace {

TEST(ParallelForTest, EveryTurnIsTakenOnce) {
  for (const int64_t count : {0, 1, 2, 7, 1000}) {
    for (const int threads : {-1, 0, 1, 3, 50}) {
      for (const int64_t piece : {1, 4, 5000}) {
        std::vector<std::atomic<int>> calls(count);
        ParallelFor(
            count, threads, [&](int64_t i) { ++calls[i]; }, piece);
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(calls[i], 1) << i << " of " << count << " on " << threads;
        }
      }
    }
  }
}

TEST(ParallelForTest, OneThreadIsTheCallersAndKeepsTheOrder) {
  std::vector<int64_t> order;
  const std::thread::id caller = std::this_thread::get_id();
  ParallelFor(5, 1, [&](int64_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

// Each of two turns waits for the other: on one thread it would never end.
TEST(ParallelForTest, TurnsRunAtTheSameTime) {
  std::atomic<int> arrived{0};
  ParallelFor(2, 2, [&](int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

}  // namespace
}  // namespace optrail
