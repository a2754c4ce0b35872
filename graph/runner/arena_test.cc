#include "graph/runner/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "graph/runner/step_order.h"

namespace optrail::graph {
namespace {

// A program of steps over storages of so many floats.
class Programs {
 public:
  int Storage_(int64_t floats) {
    program_.storages.push_back({Storage::Kind::kArena, 4 * floats});
    return static_cast<int>(program_.storages.size()) - 1;
  }
  View All(int storage) const {
    View view;
    view.storage = storage;
    view.type = {proto::ELEMENT_F32, {program_.storages[storage].bytes / 4}};
    view.strides = {1};
    return view;
  }
  void Step_(const std::vector<int>& reads, int writes, bool in_place) {
    Step step;
    step.name = absl::StrCat("step ", program_.steps.size());
    for (const int storage : reads) step.operands.push_back(All(storage));
    step.operands.push_back(All(writes));
    step.in_place = in_place;
    program_.steps.push_back(std::move(step));
  }
  Program& program() { return program_; }

 private:
  Program program_;
};

TEST(ArenaTest, AChainInPlaceIsOneBuffer) {
  Programs p;
  int x = p.Storage_(100);
  p.Step_({}, x, false);
  for (int i = 0; i < 5; ++i) {
    const int y = p.Storage_(100);
    p.Step_({x}, y, true);
    x = y;
  }
  p.program().outputs = {p.All(x)};
  const ArenaBuffers arena = FindArenaBuffers(p.program());
  EXPECT_EQ(arena.unplanned_bytes, 2400);
  EXPECT_EQ(Plan(arena.buffers)->arena_bytes, 400);
  EXPECT_EQ(arena.buffers[1].id, "step 1");
}

TEST(ArenaTest, WhatIsReadLaterOrDifferentlyKeepsItsPlace) {
  Programs p;
  const int x = p.Storage_(100), y = p.Storage_(100), z = p.Storage_(100);
  const int wide = p.Storage_(200);
  p.Step_({}, x, false);
  p.Step_({x}, y, true);     // x is read again
  p.Step_({x, x}, z, true);  // x is read through two views
  p.Step_({y, z}, wide, true);
  const ArenaBuffers arena = FindArenaBuffers(p.program());
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    EXPECT_EQ(arena.buffers[i].group, absl::StrCat(i));
  }
}

// Executes a program symbolically: each step writes a value of its own, and
// every value must be where it was written when it is read.
TEST(ArenaTest, NoValueIsOverwrittenBeforeItIsRead) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    Programs p;
    std::vector<int> written = {p.Storage_(64)};
    p.Step_({}, written[0], false);
    for (int s = 1; s < 12; ++s) {
      std::vector<int> reads = {written[random() % written.size()]};
      if (random() % 2 == 0)
        reads.push_back(written[random() % written.size()]);
      const int y = p.Storage_(random() % 3 == 0 ? 32 : 64);
      p.Step_(reads, y, random() % 4 != 0);
      written.push_back(y);
    }
    p.program().outputs = {p.All(written.back())};
    if (trial % 2 == 1) {
      const OrderGain gain = OrderSteps(&p.program());
      ASSERT_LE(gain.after_bytes, gain.before_bytes);
    }
    const ArenaBuffers arena = FindArenaBuffers(p.program());
    const auto plan = Plan(arena.buffers);
    ASSERT_TRUE(plan.ok()) << plan.status();
    std::vector<int> holder(plan->arena_bytes / 4, -1);
    for (const Step& step : p.program().steps) {
      const auto begin = [&](const View& view) {
        return plan->offsets[arena.place.at(view.storage)] / 4;
      };
      for (size_t i = 0; i + 1 < step.operands.size(); ++i) {
        const View& x = step.operands[i];
        for (int64_t e = 0; e < x.type.dims[0]; ++e) {
          ASSERT_EQ(holder[begin(x) + e], x.storage) << "trial " << trial;
        }
      }
      const View& y = step.operands.back();
      std::fill_n(holder.begin() + begin(y), y.type.dims[0], y.storage);
    }
    ASSERT_EQ(holder[plan->offsets[arena.place.at(written.back())] / 4],
              written.back());
  }
}

TEST(StepOrderTest, BranchesThatShrinkRunOneAfterAnother) {
  Programs p;
  const int x = p.Storage_(1);
  p.Step_({}, x, false);
  const int wide_a = p.Storage_(100), wide_b = p.Storage_(100);
  p.Step_({x}, wide_a, false);
  p.Step_({x}, wide_b, false);
  const int a = p.Storage_(1), b = p.Storage_(1), sum = p.Storage_(1);
  p.Step_({wide_a}, a, false);
  p.Step_({wide_b}, b, false);
  p.Step_({a, b}, sum, false);
  p.program().outputs = {p.All(sum)};
  const OrderGain gain = OrderSteps(&p.program());
  EXPECT_EQ(gain.before_bytes, 4 * 201);
  EXPECT_EQ(gain.after_bytes, 4 * 102);
  EXPECT_EQ(p.program().steps[2].name, "step 3");
}

TEST(StepOrderTest, WritersOfPartsComeBeforeReadersOfTheWhole) {
  Programs p;
  const int whole = p.Storage_(200), big = p.Storage_(100);
  const int y = p.Storage_(1);
  p.Step_({}, big, false);
  p.Step_({}, whole, false);  // one half
  p.Step_({big}, whole, false);
  p.Step_({whole}, y, false);
  p.program().outputs = {p.All(y)};
  const OrderGain gain = OrderSteps(&p.program());
  EXPECT_EQ(p.program().steps.back().name, "step 3");
  EXPECT_LE(gain.after_bytes, gain.before_bytes);
}

}  // namespace
}  // namespace optrail::graph
