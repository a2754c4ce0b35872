#include "ops/product/cpu/tasks.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"

namespace optrail::ops {
namespace {

int64_t Parts(int64_t length, int64_t size) { return CeilDiv(length, size); }

TEST(ShareOut, OneThreadHasAsFewTasksAsAllowed) {
  const TaskSize whole = ShareOut(1, {384, 6, 4096}, {1000, 64, 4096}, 1000, 1);
  EXPECT_EQ(Parts(384, whole.rows), 1);
  EXPECT_EQ(Parts(1000, whole.columns), 1);
  // 28 lines, at most nine at a time: 7, 7, 7, 7 and not 9, 9, 9, 1.
  const TaskSize lines =
      ShareOut(1, {28 * 28, 28, 9 * 28}, {128, 32, 1024}, 1000, 1);
  EXPECT_EQ(lines.rows, 7 * 28);
}

TEST(ShareOut, GivesEveryThreadAsMuch) {
  // 14 lines for two threads: no line is one thread's alone.
  const TaskSize image =
      ShareOut(1, {14 * 14, 14, 256}, {256, 32, 1024}, 1000, 2);
  EXPECT_EQ(Parts(14 * 14, image.rows) * Parts(256, image.columns), 2);
  // One row: columns are all there is to share.
  const TaskSize row = ShareOut(1, {1, 6, 4096}, {4096, 64, 4096}, 1000, 4);
  EXPECT_EQ(Parts(4096, row.columns), 4);
  // Enough products by themselves.
  const TaskSize batch = ShareOut(128, {512, 6, 512}, {64, 32, 1024}, 1000, 2);
  EXPECT_EQ(Parts(512, batch.rows) * Parts(64, batch.columns), 1);
}

TEST(ShareOut, CutsNothingThatIsSoonDone) {
  const TaskSize few = ShareOut(1, {64, 6, 4096}, {64, 16, 4096}, 16, 8);
  EXPECT_EQ(Parts(64, few.rows) * Parts(64, few.columns), 1);
  // Two are worth it, eight are not.
  const TaskSize two = ShareOut(1, {64, 1, 4096}, {64, 16, 4096}, 32, 8);
  EXPECT_EQ(Parts(64, two.rows) * Parts(64, two.columns), 2);
  const TaskSize most = ShareOut(1, {64, 1, 16}, {64, 16, 4096}, 1, 8);
  EXPECT_EQ(Parts(64, most.rows), 4)
      << "as many as the most of a task asks for";
}

TEST(TasksAtOnce, ClaimsAreWorthTheirWhile) {
  EXPECT_EQ(TasksAtOnce(1, 1, 8), 1);
  EXPECT_EQ(TasksAtOnce(4096, 4096, 2), 4096);
  EXPECT_EQ(TasksAtOnce(4096, 4096 * kLeastWork, 2), 1);
  EXPECT_EQ(TasksAtOnce(4096, 4096 * kLeastWork / 16, 2), 16);
  EXPECT_EQ(TasksAtOnce(100, 3 * kLeastWork, 2), 50) << "as many for each";
  EXPECT_EQ(TasksAtOnce(100, 3 * kLeastWork, 8), 34);
}

TEST(ShareOut, NeverCutsAUnitAndNeverGivesNothing) {
  for (const int64_t threads : {1, 2, 3, 7, 64}) {
    for (const int64_t m : {1, 5, 6, 7, 97, 1000}) {
      for (const int64_t n : {1, 31, 64, 65, 509}) {
        for (const int64_t most : {1, 64, 4096}) {
          const TaskSize task =
              ShareOut(1, {m, 6, most}, {n, 32, most}, 1000, threads);
          EXPECT_EQ(task.rows % 6, 0);
          EXPECT_EQ(task.columns % 32, 0);
          EXPECT_GT(task.rows, 0);
          EXPECT_GT(task.columns, 0);
          EXPECT_LE(task.rows, std::max<int64_t>(most + 5, 6));
          EXPECT_LE(task.columns, std::max<int64_t>(most + 31, 32));
        }
      }
    }
  }
}

}  // namespace
}  // namespace optrail::ops
