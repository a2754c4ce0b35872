// Comparisons of sides that failed, lack benchmarks, or were measured with
// something else.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/compare/compare.h"
#include "tracker/compare/compare_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Compare, HasAVerdictForWhatCannotBeCompared) {
  proto::Run a, b;
  const std::vector<double> times = {100, 101, 99};
  AddProcesses(a, "gone", times);
  AddProcesses(a, "BM_SortInts/64", times);
  AddProcesses(b, "BM_SortIntegers/64", times);
  AddProcesses(b, "brand_new", times);
  for (proto::Run* run : {&a, &b}) {
    for (const char* name : {"crash", "wrong", "contended", "always", "v"}) {
      AddProcesses(*run, name, times);
    }
  }
  proto::BenchmarkResult* crash = b.mutable_results(2);
  crash->clear_measurements();
  crash->set_outcome(proto::CRASHED);
  crash->set_detail("signal 11");
  b.mutable_results(3)->set_outcome(proto::WRONG_RESULT);
  b.mutable_results(4)->set_outcome(proto::CONTENDED);
  b.mutable_results(4)->clear_measurements();
  a.mutable_results(5)->set_outcome(proto::TIMED_OUT);
  b.mutable_results(5)->set_outcome(proto::TIMED_OUT);
  b.mutable_results(6)->mutable_key()->set_version(2);
  AddResult(b, "new_and_broken")->set_outcome(proto::OUT_OF_MEMORY);

  const Comparison comparison = CompareRuns(a, b);
  const auto verdict = [&](const std::string& name) {
    return RowOf(comparison, name).verdict;
  };
  EXPECT_EQ(verdict("gone"), Verdict::kMissing);
  EXPECT_EQ(verdict("brand_new"), Verdict::kNew);
  EXPECT_EQ(verdict("BM_SortIntegers/64"), Verdict::kRenamed);
  EXPECT_EQ(RowOf(comparison, "BM_SortIntegers/64").renamed_from,
            "BM_SortInts/64");
  EXPECT_EQ(verdict("crash"), Verdict::kCrashed);
  EXPECT_THAT(RowOf(comparison, "crash").reason, HasSubstr("signal 11"));
  EXPECT_EQ(verdict("wrong"), Verdict::kWrongResult);
  EXPECT_EQ(verdict("contended"), Verdict::kCannotTell);
  EXPECT_EQ(verdict("always"), Verdict::kCannotTell);
  EXPECT_EQ(verdict("v/v2"), Verdict::kNewVersion);
  EXPECT_EQ(verdict("new_and_broken"), Verdict::kCrashed);
  EXPECT_EQ(comparison.rows.size(), 9);  // the renamed one is one row
}

TEST(Compare, CountsASkippedBenchmarkAsOneThatTheSideLacks) {
  proto::Run a, b;
  const auto skip = [](proto::Run& run, const char* name) {
    proto::BenchmarkResult* result = AddResult(run, name);
    result->set_outcome(proto::UNSUPPORTED);
    result->set_detail("needs AVX-512");
  };
  AddProcesses(a, "BM_Sort/1", {100, 101, 99});
  skip(b, "BM_Sort/1");
  skip(a, "BM_Sort/2");
  AddProcesses(b, "BM_Sort/2", {100, 101, 99});
  skip(a, "always");
  skip(b, "always");
  skip(b, "brand_new");
  skip(a, "gone");
  const Comparison comparison = CompareRuns(a, b);
  EXPECT_EQ(RowOf(comparison, "BM_Sort/1").verdict, Verdict::kMissing);
  EXPECT_EQ(RowOf(comparison, "BM_Sort/1").reason, "skipped: needs AVX-512");
  EXPECT_EQ(RowOf(comparison, "BM_Sort/2").verdict, Verdict::kNew);
  EXPECT_EQ(RowOf(comparison, "BM_Sort/2").reason,
            "in the baseline skipped: needs AVX-512");
  EXPECT_EQ(RowOf(comparison, "always").verdict, Verdict::kSkipped);
  EXPECT_EQ(RowOf(comparison, "brand_new").verdict, Verdict::kSkipped);
  EXPECT_EQ(comparison.rows.size(), 4) << "a side that lacks it is no news";
}

TEST(Compare, RefusesDifferentHardwareAndEmptySides) {
  proto::Run a, b;
  a.mutable_hardware()->set_id("epyc");
  b.mutable_hardware()->set_id("xeon");
  EXPECT_EQ(Compare({&a}, {&b}, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Compare({}, {&b}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Compare, NotesThatTheToolchainChanged) {
  proto::Run a, b;
  a.mutable_toolchain()->set_compiler("g++ 12");
  b.mutable_toolchain()->set_compiler("g++ 13");
  a.set_run_id("a");
  const Comparison comparison = CompareRuns(a, b);
  ASSERT_EQ(comparison.notes.size(), 1);
  EXPECT_THAT(comparison.notes[0], HasSubstr("g++ 12 -> g++ 13"));
}

// A run of `commit` with a row, measured with samples of `min_sample_ns` by
// `binary`.
proto::Run MeasuredRun(const std::string& id, const std::string& commit,
                       int64_t min_sample_ns, const std::string& binary) {
  proto::Run run;
  run.set_run_id(id);
  run.mutable_commit()->set_id(commit);
  AddProcesses(run, "BM", {100, 101, 99, 100, 101});
  run.mutable_settings()->set_min_sample_ns(min_sample_ns);
  run.mutable_settings()->set_binary_fingerprint(binary);
  return run;
}

TEST(Compare, NotesThatTheSidesWereMeasuredDifferently) {
  const proto::Run a = MeasuredRun("a", "1", 100'000, "old");
  const proto::Run b = MeasuredRun("b", "2", 500'000, "new");
  const Comparison comparison = CompareRuns(a, b);
  EXPECT_THAT(comparison.notes,
              ElementsAre("measured differently: min sample 100 us -> 500 us"));
  EXPECT_EQ(RowOf(comparison, "BM").measured_differently,
            "min sample 100 us -> 500 us");
  EXPECT_EQ(RowOf(comparison, "BM").verdict, Verdict::kUnchanged);

  const proto::Run like_b = MeasuredRun("c", "1", 500'000, "old");
  absl::StatusOr<Comparison> mixed = Compare({&a, &like_b}, {&b}, {});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_THAT(mixed->notes,
              ElementsAre("measured differently: min sample 100 us -> 500 us "
                          "(1 of 2 runs of the baseline)"));
}

TEST(Compare, NotesNothingOfWhatOldRecordsDoNotTell) {
  proto::Run old = MeasuredRun("a", "1", 100'000, "old");
  old.clear_settings();
  const proto::Run now = MeasuredRun("b", "1", 500'000, "new");
  EXPECT_THAT(CompareRuns(old, now).notes, IsEmpty());
}

TEST(Compare, NotesAnotherBuildOfTheSameCommit) {
  const proto::Run a = MeasuredRun("a", "1", 100'000, "old");
  proto::Run b = MeasuredRun("b", "1", 100'000, "new");
  EXPECT_THAT(CompareRuns(a, b).notes,
              ElementsAre("same commit, another build: binary old (run a) -> "
                          "new (run b)"));
  b.mutable_commit()->set_dirty(true);
  EXPECT_THAT(CompareRuns(a, b).notes, IsEmpty());
  b = MeasuredRun("b", "2", 100'000, "new");
  EXPECT_THAT(CompareRuns(a, b).notes, IsEmpty());
}

// Candidate processes CONTENDED, OK, OK, WRONG_RESULT are a wrong result.
TEST(Compare, TheWorstOutcomeOfTheCandidateCounts) {
  const std::vector<double> times = {100, 101, 99};
  for (const proto::Outcome worst : {proto::WRONG_RESULT, proto::CRASHED}) {
    std::vector<proto::Run> runs(5);
    std::vector<const proto::Run*> candidates;
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].set_run_id(std::to_string(i));
      runs[i].set_started_unix_ns(static_cast<int64_t>(i));
      AddProcesses(runs[i], "x", times);
      if (i > 0) candidates.push_back(&runs[i]);
    }
    runs[1].mutable_results(0)->set_outcome(proto::CONTENDED);
    runs[4].mutable_results(0)->set_outcome(worst);
    runs[4].mutable_results(0)->set_detail("as bad as it gets");
    for (int order = 0; order < 2; ++order) {
      const auto comparison = Compare({&runs[0]}, candidates, {});
      ASSERT_TRUE(comparison.ok());
      EXPECT_TRUE(InfoOf(comparison->rows[0].verdict).worse);
      EXPECT_THAT(comparison->rows[0].reason, HasSubstr("as bad as it gets"));
      runs[4].set_started_unix_ns(-1);  // first instead of last
    }
  }
}

TEST(Compare, OneFailureInTheBaselineIsNoExcuse) {
  const std::vector<double> times = {100, 101, 99};
  std::vector<proto::Run> runs(10);
  std::vector<const proto::Run*> baseline;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_run_id(std::to_string(i));
    AddProcesses(runs[i], "x", times);
    baseline.push_back(&runs[i]);
  }
  proto::Run candidate;
  candidate.set_run_id("candidate");
  AddResult(candidate, "x")->set_outcome(proto::WRONG_RESULT);
  const auto verdict = [&] {
    return Compare(baseline, {&candidate}, {})->rows[0].verdict;
  };
  runs[3].mutable_results(0)->set_outcome(proto::TIMED_OUT);
  EXPECT_EQ(verdict(), Verdict::kWrongResult);
  // Another failure is none, either, however often.
  for (proto::Run& run : runs) {
    run.mutable_results(0)->set_outcome(proto::TIMED_OUT);
  }
  EXPECT_EQ(verdict(), Verdict::kWrongResult);
  for (int i = 0; i < 6; ++i) {
    runs[i].mutable_results(0)->set_outcome(proto::WRONG_RESULT);
  }
  EXPECT_EQ(verdict(), Verdict::kCannotTell);
}

}  // namespace
}  // namespace optrail::tracker
