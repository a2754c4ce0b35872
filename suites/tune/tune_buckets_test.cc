// Ranges are tuned with real workers, and by so few readings that nothing here
// depends on what they are.

#include "suites/tune/tune_buckets.h"

#include <cstdlib>
#include <sstream>
#include <string>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/worker.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

tuning::Bucket Range(const std::string& text) {
  return *tuning::Bucket::Parse(text);
}

class TuneBuckets : public ::testing::Test {
 protected:
  TuneBuckets() {
    EXPECT_TRUE(CreateDirectories(folder_).ok());
    setenv("BUILD_WORKSPACE_DIRECTORY", folder_.c_str(), /*overwrite=*/1);
    auto context = FindRunContext(proto::CPU, "", "");
    EXPECT_TRUE(context.ok()) << context.status();
    command_.context = *std::move(context);
    command_.selection.op_regex = "add";
    command_.format = OutputFormat::kCsv;
    command_.tune.quiet = true;
    TuneOptions& tune = command_.tune.tune;
    tune.sampling = DefaultSamplingOptions();
    command_.random_shapes = 0;
    tune.strategy = "random";
    tune.budget.set_trials(1);
    tune.finalists = 1;
    tune.rank_rounds = 1;
    tune.proof.max_time = absl::Milliseconds(50);
  }

  absl::StatusOr<int> Run() {
    out_.str("");
    notes_.str("");
    return RunTuneBuckets(command_, out_, notes_);
  }
  tuning::LookupResult Lookup(const tuning::TunedConfigStore& store,
                              const std::string& shape_text) {
    const proto::Shape shape = *tuning::ParseShape(shape_text);
    tuning::LookupRequest request;
    request.operator_name = "add";
    request.shape = &shape;
    request.hardware_id = command_.context.hardware.id();
    return store.Lookup(request);
  }

  const std::string folder_ =
      JoinPath(::testing::TempDir(),
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
  TuneBucketsCommand command_{{}, {}, Range("n=1000..1003/f32"), {}};
  std::ostringstream out_, notes_;
};

TEST_F(TuneBuckets, AVerifiedRangeIsStoredAsOneBucket) {
  command_.most_loss = 100;
  const absl::StatusOr<int> code = Run();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("add,n=1000..1003/f32,verified,"));

  tuning::StoreOptions options;
  options.overlay_directory = command_.context.store;
  const auto store = tuning::TunedConfigStore::Load(options);
  ASSERT_TRUE(store.ok()) << store.status();
  const tuning::LookupResult inside = Lookup(*store, "n=1002/f32");
  EXPECT_THAT(inside.warning, HasSubstr("verified for n=1000..1003/f32"));
  EXPECT_EQ(Lookup(*store, "n=1004/f32").source,
            tuning::LookupSource::kDefault);

  // A part of it is tuned already; nothing is measured again.
  command_.range = Range("n=1002..1003/f32");
  EXPECT_EQ(*Run(), 0);
  EXPECT_THAT(out_.str(), HasSubstr(",0,,tuned already"));
}

TEST_F(TuneBuckets, WhatLosesTooMuchIsCutAndNotStored) {
  command_.most_loss = -1;
  command_.range = Range("n=2..4/f32");
  const absl::StatusOr<int> code = Run();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=2/f32,verified,"),
                                HasSubstr("add,n=3..4/f32,not verified,"),
                                HasSubstr("at n=4/f32: ")));
  EXPECT_THAT(notes_.str(), HasSubstr("the default is used where"));
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Lookup(*store, "n=3/f32").warning.find("n=3..4"),
            std::string::npos);
}

TEST_F(TuneBuckets, TheTotalTimeEndsIt) {
  command_.tune.total_time_ns = 1;
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("add,n=1000..1003/f32,not reached,"));
}

TEST_F(TuneBuckets, WhatIsNoRangeOfAnOperatorIsRefused) {
  command_.range = Range("n=1..4,m=3/f32");
  EXPECT_FALSE(Run().ok());
  command_.range = Range("n=1..4/f32");
  command_.tune.total_trials = 9;
  EXPECT_THAT(
      std::string(Run().status().message()),
      AllOf(HasSubstr("--shape=n=1..4/f32: "), HasSubstr("--total_trials")));
  EXPECT_THAT(out_.str(), Not(HasSubstr("verified")));
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
