// Stored configs are proven again, with real workers.

#include "suites/tune/store_check.h"

#include <cstdlib>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_text.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kShape[] = "n=4096/f32";

class StoreCheck : public ::testing::Test {
 protected:
  StoreCheck() {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    auto context = FindRunContext(proto::CPU, "", "");
    EXPECT_TRUE(context.ok()) << context.status();
    command_.context = *std::move(context);
    command_.op_regex = "add";
    command_.format = OutputFormat::kCsv;
    command_.tune.quiet = true;
    command_.tune.tune.sampling = DefaultSamplingOptions();
    command_.tune.tune.finalists = 1;
    command_.tune.tune.rank_rounds = 1;
  }

  static proto::TunedConfig Tuned(const std::string& config,
                                  const std::string& kernel_id) {
    proto::TunedConfig tuned;
    tuned.set_shape(kShape);
    tuned.set_config(config);
    tuned.set_threads(1);
    tuned.set_cache_mode(proto::HOT);
    tuned.set_kernel_id(kernel_id);
    return tuned;
  }
  void Store(const std::string& config, const std::string& kernel_id,
             const std::string& bucket = "") {
    proto::TunedConfig tuned = Tuned(config, kernel_id);
    tuned.set_bucket(bucket);
    Store(tuned);
  }
  void Store(const proto::TunedConfig& tuned) {
    const absl::Status written =
        tuning::WriteOverlay(command_.context.store, "add",
                             command_.context.hardware.id(), proto::CPU, tuned);
    ASSERT_TRUE(written.ok()) << written;
  }
  // The whole overlay, as text.
  std::string Overlay() {
    std::string text;
    const auto files = tuning::ReadOverlay(command_.context.store);
    EXPECT_TRUE(files.ok()) << files.status();
    for (const proto::TunedConfigs& file : *files) {
      text += tuning::FormatTunedConfigs(file);
    }
    return text;
  }
  TaskEntry Task() {
    TaskSelection selection;
    selection.op_regex = "add";
    selection.shape_regex = kShape;
    const auto tasks = SelectTasks(selection, command_.context.hardware);
    EXPECT_TRUE(tasks.ok()) << tasks.status();
    return (*tasks)[0];
  }
  std::string DefaultConfig() {
    const auto space = BindTask(Task(), command_.context.hardware);
    EXPECT_TRUE(space.ok()) << space.status();
    return tuning::CanonicalText(space->bound->default_config());
  }
  int Run() {
    out_.str("");
    notes_.str("");
    const auto code = RunStoreCheck(command_, out_, notes_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  const std::string folder_ =
      JoinPath(::testing::TempDir(),
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  StoreCheckCommand command_;
  std::ostringstream out_, notes_;
};

TEST_F(StoreCheck, ListsWhatHasChangedAndMeasuresNothing) {
  command_.dry_run = true;
  EXPECT_EQ(Run(), 0);
  // Nothing was looked at, and nothing is called proven.
  EXPECT_THAT(notes_.str(),
              AllOf(HasSubstr("nothing to check: this program knows no tuned "
                              "config of --op=add for "),
                    Not(HasSubstr("proven"))));
  Store(DefaultConfig(), "0123456789abcdef");
  const std::string before = Overlay();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("add n=4096/f32"), HasSubstr(",not checked,"),
                    HasSubstr("0123456789abcdef is now ")));
  EXPECT_EQ(Overlay(), before);
}

TEST_F(StoreCheck, AConfigThatIsNotValidAnyMoreFails) {
  Store("no_such_knob=3", "0123456789abcdef");
  command_.retune = false;
  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr(",fails,"), HasSubstr("not valid any more")));
  EXPECT_THAT(Overlay(), HasSubstr("no_such_knob"));
  command_.retune = true;
  command_.time = absl::Seconds(12);
  EXPECT_EQ(Run(), 0) << out_.str() << notes_.str();
  EXPECT_THAT(out_.str(), HasSubstr(",tuned again,"));
  EXPECT_THAT(Overlay(), Not(HasSubstr("no_such_knob")));
  command_.dry_run = true;
  Run();
  EXPECT_THAT(notes_.str(), HasSubstr("the one tuned config of --op=add for "));
}

TEST_F(StoreCheck, ANewConfigDoesNotInheritTheBucketOfAnother) {
  Store("no_such_knob=3", "0123456789abcdef", "n=2048..8192/f32");
  command_.time = absl::Seconds(20);
  EXPECT_EQ(Run(), 0) << out_.str() << notes_.str();
  EXPECT_THAT(
      out_.str(),
      AllOf(HasSubstr(",tuned again,"),
            HasSubstr("bucket n=2048..8192/f32 ends, at n=2048/f32: ")));
  EXPECT_THAT(Overlay(), AllOf(HasSubstr("bucket: \"n=4096/f32\""),
                               Not(HasSubstr("n=2048..8192"))));
}

TEST_F(StoreCheck, ABucketNeedsTimeForItsCorners) {
  Store(DefaultConfig(), "0123456789abcdef", "n=2048..8192/f32");
  command_.retune = false;
  command_.time = absl::Seconds(4);
  const std::string before = Overlay();
  EXPECT_EQ(Run(), 3);
  EXPECT_THAT(out_.str(), HasSubstr("too short for the 3 shapes"));
  EXPECT_EQ(Overlay(), before);
}

// How it ends is up to the machine's noise; the entry stays unless the config
// is proven better, which the default is not.
TEST_F(StoreCheck, TheDefaultItselfIsNotProvenBetter) {
  Store(DefaultConfig(), "0123456789abcdef");
  command_.retune = false;
  command_.time = absl::Seconds(6);
  const std::string before = Overlay();
  EXPECT_THAT(Run(), AnyOf(1, 3));
  EXPECT_THAT(out_.str(),
              AnyOf(HasSubstr(",fails,"), HasSubstr(",undecided,")));
  EXPECT_EQ(Overlay(), before);
}

TEST_F(StoreCheck, TunesAgainWithinTheLimitOfTheEntry) {
  proto::TunedConfig tuned = Tuned("no_such_knob=3", "0123456789abcdef");
  tuned.set_numerics_limit("class-of-default");
  Store(tuned);
  command_.time = absl::Seconds(12);
  EXPECT_EQ(Run(), 0) << out_.str() << notes_.str();
  EXPECT_THAT(out_.str(), HasSubstr(",tuned again,"));
  EXPECT_THAT(Overlay(), HasSubstr("numerics_limit: \"class-of-default\""));
  const auto files = tuning::ReadOverlay(command_.context.store);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ((*files)[0].tuned_size(), 1);
  EXPECT_TRUE(tuning::SameBits((*files)[0].tuned(0).numerics(),
                               (*files)[0].tuned(0).default_numerics()))
      << Overlay();
}

TEST_F(StoreCheck, ALimitOfALaterVersionIsRefused) {
  proto::TunedConfig tuned = Tuned("no_such_knob=3", "0123456789abcdef");
  tuned.set_numerics_limit("within-an-ulp");
  Store(tuned);
  const auto code = RunStoreCheck(command_, out_, notes_);
  EXPECT_THAT(code.status().message(),
              AllOf(HasSubstr("within-an-ulp"), HasSubstr("expected ")));
}

TEST_F(StoreCheck, ADefaultThatHadWonHoldsWithItsKernel) {
  proto::TunedConfig tuned = Tuned(DefaultConfig(), Task().task.kernel_id());
  tuned.set_ties(true);
  Store(tuned);
  command_.all = true;
  command_.retune = false;
  EXPECT_EQ(Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr(",holds,"), HasSubstr("default")));
  // With another kernel nobody knows, until something is searched.
  tuned.set_kernel_id("0123456789abcdef");
  Store(tuned);
  EXPECT_EQ(Run(), 3) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr(",undecided,"), HasSubstr("search")));
  command_.retune = true;
  command_.time = absl::Seconds(12);
  EXPECT_EQ(Run(), 0) << out_.str() << notes_.str();
  EXPECT_THAT(out_.str(),
              AnyOf(HasSubstr(",holds,"), HasSubstr(",tuned again,")));
}

TEST_F(StoreCheck, WhatTheTimeDoesNotReachSaysSo) {
  for (const int times : {1, 2, 3, 4}) {
    proto::TunedConfig tuned = Tuned("no_such_knob=3", "0123456789abcdef");
    tuned.set_shape(absl::StrCat("n=", 4096 * times, "/f32"));
    Store(tuned);
  }
  command_.retune = false;
  command_.time = absl::Milliseconds(2500);
  // Less than a proof needs for each, so that the first ones get it.
  EXPECT_EQ(Run(), 1) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr(",fails,"));
  command_.time = absl::Milliseconds(100);
  EXPECT_EQ(Run(), 3) << out_.str();
  EXPECT_THAT(out_.str(),
              HasSubstr("the time was over before its turn (100ms for 4 "
                        "entries, 4 of them late)"));
}

TEST_F(StoreCheck, LeavesWhatTheBuildHasAloneUnlessAsked) {
  command_.context.hardware.set_id("intel-xeon-emerald-rapids-4c");
  command_.dry_run = true;
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(out_.str(), Not(HasSubstr("of the build")));
  command_.all = true;
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(out_.str(), HasSubstr(", of the build"));
}

}  // namespace
}  // namespace optrail::suites

// Workers are this binary, too.
int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
