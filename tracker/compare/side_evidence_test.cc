// Runs that failed, on either side and by every metric.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/compare/compare.h"

namespace optrail::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A run of one benchmark whose five processes have a time and joules; that of
// an outcome has measured nothing.
proto::Run MakeRun(int number, proto::Outcome outcome = proto::OK) {
  proto::Run run;
  run.set_run_id(absl::StrCat("run-", number));
  run.set_started_unix_ns(number);
  run.mutable_commit()->set_id(absl::StrCat("commit-", number));
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name("x");
  result->set_outcome(outcome);
  if (outcome != proto::OK) {
    result->set_detail("by itself");
    return run;
  }
  for (int i = 0; i < 5; ++i) {
    proto::Measurement* process = result->add_measurements();
    process->set_median_ns(100 + .1 * i);
    proto::MetricSamples* joules = process->add_metrics();
    joules->set_metric("joules");
    joules->add_values(2 + .002 * i);
  }
  return run;
}

CompareOptions By(absl::string_view wanted) {
  CompareOptions options;
  options.threshold =
      [wanted](absl::string_view,
               absl::string_view metric) -> absl::optional<Threshold> {
    if (metric != wanted) return absl::nullopt;
    return Threshold();
  };
  return options;
}

std::vector<Row> RowsOf(const std::vector<proto::Run>& baseline,
                        const std::vector<proto::Run>& candidate,
                        const CompareOptions& options) {
  std::vector<const proto::Run*> a, b;
  for (const proto::Run& run : baseline) a.push_back(&run);
  for (const proto::Run& run : candidate) b.push_back(&run);
  auto comparison = Compare(a, b, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return std::move(comparison->rows);
}

TEST(SideEvidence, AFailureIsOneByEveryMetric) {
  for (const char* metric : {"time", "joules"}) {
    const auto rows =
        RowsOf({MakeRun(1)}, {MakeRun(2, proto::CRASHED)}, By(metric));
    ASSERT_THAT(rows, SizeIs(1)) << metric;
    EXPECT_EQ(rows[0].verdict, Verdict::kCrashed) << metric;
    EXPECT_EQ(rows[0].metric, metric);
    EXPECT_THAT(rows[0].reason, HasSubstr("CRASHED: by itself"));
    EXPECT_THAT(rows[0].candidate.run_ids, ElementsAre("run-2"));
    EXPECT_EQ(rows[0].candidate.commit.id(), "commit-2");

    // An old failure is no news, and a skipped benchmark is missing.
    EXPECT_EQ(RowsOf({MakeRun(1, proto::CRASHED), MakeRun(2, proto::CRASHED)},
                     {MakeRun(3, proto::CRASHED)}, By(metric))
                  .size(),
              std::string(metric) == "time" ? 1u : 0u)
        << "joules were never measured";
    EXPECT_EQ(RowsOf({MakeRun(0), MakeRun(1, proto::CRASHED),
                      MakeRun(2, proto::CRASHED)},
                     {MakeRun(3, proto::CRASHED)}, By(metric))
                  .at(0)
                  .verdict,
              Verdict::kCannotTell)
        << metric;
    const auto skipped =
        RowsOf({MakeRun(1)}, {MakeRun(2, proto::UNSUPPORTED)}, By(metric));
    EXPECT_EQ(skipped.at(0).verdict, Verdict::kMissing) << metric;
    EXPECT_THAT(skipped.at(0).reason, HasSubstr("skipped: by itself"));
  }
}

// Another benchmark has the metric, which is judged of all.
TEST(SideEvidence, ANewBenchmarkThatFailsIsARowByAnyMetric) {
  proto::Run candidate = MakeRun(2);
  proto::BenchmarkResult* added = candidate.add_results();
  added->mutable_key()->set_operator_name("y");
  added->set_outcome(proto::TIMED_OUT);
  for (const char* metric : {"time", "joules"}) {
    const auto rows = RowsOf({MakeRun(1)}, {candidate}, By(metric));
    ASSERT_THAT(rows, SizeIs(2)) << metric;
    EXPECT_EQ(rows[1].name, "y");
    EXPECT_EQ(rows[1].verdict, Verdict::kCrashed) << metric;
  }
}

TEST(SideEvidence, ANewVersionThatFailsIsNoNewVersion) {
  proto::Run candidate = MakeRun(2, proto::CRASHED);
  candidate.mutable_results(0)->mutable_key()->set_version(2);
  const auto rows = RowsOf({MakeRun(1)}, {candidate}, By("time"));
  EXPECT_EQ(rows.at(0).verdict, Verdict::kCrashed);
}

TEST(SideEvidence, ARunThatFailedIsNoRunOfTheValue) {
  const auto rows = RowsOf({MakeRun(1), MakeRun(2), MakeRun(3, proto::CRASHED)},
                           {MakeRun(4)}, By("time"));
  EXPECT_THAT(rows.at(0).baseline.run_ids, ElementsAre("run-1", "run-2"));
  EXPECT_EQ(rows.at(0).baseline.commit.id(), "commit-2");
  EXPECT_EQ(rows.at(0).unused_runs, 0);
}

// The run that failed is the one to look at, whichever came last.
TEST(SideEvidence, AFailureNamesTheRunThatFailed) {
  const auto rows = RowsOf(
      {MakeRun(1)}, {MakeRun(2, proto::CRASHED), MakeRun(3)}, By("time"));
  EXPECT_EQ(rows.at(0).verdict, Verdict::kCrashed);
  EXPECT_THAT(rows.at(0).candidate.run_ids, ElementsAre("run-2"));
  EXPECT_FALSE(rows.at(0).candidate.value.has_value());
}

TEST(SideEvidence, AFailureIsAllOfTheRunThatFailed) {
  proto::Run failed = MakeRun(2, proto::CRASHED), last = MakeRun(3);
  failed.mutable_results(0)->set_kernel_id("kernel-2");
  failed.mutable_settings()->set_min_samples(7);
  last.mutable_results(0)->set_kernel_id("kernel-3");
  // A run may hold two results of a key.
  *failed.add_results() = failed.results(0);
  const auto rows = RowsOf({MakeRun(1)}, {failed, last}, By("time"));
  ASSERT_THAT(rows, SizeIs(1));
  const Side& side = rows[0].candidate;
  EXPECT_THAT(side.run_ids, ElementsAre("run-2"));
  EXPECT_EQ(side.commit.id(), "commit-2");
  EXPECT_EQ(side.kernel_id, "kernel-2");
  EXPECT_EQ(side.settings.min_samples(), 7);
  EXPECT_EQ(side.outcome, proto::CRASHED);
  EXPECT_EQ(side.detail, "by itself");
  EXPECT_EQ(side.outcomes.at(proto::CRASHED), 2);
  EXPECT_EQ(side.processes, 0);
}

// Each benchmark that failed once looked at all the evidence for its metric.
TEST(SideEvidence, LooksForTheMetricOfWhatFailedInLinearTime) {
  constexpr int kBenchmarks = 300;
  proto::Run candidate = MakeRun(1);
  for (int i = 0; i < kBenchmarks; ++i) {
    *candidate.add_results() = candidate.results(0);
    candidate.mutable_results(2 * i + 1)->mutable_key()->set_operator_name(
        absl::StrCat("x", i));
    proto::BenchmarkResult* failed = candidate.add_results();
    failed->mutable_key()->set_operator_name(absl::StrCat("y", i));
    failed->set_outcome(proto::CRASHED);
  }
  int asked = 0;
  CompareOptions options;
  options.threshold =
      [&](absl::string_view name,
          absl::string_view metric) -> absl::optional<Threshold> {
    ++asked;
    if (name[0] != 'x' || metric != "joules") return absl::nullopt;
    return Threshold();
  };
  EXPECT_THAT(RowsOf({MakeRun(1)}, {candidate}, options),
              SizeIs(kBenchmarks + 1));
  EXPECT_LT(asked, 20 * kBenchmarks);
}

}  // namespace
}  // namespace optrail::tracker
