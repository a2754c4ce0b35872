#include "suites/tune/promotion.h"

#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A machine with a cache of `kCacheBytes` that keeps what was used last. A call
// takes its own time, and a nanosecond for each 16 bytes that it has to load.
constexpr double kCacheBytes = 1 << 20;

struct Kernel {
  double own_ns;
  double bytes;
};

class Machine : public ops::Timer {
 public:
  explicit Machine(std::vector<Kernel> kernels)
      : kernels_(std::move(kernels)) {}

  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override {
    double ns = 0;
    for (int64_t call = 0; call < calls_; ++call) {
      for (size_t i = 0; i < kernels_.size(); ++i) ns += CallNs(i);
    }
    return static_cast<int64_t>(ns);
  }

 private:
  double CallNs(size_t kernel) {
    double ns = kernels_[kernel].own_ns;
    double used = 0;  // since the last call of this kernel
    bool cached = false;
    for (const size_t earlier : used_) {
      cached =
          earlier == kernel && used + kernels_[kernel].bytes <= kCacheBytes;
      if (earlier == kernel) break;
      used += kernels_[earlier].bytes;
    }
    if (!cached) ns += kernels_[kernel].bytes / 16;
    used_.push_front(kernel);
    if (used_.size() > 100) used_.pop_back();
    return ns;
  }

  const std::vector<Kernel> kernels_;
  std::deque<size_t> used_;  // last first
  int64_t calls_ = 1;
};

// A workload of layers that have an old and a new config.
struct Layers {
  std::vector<Kernel> old_kernels, new_kernels;

  MeasurePromotion Measure() const {
    return [this](const std::vector<bool>& is_new, absl::Duration most) {
      std::vector<Kernel> mixed = old_kernels;
      for (size_t i = 0; i < mixed.size(); ++i) {
        if (is_new[i]) mixed[i] = new_kernels[i];
      }
      Machine before(old_kernels), after(mixed);
      PairedTimingOptions options;
      options.most = most;
      options.half_width = kMostLoss / 2;
      return TimePairs(before, after, options);
    };
  }
};

// The time of the layer alone, its operands in the cache.
double AloneNs(const Kernel& kernel) {
  Machine machine({kernel});
  EXPECT_TRUE(machine.Prepare(1).ok());
  EXPECT_TRUE(machine.TimeNs().ok());
  return static_cast<double>(*machine.TimeNs());
}

constexpr Kernel kNeighbour = {20'000, 600'000};

TEST(PromotionTest, AMicroWinThatFillsTheCacheIsRefused) {
  const Layers layers = {{{30'000, 100'000}, kNeighbour},
                         {{20'000, 900'000}, kNeighbour}};
  // Alone it is half again as fast.
  EXPECT_NEAR(AloneNs(layers.old_kernels[0]) / AloneNs(layers.new_kernels[0]),
              1.5, .01);
  const auto verdicts = JudgePromotion(2, absl::Seconds(4), layers.Measure());
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].state, PromotionState::kLoses);
  EXPECT_LT((*verdicts)[0].times.high(), 1);
  EXPECT_EQ((*verdicts)[0].together, 1);
  // The neighbour's new config is its old one, which does not lose.
  EXPECT_EQ((*verdicts)[1].state, PromotionState::kWins);
}

TEST(PromotionTest, WhatWinsTogetherIsPromotedByOneMeasurement) {
  const Layers layers = {{{30'000, 100'000}, {10'000, 100'000}},
                         {{20'000, 100'000}, {9'000, 100'000}}};
  int measurements = 0;
  const auto verdicts =
      JudgePromotion(2, absl::Seconds(4),
                     [&](const std::vector<bool>& is_new, absl::Duration most) {
                       ++measurements;
                       return layers.Measure()(is_new, most);
                     });
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ(measurements, 1);
  for (const PromotionVerdict& verdict : *verdicts) {
    EXPECT_EQ(verdict.state, PromotionState::kWins);
    EXPECT_EQ(verdict.together, 2);
    EXPECT_NEAR(verdict.times.ratio(), 40. / 29, .01);
  }
}

TEST(PromotionTest, TwoThatFitAloneAndNotTogetherAreRefused) {
  // Either may take half of the cache, both evict the third.
  const Layers layers = {
      {{20'000, 50'000}, {20'000, 50'000}, {10'000, 500'000}},
      {{19'000, 400'000}, {19'000, 400'000}, {10'000, 500'000}}};
  const auto verdicts = JudgePromotion(
      2, absl::Seconds(4), [&](std::vector<bool> is_new, absl::Duration most) {
        is_new.push_back(false);
        return layers.Measure()(is_new, most);
      });
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].state, PromotionState::kLoses);
  EXPECT_EQ((*verdicts)[1].state, PromotionState::kLoses);
  EXPECT_EQ((*verdicts)[1].together, 2);
}

TEST(PromotionTest, WhatCannotBeToldIsUndecided) {
  const auto verdicts = JudgePromotion(
      1, absl::Seconds(4), [](const std::vector<bool>&, absl::Duration) {
        PairedTimes times;
        times.evidence.low = -.05;
        times.evidence.high = .05;
        return absl::StatusOr<PairedTimes>(times);
      });
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_EQ((*verdicts)[0].state, PromotionState::kUndecided);
}

// A workload that calls one kernel, `add`, and overlay entries for it.
class RunPromotionTest : public ::testing::Test {
 protected:
  RunPromotionTest() {
    Write("kernels/BUILD", "operator(name = \"add\")\n");
    Write("w.textproto",
          "name: \"w\" layer { operator_name: \"add\" shape: \"n=4096/f32\" "
          "count: 3 }");
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    auto context = FindRunContext(proto::CPU, "", "");
    EXPECT_TRUE(context.ok()) << context.status();
    command_.context = *std::move(context);
    auto folders = tuning::OperatorFolders::Find(folder_);
    EXPECT_TRUE(folders.ok()) << folders.status();
    command_.folders = *std::move(folders);
    command_.selection.workload = JoinPath(folder_, "w.textproto");
    command_.time = absl::Seconds(3);
    command_.format = OutputFormat::kCsv;
  }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(folder_, name);
    ASSERT_TRUE(CreateDirectories(DirectoryOf(path)).ok());
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  // Puts the default into the overlay as if it was tuned.
  void PutIntoOverlay(const std::string& shape) {
    const auto tasks =
        SelectTasks(command_.selection, command_.context.hardware);
    ASSERT_TRUE(tasks.ok()) << tasks.status();
    const auto space = BindTask((*tasks)[0], command_.context.hardware);
    ASSERT_TRUE(space.ok()) << space.status();
    proto::TunedConfig tuned;
    tuned.set_config(tuning::CanonicalText(space->bound->default_config()));
    tuned.set_threads(1);
    tuned.set_cache_mode(proto::HOT);
    tuned.set_shape(shape);
    ASSERT_TRUE(tuning::WriteOverlay(command_.context.store, "add",
                                     command_.context.hardware.id(), proto::CPU,
                                     tuned)
                    .ok());
  }
  int Run() {
    out_.str("");
    notes_.str("");
    const absl::StatusOr<int> code = RunPromotion(command_, out_, notes_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }
  std::string CheckedInPath() const {
    return JoinPath(
        folder_, absl::StrCat("kernels/tuned/", command_.context.hardware.id(),
                              ".textproto"));
  }

  const std::string folder_ = JoinPath(
      ::testing::TempDir(),
      absl::StrCat(
          "promotion_",
          ::testing::UnitTest::GetInstance()->current_test_info()->name()));
  PromotionCommand command_;
  std::ostringstream out_, notes_;
};

// With a kernel of this machine: the new config is the default, which the old
// store answers with, too. Noise may leave it undecided.
TEST_F(RunPromotionTest, MovesWhatWinsAndNothingElse) {
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(notes_.str(), HasSubstr("holds nothing new"));
  for (const char* shape : {"n=4096/f32", "n=8192/f32"}) PutIntoOverlay(shape);
  command_.dry_run = true;
  EXPECT_THAT(Run(), AnyOf(0, 1, 3));
  EXPECT_FALSE(FileExists(CheckedInPath()));
  command_.dry_run = false;
  const int code = Run();
  EXPECT_THAT(out_.str(), HasSubstr("add n=4096/f32"));
  EXPECT_THAT(notes_.str(), HasSubstr("1 more entries of the overlay"));
  EXPECT_EQ(FileExists(CheckedInPath()), code == 0) << out_.str();
  if (code == 0) {
    EXPECT_THAT(*ReadRegularFile(CheckedInPath()),
                AllOf(HasSubstr("n=4096"), Not(HasSubstr("n=8192"))));
  } else {
    EXPECT_THAT(code, AnyOf(1, 3));
  }
}

// The same config is faster alone. It stays in the overlay where its neighbour
// needs the cache, and moves where that does not.
TEST_F(RunPromotionTest, AMicroWinMovesOnlyWhereItsNeighbourDoesNotSuffer) {
  PutIntoOverlay("n=4096/f32");
  const auto beside = [&](const Kernel& neighbour) {
    const Layers layers = {{{30'000, 100'000}, neighbour},
                           {{20'000, 500'000}, neighbour}};
    command_.measure = [layers](std::vector<bool> is_new, absl::Duration most) {
      is_new.push_back(false);
      return layers.Measure()(is_new, most);
    };
    return Run();
  };
  EXPECT_EQ(beside(kNeighbour), 1);
  // 50.0 us before, then 40.0 and 68.75 to load both tables again and again.
  EXPECT_THAT(out_.str(), HasSubstr(",refused,\"0.460x (0.4"));
  EXPECT_THAT(notes_.str(), HasSubstr("the workload is slower with what is"));
  EXPECT_FALSE(FileExists(CheckedInPath()));

  EXPECT_EQ(beside({20'000, 60'000}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(",promoted,\"1.250x (1.2"));
  EXPECT_THAT(*ReadRegularFile(CheckedInPath()), HasSubstr("n=4096"));
}

TEST(PromotionTest, LayersAreCalledInTheModelsOrder) {
  EXPECT_THAT(OrderOfCalls({2, 1, 2}), ElementsAre(0, 2, 0, 1, 2));
  EXPECT_THAT(OrderOfCalls({1}), ElementsAre(0));
  EXPECT_THAT(OrderOfCalls({1'000'000, 1}), SizeIs(kMostPasses + 1));
}

}  // namespace
}  // namespace optrail::suites
