#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#define __device__
#include "ops/product/cuda/schedule.cuh"

namespace optrail {
namespace {

struct Case {
  int rows, columns, steps, group, parts, clusters;
};

// Whatever the clusters do, each step of each tile is done once, by parts that
// agree on how many they are and follow each other, each with a place of its
// own for its sums.
void Check(const Case& c) {
  SCOPED_TRACE(absl::StrCat(c.rows, "x", c.columns, " tiles of ", c.steps,
                            " steps, groups of ", c.group, ", ", c.parts,
                            " parts, ", c.clusters, " clusters"));
  struct Done {
    int begin, end, parts;
  };
  std::map<int, std::map<int, Done>> tiles;
  std::set<std::pair<int, int>> positions;
  std::set<long long> places;
  int most = 0, least = 1 << 30;
  for (int cluster = 0; cluster < c.clusters; ++cluster) {
    Schedule<true> schedule(c.rows, c.columns, c.steps, c.group, c.parts,
                            cluster, c.clusters);
    Work work;
    int steps = 0;
    while (schedule.Next(work)) {
      ASSERT_LT(work.step, work.end);
      ASSERT_LT(work.row, c.rows);
      ASSERT_LT(work.column, c.columns);
      if (work.part == 0) {
        EXPECT_TRUE(positions.insert({work.row, work.column}).second);
      }
      steps += work.end - work.step;
      EXPECT_TRUE(tiles[work.tile]
                      .insert({work.part, {work.step, work.end, work.parts}})
                      .second);
      if (work.parts == 1) continue;
      const long long place = schedule.PlaceOf(work, work.part);
      EXPECT_TRUE(places.insert(place).second) << place;
      if (c.parts == 0) {
        EXPECT_LT(place, 2 * c.clusters);
        EXPECT_EQ(work.first + work.part, cluster);
      } else {
        EXPECT_LT(place, c.rows * c.columns * c.parts);
      }
    }
    most = std::max(most, steps);
    least = std::min(least, steps);
  }
  EXPECT_EQ(positions.size(), c.rows * c.columns);
  ASSERT_EQ(tiles.size(), c.rows * c.columns);
  for (const auto& [tile, parts] : tiles) {
    int at = 0;
    for (const auto& [part, done] : parts) {
      EXPECT_EQ(done.begin, at) << tile;
      EXPECT_EQ(done.parts, parts.size()) << tile;
      at = done.end;
    }
    EXPECT_EQ(at, c.steps) << tile;
  }
  if (c.parts == 0) {
    EXPECT_LE(most - least, 1);
  }
}

TEST(Schedule, DoesEachStepOnce) {
  for (const int parts : {1, 2, 3, 4}) {
    for (const int clusters : {1, 5, 66, 132}) {
      Check({9, 16, 64, 8, parts, clusters});
      Check({1, 7, 9, 4, parts, clusters});
      Check({33, 4, 72, 16, parts, clusters});
    }
  }
}

TEST(Schedule, SharesAllStepsEvenly) {
  for (const int clusters : {1, 2, 3, 66, 131, 132}) {
    for (const int rows : {1, 2, 5, 12, 17, 33}) {
      for (const int columns : {1, 4, 11}) {
        for (const int steps : {1, 3, 16, 225}) {
          if (static_cast<int64_t>(rows) * columns * steps < clusters) continue;
          Check({rows, columns, steps, 8, 0, clusters});
        }
      }
    }
  }
}

TEST(Schedule, SharesNothingWithoutNeed) {
  // 2 x 132 tiles are two rounds of 132.
  for (int cluster = 0; cluster < 132; ++cluster) {
    Schedule<true> schedule(33, 8, 64, 8, 0, cluster, 132);
    Work work;
    while (schedule.Next(work)) EXPECT_EQ(work.parts, 1);
  }
  // Of 3 x 132 + 1, all but the last 133 have one cluster each.
  std::set<int> shared;
  for (int cluster = 0; cluster < 132; ++cluster) {
    Schedule<true> schedule(397, 1, 64, 8, 0, cluster, 132);
    Work work;
    while (schedule.Next(work)) {
      if (work.parts > 1) shared.insert(work.tile);
    }
  }
  EXPECT_GE(*shared.begin(), 264);
  EXPECT_LE(shared.size(), 133);
}

}  // namespace
}  // namespace optrail
