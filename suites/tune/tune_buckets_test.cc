// Ranges are tuned with real workers, and by so few readings that nothing here
// depends on what they are.

#include "suites/tune/tune_buckets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/task_store.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/store_files.h"

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
  command_.range = Range("n=20..40/f32");
  const absl::StatusOr<int> code = Run();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  // There are few shapes in each half.
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=20..28/f32,verified,"),
                                HasSubstr("add,n=29..40/f32,verified,")));
  command_.range = Range("n=60..80/f32");
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=60..80/f32,not verified,"),
                                HasSubstr("at n=60/f32: ")));
  EXPECT_THAT(notes_.str(), HasSubstr("the default is used where"));
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Lookup(*store, "n=25/f32").source, tuning::LookupSource::kExact);
  EXPECT_EQ(Lookup(*store, "n=70/f32").source, tuning::LookupSource::kDefault);
}

// Which config wins the second time is up to the machine's noise.
TEST_F(TuneBuckets, RetuningKeepsTheBucketOfTheSameConfigAlone) {
  command_.most_loss = 100;
  ASSERT_EQ(*Run(), 0) << out_.str();
  const auto entry = [&] {
    const auto files = tuning::ReadOverlay(command_.context.store);
    EXPECT_TRUE(files.ok()) << files.status();
    for (const proto::TunedConfig& tuned : (*files)[0].tuned()) {
      if (tuned.shape() == "n=1001/f32") return tuned;
    }
    ADD_FAILURE() << "no entry of the middle";
    return proto::TunedConfig();
  };
  const proto::TunedConfig before = entry();
  EXPECT_EQ(before.bucket(), "n=1000..1003/f32");
  TaskSelection selection = command_.selection;
  selection.shape_regex = before.shape();
  const auto tasks = SelectTasks(selection, command_.context.hardware);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  command_.tune.retune = true;
  command_.tune.defend_stored = false;
  ASSERT_TRUE(TuneTasks(*tasks, command_.context, command_.tune).ok());
  const proto::TunedConfig after = entry();
  EXPECT_NE(after.session_id(), before.session_id());
  EXPECT_EQ(after.bucket(), after.config() == before.config()
                                ? "n=1000..1003/f32"
                                : "n=1001/f32");
}

TEST_F(TuneBuckets, TheTotalTimeEndsIt) {
  command_.tune.total_time_ns = 1;
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("add,n=1000..1003/f32,not reached,"));
}

// Three configs whose times at a shape are known: sessions find the fastest.
class KnownTimes : public TuneBuckets {
 protected:
  // The default, unroll=1 and unroll=4 take these times.
  using Times = std::array<double, 3>;

  void Use(const std::function<Times(int64_t n)>& times) {
    times_ = times;
    command_.random_shapes = 2;
    sessions_.clear();
    command_.now = [this] { return now_; };
    command_.tune_one = [this](const TaskEntry& task,
                               const absl::optional<proto::Config>& incumbent) {
      ++sessions_[tuning::CanonicalText(task.task.shape())];
      ++sessions_by_operator_[task.task.operator_name()];
      now_ += session_time_;
      return Session(task.task, incumbent);
    };
  }
  static proto::Config ConfigAt(int i) {
    return *tuning::ParseConfig(absl::StrCat(
        "block_elements=16384,prefetch_bytes=0,stores=cached,unroll=",
        i == 0   ? 2
        : i == 1 ? 1
                 : 4));
  }
  static int IndexOf(const proto::Config& config) {
    for (int i = 0; i < 3; ++i) {
      if (tuning::CanonicalText(ConfigAt(i)) == tuning::CanonicalText(config)) {
        return i;
      }
    }
    ADD_FAILURE() << tuning::CanonicalText(config);
    return 0;
  }
  // The share of time that the store's answer loses at a shape.
  double LossAt(const tuning::TunedConfigStore& store, int64_t n) {
    const Times times = times_(n);
    const tuning::LookupResult found =
        Lookup(store, absl::StrCat("n=", n, "/f32"));
    const int used = found.config == nullptr || found.tuned->ties()
                         ? 0
                         : IndexOf(*found.config);
    return 1 - *std::min_element(times.begin(), times.end()) / times[used];
  }

 private:
  TuneSummary Session(const proto::Task& task,
                      const absl::optional<proto::Config>& incumbent) {
    const Times times = times_(task.shape().dims(0).value());
    TuneSummary summary;
    summary.task = task;
    proto::Session& session = summary.session.emplace();
    *session.mutable_task() = task;
    session.set_session_id("20261126T000000Z-1");
    for (int i = 0; i < 3; ++i) {
      proto::Finalist& finalist = *session.add_finalists();
      *finalist.mutable_config() = ConfigAt(i);
      finalist.set_is_default(i == 0);
      finalist.set_outcome(proto::OK);
      finalist.set_time_ns(times[i]);
    }
    int first = times[1] <= times[2] ? 1 : 2;
    const int defended = incumbent ? IndexOf(*incumbent) : first;
    if (first != defended) {
      proto::Proof& proof = *session.mutable_incumbent_proof();
      *proof.mutable_candidate() = ConfigAt(first);
      proof.set_gain(1 - times[first] / times[defended]);
      proof.set_claimed(proof.gain() > command_.most_loss);
      if (!proof.claimed()) first = defended;
    }
    proto::Proof& proof = *session.mutable_proof();
    *proof.mutable_candidate() = ConfigAt(first);
    proof.set_gain(1 - times[first] / times[0]);
    proof.set_claimed(proof.gain() > .005);
    const bool stays = incumbent && first == defended
                           ? proof.gain() >= -command_.most_loss
                           : proof.claimed();
    *session.mutable_winner() = ConfigAt(stays ? first : 0);
    return summary;
  }

  std::function<Times(int64_t n)> times_;

 protected:
  std::map<std::string, int> sessions_;  // by shape
  std::map<std::string, int> sessions_by_operator_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration session_time_ = absl::Seconds(30);
};

TEST_F(KnownTimes, NoShapeOfABucketLosesMoreThanTheBound) {
  Use([](int64_t n) {
    return n < 115 ? Times{1200, 1000, 1100} : Times{1200, 1100, 1000};
  });
  command_.range = Range("n=16..1024/f32");
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=129..1024/f32,verified,"),
                                HasSubstr("add,n=100..128/f32,not verified,")));
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  int in_buckets = 0;
  for (int64_t n = 1; n <= 2048; ++n) {
    const tuning::LookupResult found =
        Lookup(*store, absl::StrCat("n=", n, "/f32"));
    if (found.source == tuning::LookupSource::kDefault) {
      EXPECT_TRUE(n < 16 || n > 1024 || (n > 99 && n < 129)) << n;
    } else {
      ++in_buckets;
      EXPECT_LE(LossAt(*store, n), command_.most_loss) << n;
    }
  }
  EXPECT_GE(in_buckets, 950);
}

TEST_F(KnownTimes, WhatIsTooSmallToBeCutGetsTheDefaultIfThatHolds) {
  Use([](int64_t n) {
    return Times{1000, n > 99 && n < 110 ? 980.0 : 1200.0, 1500};
  });
  command_.range = Range("n=90..120/f32");
  EXPECT_EQ(*Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=90..120/f32,verified,0,0.02"),
                                HasSubstr(",the default,")));
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  for (int64_t n = 90; n <= 120; ++n) {
    EXPECT_LE(LossAt(*store, n), command_.most_loss) << n;
  }
  EXPECT_EQ(Lookup(*store, "n=95/f32").source, tuning::LookupSource::kBucket);
}

// The config of the middle is slower than the default elsewhere, within the
// bound.
TEST_F(KnownTimes, OfTwoThatHoldTheOneThatLosesLessIsTaken) {
  Use([](int64_t n) {
    return Times{1000, n > 99 && n < 110 ? 990.0 : 1020.0, 1500};
  });
  command_.range = Range("n=90..120/f32");
  EXPECT_EQ(*Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=90..120/f32,verified,0,0.01"),
                                HasSubstr(",the default,")));
}

// The remainder of n decides which config is best.
TEST_F(KnownTimes, EachOfFewShapesIsTunedWhereNoConfigHolds) {
  Use([](int64_t n) {
    return n % 3 == 0   ? Times{1000, 1100, 1100}
           : n % 3 == 1 ? Times{1100, 1000, 1100}
                        : Times{1100, 1100, 1000};
  });
  command_.range = Range("n=9..24/f32");
  EXPECT_EQ(*Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("one for each shape"));
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  for (int64_t n = 9; n <= 24; ++n) EXPECT_EQ(LossAt(*store, n), 0) << n;
  // The same call finds all of them.
  command_.range = Range("n=15..24/f32");
  sessions_.clear();
  EXPECT_EQ(*Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("tuned already"));
  EXPECT_TRUE(sessions_.empty());
}

TEST_F(KnownTimes, EachDoublingIsCheckedAtRandomShapes) {
  Use([](int64_t) { return Times{1200, 1000, 1100}; });
  command_.range = Range("n=16..1024/f32");
  EXPECT_EQ(*Run(), 0) << out_.str();
  // Twelve of them: 1 - .05^(1 / 12).
  EXPECT_THAT(out_.str(), HasSubstr(",0.220"));
}

// The sum of a column of what was printed as CSV. Shapes of one dimension have
// no comma.
int SumOfColumn(const std::string& csv, int column) {
  int sum = 0;
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], ',');
    int value = 0;
    if (static_cast<int>(cells.size()) > column &&
        absl::SimpleAtoi(cells[column], &value)) {
      sum += value;
    }
  }
  return sum;
}

TEST_F(KnownTimes, EverySessionIsCountedOnce) {
  const auto all = [this] {
    int count = 0;
    for (const auto& [shape, sessions] : sessions_) count += sessions;
    return count;
  };
  Use([](int64_t n) {
    return n <= 1000 ? Times{1200, 1000, 1100} : Times{900, 1000, 1100};
  });
  command_.range = Range("n=16..1024/f32");
  EXPECT_EQ(*Run(), 1) << out_.str();
  EXPECT_EQ(SumOfColumn(out_.str(), 6), all()) << out_.str();

  // Sessions that ended before the time was over are counted, too.
  sessions_.clear();
  command_.range = Range("n=2048..8192/f32");
  command_.tune.total_time_ns = absl::ToInt64Nanoseconds(2 * session_time_);
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("add,n=2048..8192/f32,not reached,,,,"));
  EXPECT_GT(all(), 0);
  EXPECT_EQ(SumOfColumn(out_.str(), 6), all()) << out_.str();
}

TEST_F(KnownTimes, WhereEachShapeWasMeasuredNoneIsLeftToLoseMore) {
  Use([](int64_t) { return Times{1200, 1000, 1100}; });
  command_.range = Range("n=8..9/f32");
  EXPECT_EQ(*Run(), 0) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("add,n=8..9/f32,verified,0.16"));
  EXPECT_THAT(out_.str(), HasSubstr(",0,0,2,"));
}

TEST_F(KnownTimes, WhatIsKnownIsNotMeasuredAgain) {
  Use([](int64_t n) {
    return n <= 1000 ? Times{1200, 1000, 1100} : Times{900, 1000, 1100};
  });
  command_.range = Range("n=16..1024/f32");
  EXPECT_EQ(*Run(), 1) << out_.str();
  EXPECT_THAT(out_.str(), HasSubstr("add,n=16..128/f32,verified,"));
  // The config fails there, which tells enough of each part with this shape.
  EXPECT_EQ(sessions_["n=1024/f32"], 1);
}

// A later call finds that a bucket does not hold any more.
TEST_F(KnownTimes, ABucketThatDoesNotHoldAnyMoreEnds) {
  Use([](int64_t) { return Times{1200, 1000, 1100}; });
  command_.range = Range("n=100..150/f32");
  ASSERT_EQ(*Run(), 0) << out_.str();
  Use([](int64_t n) { return Times{1200, 1000, n < 140 ? 1100.0 : 900.0}; });
  command_.tune.retune = true;
  EXPECT_EQ(*Run(), 1) << out_.str();
  const auto store = LoadStore(command_.context, {});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Lookup(*store, "n=130/f32").source, tuning::LookupSource::kDefault);
}

// Neither a call that is cut nor a wider range that fails elsewhere has refuted
// it.
TEST_F(KnownTimes, ABucketEndsOnlyWhereItIsRefuted) {
  Use([](int64_t) { return Times{1200, 1000, 1100}; });
  command_.range = Range("n=64..256/f32");
  ASSERT_EQ(*Run(), 0) << out_.str();
  const auto bucket_at_128 = [&]() -> std::string {
    const auto files = tuning::ReadOverlay(command_.context.store);
    EXPECT_TRUE(files.ok()) << files.status();
    for (const proto::TunedConfig& tuned : (*files)[0].tuned()) {
      if (tuned.shape() == "n=128/f32") return tuned.bucket();
    }
    return "no entry";
  };
  ASSERT_EQ(bucket_at_128(), "n=64..256/f32");

  command_.tune.retune = true;
  command_.tune.total_time_ns = absl::ToInt64Nanoseconds(2 * session_time_);
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("add,n=64..256/f32,not reached,"));
  EXPECT_EQ(bucket_at_128(), "n=64..256/f32");

  command_.tune.total_time_ns = 0;
  Use([](int64_t n) { return Times{1200, 1000, n < 900 ? 1100.0 : 700.0}; });
  command_.range = Range("n=16..1024/f32");
  EXPECT_EQ(*Run(), 1);
  EXPECT_EQ(bucket_at_128(), "n=64..256/f32");

  Use([](int64_t n) { return Times{1200, 1000, n < 250 ? 1100.0 : 700.0}; });
  command_.range = Range("n=64..256/f32");
  EXPECT_EQ(*Run(), 1);
  EXPECT_EQ(bucket_at_128(), "n=128/f32");
}

TEST_F(KnownTimes, TasksShareTheTotalTime) {
  Use([](int64_t) { return Times{1000, 1200, 1100}; });
  command_.selection.op_regex = "add|relu";
  command_.range = Range("n=16..1024/f32");
  command_.tune.total_time_ns = absl::ToInt64Nanoseconds(absl::Seconds(100));
  EXPECT_EQ(*Run(), 1);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("add,n=16..1024/f32,not reached,"),
                                HasSubstr("relu,n=16..1024/f32,not reached,")));
  EXPECT_EQ(sessions_by_operator_["add"], 2);
  EXPECT_EQ(sessions_by_operator_["relu"], 2);
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
