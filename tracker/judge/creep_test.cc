// Creeps among steps and drifts, judged at each of their commits as a team
// does, since what is reported once stays.

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tracker/judge/beside.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/judge_test_fixture.h"

namespace optrail::tracker {
namespace {

// FindCreep looks at no fewer points.
constexpr int kFewestOfCreep = 30;

class CreepTest : public JudgeTest {
 protected:
  // A commit that takes `worse` more than 100 ns, in noise of `percent`, which
  // is at least 1.
  void Commit(double worse, double percent) {
    const double beside = .01 * std::sqrt(percent * percent - 1);
    Measure(1, 100 * (1 + worse) * std::exp(beside * rng_.Gaussian()));
  }

  static int CountCreeps(const Judgement& judgement) {
    return static_cast<int>(
        std::count_if(judgement.changes.begin(), judgement.changes.end(),
                      [](const Change& change) {
                        return change.kind == ChangeKind::kCreep;
                      }));
  }
  static bool HasOpen(const Judgement& judgement) {
    return std::any_of(judgement.changes.begin(), judgement.changes.end(),
                       [](const Change& change) {
                         return change.IsOpen() || change.IsAlert();
                       });
  }
};

// A beginning of the level about twice as long as the place of its step has the
// step in its middle.
TEST_F(CreepTest, ACleanStepHasNoCreepAtAnyCommit) {
  int with_creep = 0;
  for (const double percent : {1., 2.}) {
    for (const double worse : {.05, .08}) {
      for (int at = 12; at < 42; at += 2) {
        runs_.clear();
        bool creeps = false;
        for (int i = 0; i < at + 35; ++i) {
          Commit(i < at ? 0 : worse, percent);
          if (i + 1 >= kFewestOfCreep) creeps |= CountCreeps(Judge()) > 0;
        }
        with_creep += creeps;
      }
    }
  }
  EXPECT_EQ(with_creep, 0) << "of 60 steps";
}

// A step of 5% in noise of 2% is hardly visible in as few points.
TEST_F(CreepTest, AStepThatNoiseNearlyHidesHasHardlyACreep) {
  int with_creep = 0;
  for (int story = 0; story < 200; ++story) {
    runs_.clear();
    for (int i = 0; i < 46; ++i) Commit(i < 15 + story % 6 ? 0 : .05, 2);
    with_creep += CountCreeps(Judge());
  }
  EXPECT_LE(with_creep, 4) << "of 200 steps";
}

TEST_F(CreepTest, ADriftKeepsItsCreep) {
  int known = 0, without_row = 0, silent = 0, found = 0;
  for (const double percent : {1., 2.}) {
    for (int story = 0; story < 20; ++story) {
      runs_.clear();
      bool is_known = false;
      const int flat = 5 * (story % 5);
      for (int i = 0; i < flat + 60; ++i) {
        Commit(.003 * std::max(0, i - flat), percent);
        if (i + 1 < kFewestOfCreep) continue;
        const Judgement judgement = Judge();
        is_known |= CountCreeps(judgement) > 0;
        if (!is_known) continue;
        ++known;
        without_row += CountCreeps(judgement) == 0;
        silent += !HasOpen(judgement);
      }
      found += is_known;
    }
  }
  EXPECT_EQ(found, 40);
  // A mark that looks like a step for some commits may take its place.
  EXPECT_LE(without_row, known / 50) << "of " << known;
  EXPECT_LE(silent, known / 500) << "of " << known;
}

// Beginnings of long levels are not all tried; those that are stay the same.
TEST_F(CreepTest, ALongLevelKeepsItsCreep) {
  Series series;
  int since = 0, missing = 0;
  for (int i = 0; i < 1200; ++i) {
    Point point;
    point.value = 100 * std::exp(1e-4 * i + .01 * rng_.Gaussian());
    series.points.push_back(point);
    const bool found = FindCreep(series, 0, /*marks=*/{}).has_value();
    since += found || since > 0;
    missing += since > 0 && !found;
  }
  EXPECT_GE(since, 600);
  EXPECT_LE(missing, since / 50);
}

// Neither noise, nor bursts, nor levels in turns climb.
TEST_F(CreepTest, NoiseWithoutMemoryNeverCreeps) {
  const auto count = [this](const auto& noise) {
    int creeps = 0;
    for (int story = 0; story < 60; ++story) {
      Series series;
      for (int i = 0; i < 120; ++i) {
        Point point;
        point.value = 100 * std::exp(.01 * rng_.Gaussian() + noise(i));
        series.points.push_back(point);
        if (i % 5 == 4) {
          creeps += FindCreep(series, 0, /*marks=*/{}).has_value();
        }
      }
    }
    return creeps;
  };
  int left = 0;
  double level = 0;
  EXPECT_EQ(count([&](int) { return .1 * rng_.Gaussian(); }), 0) << "10%";
  EXPECT_EQ(count([&](int) {
              if (--left < 0 && rng_.UniformReal() < .01) left = 10;
              return left >= 0 ? .3 : 0;
            }),
            0)
      << "bursts";
  EXPECT_EQ(count([&](int) {
              if (rng_.UniformReal() < .02) level = .1 - level;
              return level;
            }),
            0)
      << "two levels";
}

// Points before `begin` are of another epoch.
TEST_F(CreepTest, ALevelWithoutPointsBeforeTheChangeMayJump) {
  Measure(60, 100);
  const Series series = BuildSeries(runs_).at(0);
  ChangePoint change;
  change.index = 5;
  EXPECT_FALSE(JumpsAt(series, 0, change));
  EXPECT_TRUE(JumpsAt(series, 40, change));
}

TEST_F(CreepTest, AMarkThatJumpsByMostOfTheRiseLeavesNoCreep) {
  Series series;
  for (int i = 0; i < 80; ++i) {
    Point point;
    point.value = 100 * std::exp(.002 * i + .005 * rng_.Gaussian());
    series.points.push_back(point);
  }
  EXPECT_TRUE(FindCreep(series, 0, /*marks=*/{}));
  EXPECT_TRUE(FindCreep(series, 0, /*marks=*/{40})) << "no jump";
  for (int i = 20; i < 80; ++i) *series.points[i].value *= 1.3;
  EXPECT_FALSE(FindCreep(series, 0, /*marks=*/{20}));
}

}  // namespace
}  // namespace optrail::tracker
