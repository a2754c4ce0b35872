#include "suites/bench/bench_driver.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

namespace optrail::suites {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

BenchCase Case(const std::string& op, proto::ConfigSelection selection,
               proto::ConfigSource source) {
  BenchCase bench;
  bench.task.set_operator_name(op);
  *bench.task.mutable_shape() = *tuning::ParseShape("n=8/f32");
  bench.result.mutable_key()->set_selection(selection);
  bench.result.set_config_source(source);
  return bench;
}

TEST(UntunedNoteTest, IsOneLineForAllTasksAndNamesTheCommand) {
  std::vector<BenchCase> cases;
  for (const char* op : {"a", "b", "c", "d"}) {
    cases.push_back(Case(op, proto::DEFAULT, proto::FALLBACK_TO_DEFAULT));
    cases.push_back(Case(op, proto::TUNED, proto::FALLBACK_TO_DEFAULT));
  }
  cases.push_back(Case("e", proto::TUNED, proto::EXACT_SHAPE));
  const std::string note = UntunedNote(cases, "optrail tune --workload=smoke");
  EXPECT_THAT(note,
              AllOf(HasSubstr("4 of 5 tasks have no tuned config"),
                    HasSubstr("a "), HasSubstr("b "), Not(HasSubstr("c ")),
                    HasSubstr("next: optrail tune --workload=smoke\n")));
  EXPECT_EQ(std::count(note.begin(), note.end(), '\n'), 2);
}

TEST(UntunedNoteTest, WhatHasNothingToTuneIsNotNamed) {
  BenchCase library = Case("a", proto::TUNED, proto::FALLBACK_TO_DEFAULT);
  library.has_choice = false;
  EXPECT_EQ(UntunedNote({library}, "optrail tune"), "");
}

TEST(UntunedNoteTest, NothingIsSaidWhereAllAreTunedOrNoneShouldBe) {
  EXPECT_EQ(UntunedNote({Case("a", proto::DEFAULT, proto::FALLBACK_TO_DEFAULT),
                         Case("a", proto::TUNED, proto::NEAREST_SHAPE),
                         Case("a", proto::TUNED, proto::GIVEN)},
                        "optrail tune"),
            "");
}

TEST(SubstitutedNotesTest, NamesTheFirstAndCountsTheRest) {
  std::vector<BenchCase> cases = {
      Case("exact", proto::TUNED, proto::EXACT_SHAPE)};
  EXPECT_EQ(SubstitutedNotes(cases), "");
  for (const char* op : {"a", "b", "c", "d", "e"}) {
    cases.push_back(Case(op, proto::TUNED, proto::NEAREST_SHAPE));
    cases.back().substituted = "using another one";
  }
  const std::string notes = SubstitutedNotes(cases);
  EXPECT_THAT(notes, AllOf(HasSubstr("note: a n=8/f32: using another one\n"),
                           HasSubstr("note: c n=8"), Not(HasSubstr("d n=8")),
                           Not(HasSubstr("exact"))));
  EXPECT_THAT(notes, HasSubstr("note: 2 more tasks"));
}

ExitCode CodeOf(const std::vector<proto::Outcome>& outcomes) {
  proto::Run run;
  for (const proto::Outcome outcome : outcomes) {
    run.add_results()->set_outcome(outcome);
  }
  return ExitCodeOfRun(run, /*peers_may_lack=*/true);
}

TEST(ExitCodeTest, ABusyMachineIsNoFailureAndNoSuccess) {
  EXPECT_EQ(CodeOf({proto::OK, proto::OK}), ExitCode::kOk);
  EXPECT_EQ(CodeOf({proto::OK, proto::CONTENDED}), ExitCode::kNotEnoughData);
  for (const proto::Outcome failure :
       {proto::WRONG_RESULT, proto::CRASHED, proto::TIMED_OUT,
        proto::UNSUPPORTED, proto::OUTCOME_UNSPECIFIED}) {
    EXPECT_EQ(CodeOf({proto::CONTENDED, failure, proto::OK}),
              ExitCode::kCheckFailed)
        << failure;
  }
}

TEST(ExitCodeTest, APeerThatTheMachineLacksIsNoFailureUnlessAskedFor) {
  proto::Run run;
  run.add_results()->set_outcome(proto::OK);
  proto::BenchmarkResult& peer = *run.add_results();
  peer.set_outcome(proto::UNSUPPORTED);
  peer.mutable_key()->set_backend("onednn");
  EXPECT_EQ(ExitCodeOfRun(run, /*peers_may_lack=*/true), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOfRun(run, /*peers_may_lack=*/false),
            ExitCode::kCheckFailed);
  peer.set_outcome(proto::CRASHED);
  EXPECT_EQ(ExitCodeOfRun(run, /*peers_may_lack=*/true),
            ExitCode::kCheckFailed);
}

TEST(MakeBenchCasesTest, ABucketsAnswerIsRecordedAsThat) {
  RunContext context;
  context.hardware = *ops::HardwareOf(proto::CPU);
  context.store = ::testing::TempDir() + "/bucket_store";
  TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=5001/f32";
  const auto tasks = SelectTasks(selection, context.hardware);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  BenchDriverOptions options;
  options.with_default = false;
  const auto source = [&]() -> proto::ConfigSource {
    const auto cases = MakeBenchCases(*tasks, context, options);
    EXPECT_TRUE(cases.ok()) << cases.status();
    EXPECT_EQ(cases->size(), 1u);
    return cases->at(0).result.config_source();
  };
  EXPECT_EQ(source(), proto::FALLBACK_TO_DEFAULT);
  proto::TunedConfig tuned;
  tuned.set_shape("n=5000/f32");
  tuned.set_config(
      "block_elements=16384,prefetch_bytes=0,stores=cached,unroll=4");
  tuned.set_threads(1);
  tuned.set_cache_mode(proto::HOT);
  tuned.set_kernel_id(tasks->at(0).task.kernel_id());
  tuned.set_bucket("n=4000..6000/f32");
  for (const bool ties : {false, true}) {
    tuned.set_ties(ties);
    ASSERT_TRUE(tuning::WriteOverlay(context.store, "add",
                                     context.hardware.id(), proto::CPU, tuned)
                    .ok());
    EXPECT_EQ(source(), proto::SHAPE_IN_BUCKET) << ties;
  }
}

}  // namespace
}  // namespace optrail::suites
