#include "suites/bench/best_backend.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

using ::testing::HasSubstr;

constexpr char kHardware[] = "test-machine";

struct Reading {
  std::string backend;  // "": the device's own
  double time_us = 0;   // 0: it is not here
  proto::ConfigSelection selection = proto::DEFAULT;
};

class BestBackendTest : public ::testing::Test {
 protected:
  BestBackendTest() {
    std::string folder = ::testing::TempDir() + "/best_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    context_.store = folder;
    context_.hardware.set_id(kHardware);
    context_.hardware.set_device_kind(proto::CPU);
  }
  ~BestBackendTest() override { std::filesystem::remove_all(context_.store); }

  static proto::Task Task(const std::string& backend) {
    proto::Task task;
    task.set_operator_name("matmul");
    task.set_device_kind(proto::CPU);
    task.set_backend(backend);
    task.set_kernel_id(absl::StrCat("id-", backend));
    *task.mutable_shape() = *tuning::ParseShape("m=8,n=8,k=8/f32");
    task.set_hardware_id(kHardware);
    task.set_threads(1);
    task.set_cache_mode(proto::HOT);
    return task;
  }

  // A run of `bench --backend=all` with so many rounds of each.
  static proto::Run Run(const std::vector<Reading>& readings, int rounds = 5) {
    proto::Run run;
    run.set_run_id("20261121T000000Z-1");
    run.set_started_unix_ns(int64_t{1795000000} * 1000000000);
    for (const Reading& reading : readings) {
      const proto::Task task = Task(reading.backend);
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(task.operator_name());
      result->mutable_key()->set_device_kind(task.device_kind());
      *result->mutable_key()->mutable_shape() = task.shape();
      result->mutable_key()->set_threads(1);
      result->mutable_key()->set_cache_mode(proto::HOT);
      result->mutable_key()->set_selection(reading.selection);
      result->mutable_key()->set_backend(reading.backend);
      result->set_kernel_id(task.kernel_id());
      result->set_config("algorithm=default");
      if (reading.time_us == 0) {
        result->set_outcome(proto::UNSUPPORTED);
        continue;
      }
      result->set_outcome(proto::OK);
      for (int round = 1; round <= rounds; ++round) {
        proto::Measurement* measurement = result->add_measurements();
        measurement->set_round(round);
        // The machine's mood is shared by a round.
        measurement->set_median_ns(reading.time_us * 1000 *
                                   (1 + .1 * (round % 3)));
      }
    }
    return run;
  }

  static TaskEntry Entry(const std::string& backend) {
    TaskEntry entry;
    entry.task = Task(backend);
    return entry;
  }

  // The backend that `bench --backend=best` runs; what it says goes to
  // `note_`.
  std::string Choose(const std::vector<TaskEntry>& tasks) {
    tuning::StoreOptions options;
    options.overlay_directory = context_.store;
    const auto store = tuning::TunedConfigStore::Load(options);
    EXPECT_TRUE(store.ok()) << store.status();
    EXPECT_THAT(store->warnings(), ::testing::IsEmpty());
    ::testing::internal::CaptureStderr();
    const std::vector<TaskEntry> chosen = ChooseBest(tasks, *store);
    note_ = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(chosen.size(), 1);
    EXPECT_TRUE(chosen[0].as_best);
    return chosen[0].task.backend();
  }

  RunContext context_;
  std::string note_;
};

TEST_F(BestBackendTest, OnlyWhatHasNoVerdictOrIsNewIsCompared) {
  const std::vector<TaskEntry> both = {Entry(""), Entry("openblas")};
  const auto compared = [&](const std::vector<TaskEntry>& tasks, bool is_new) {
    tuning::StoreOptions options;
    options.overlay_directory = context_.store;
    const auto store = tuning::TunedConfigStore::Load(options);
    EXPECT_TRUE(store.ok()) << store.status();
    return ToBeCompared(
               tasks, [&](const TaskEntry&) { return is_new; }, *store)
        .size();
  };
  EXPECT_EQ(compared(both, false), 2);
  EXPECT_EQ(compared({Entry("")}, true), 0) << "nothing to compare it with";
  ASSERT_TRUE(KeepBest(Run({{"", 20}, {"openblas", 10}}), context_).ok());
  EXPECT_EQ(compared(both, false), 0);
  EXPECT_EQ(compared(both, true), 2);
  EXPECT_EQ(compared({Entry(""), Entry("openblas"), Entry("blis")}, false), 3);
  TaskEntry absent = Entry("blis");
  absent.available = absl::UnavailableError("not here");
  EXPECT_EQ(compared({Entry(""), Entry("openblas"), absent}, false), 0);
}

TEST_F(BestBackendTest, OneProcessDoesNotTell) {
  const proto::Run run = Run({{"", 100}, {"openblas", 50}}, /*rounds=*/1);
  EXPECT_THAT(KeepBest(run, context_).message(), HasSubstr("--processes=2"));
  EXPECT_EQ(Choose({Entry(""), Entry("openblas")}), "");
}

TEST_F(BestBackendTest, TheFastestOfOneBenchIsChosen) {
  ASSERT_TRUE(
      KeepBest(Run({{"", 100}, {"openblas", 90}, {"plain", 240}}), context_)
          .ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas"), Entry("plain")}), "openblas");
  EXPECT_EQ(note_, "");
  // The order in which they are offered decides nothing.
  EXPECT_EQ(Choose({Entry("plain"), Entry(""), Entry("openblas")}), "openblas");
}

TEST_F(BestBackendTest, ALaterBenchTakesItsPlace) {
  ASSERT_TRUE(KeepBest(Run({{"", 100}, {"openblas", 90}}), context_).ok());
  ASSERT_TRUE(KeepBest(Run({{"", 80}, {"openblas", 90}}), context_).ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas")}), "");
  EXPECT_EQ(note_, "");
}

TEST_F(BestBackendTest, TunedConfigsAreComparedWhereThereAreAny) {
  ASSERT_TRUE(KeepBest(Run({{"", 100},
                            {"openblas", 90},
                            {"", 80, proto::TUNED},
                            {"openblas", 90, proto::TUNED}}),
                       context_)
                  .ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas")}), "");
  EXPECT_EQ(note_, "");
}

TEST_F(BestBackendTest, WhatWasNeverComparedIsSaidWithWhatWouldTell) {
  EXPECT_EQ(Choose({Entry(""), Entry("openblas")}), "");
  EXPECT_THAT(note_, HasSubstr("were not compared yet"));
  EXPECT_THAT(note_, HasSubstr("next: optrail bench --op=matmul "
                               "--shape='m=8,n=8,k=8/f32' --backend=all"));
}

TEST_F(BestBackendTest, AWinnerThatIsNotHereIsNoAnswer) {
  ASSERT_TRUE(KeepBest(Run({{"", 100}, {"mkl", 90}}), context_).ok());
  EXPECT_EQ(Choose({Entry("")}), "");
  EXPECT_THAT(note_, HasSubstr("mkl is not here now"));
  // Known to this binary, and its library is missing.
  TaskEntry missing = Entry("mkl");
  missing.available = absl::UnavailableError("no libmkl");
  EXPECT_EQ(Choose({Entry(""), missing}), "");
  EXPECT_THAT(note_, HasSubstr("mkl is not here now"));
}

TEST_F(BestBackendTest, AnotherVersionOfOneIsNoAnswer) {
  ASSERT_TRUE(KeepBest(Run({{"", 100}, {"openblas", 90}}), context_).ok());
  TaskEntry changed = Entry("");
  changed.task.set_kernel_id("id-new");
  EXPECT_EQ(Choose({changed, Entry("openblas")}), "");
  EXPECT_THAT(note_, HasSubstr("cpu was id- when the backends were compared, "
                               "now id-new"));
}

TEST_F(BestBackendTest, OneThatHasComeSinceIsNoAnswer) {
  ASSERT_TRUE(KeepBest(Run({{"", 100}, {"openblas", 90}}), context_).ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas"), Entry("onednn")}), "");
  EXPECT_THAT(note_, HasSubstr("onednn was not among those"));
}

// It was compared as much as one can; a next bench would tell no more.
TEST_F(BestBackendTest, OneThatCannotDoItIsNotAskedForAgain) {
  ASSERT_TRUE(
      KeepBest(Run({{"", 100}, {"openblas", 90}, {"halide", 0}}), context_)
          .ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas"), Entry("halide")}),
            "openblas");
  EXPECT_EQ(note_, "");
  EXPECT_EQ(Choose({Entry(""), Entry("openblas")}), "openblas");
  EXPECT_EQ(note_, "");
  // Another version of it may.
  TaskEntry changed = Entry("halide");
  changed.task.set_kernel_id("id-new");
  EXPECT_EQ(Choose({Entry(""), Entry("openblas"), changed}), "");
  EXPECT_THAT(note_, HasSubstr("halide was id-halide when it could not be "
                               "compared (UNSUPPORTED), now id-new"));
}

TEST_F(BestBackendTest, OneThatWasOnlyDisturbedIsAskedForAgain) {
  proto::Run run = Run({{"", 100}, {"openblas", 90}, {"halide", 0}});
  run.mutable_results(2)->set_outcome(proto::CONTENDED);
  ASSERT_TRUE(KeepBest(run, context_).ok());
  EXPECT_EQ(Choose({Entry(""), Entry("openblas"), Entry("halide")}), "");
  EXPECT_THAT(note_, HasSubstr("halide was not among those"));
}

TEST_F(BestBackendTest, OneThatWorksIsNoComparison) {
  ASSERT_TRUE(KeepBest(Run({{"", 100}, {"openblas", 0}}), context_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(context_.store));
}

TEST_F(BestBackendTest, AStoreThatNobodyMayWriteIsAnErrorThatNamesIt) {
  // A file where the folder should be.
  ASSERT_TRUE(WriteFileAtomically(context_.store + "/matmul", "").ok());
  const absl::Status kept =
      KeepBest(Run({{"", 100}, {"openblas", 90}}), context_);
  EXPECT_FALSE(kept.ok());
  EXPECT_THAT(std::string(kept.message()), HasSubstr("/matmul"));
}

}  // namespace
}  // namespace optrail::suites
