#include "tracker/judge/evidence.h"

#include <string>
#include <vector>

#include "base/stats/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/judge/judge_test_fixture.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(JudgeTest, TheEvidenceIsOfThePointsThatItNames) {
  Measure(40, 100);
  Measure(30, 130);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  const Change& change = judgement.changes[0];
  const Evidence evidence = EvidenceOf(change);
  for (const auto& [level, value] :
       {std::make_pair(evidence.before, change.change.level_before),
        std::make_pair(evidence.after, change.change.level_after)}) {
    std::vector<double> values;
    std::vector<std::string> run_ids;
    for (int i = level.begin; i < level.end; ++i) {
      values.push_back(*series_[0].points[i].value);
      run_ids.push_back(series_[0].points[i].runs->ids[0]);
    }
    EXPECT_EQ(Median(values), value);
    EXPECT_EQ(level.run_ids, run_ids);
  }
  EXPECT_EQ(evidence.before.end, 40);
  EXPECT_EQ(evidence.after.begin, 40);
  EXPECT_EQ(evidence.good->id(), CommitId(39));
  EXPECT_EQ(evidence.bad->id(), CommitId(40));
  EXPECT_EQ(SuspectsText(evidence), CommitId(40).substr(0, 12));
  EXPECT_THAT(NarrowingCommand(change, evidence, " --history=h"),
              StartsWith("git show "));
  EXPECT_THAT(EvidenceText(change, evidence),
              AllOf(HasSubstr("BM_x time: 2"), HasSubstr("% slower ("),
                    HasSubstr(" up to " + CommitId(39).substr(0, 12))));
}

TEST_F(JudgeTest, SuspectsThatWereNotMeasuredAreNarrowedByACommand) {
  const auto every_third = [](proto::Run& run) {
    const int i = run.commit().first_parent_position();
    run.mutable_commit()->set_first_parent_position(3 * i);
  };
  Measure(40, 100, every_third);
  Measure(30, 130, every_third);
  const Judgement judgement = Judge();
  ASSERT_THAT(judgement.changes, SizeIs(1));
  const Evidence evidence = EvidenceOf(judgement.changes[0]);
  EXPECT_EQ(evidence.suspects, 3);
  EXPECT_THAT(
      NarrowingCommand(judgement.changes[0], evidence, ""),
      HasSubstr(absl::StrCat("optrail bisect ", CommitId(39).substr(0, 12), " ",
                             CommitId(40).substr(0, 12))));
}

TEST_F(JudgeTest, TheTimeOfABenchmarkIsItsMainMetric) {
  Measure(3, 100, [](proto::Run& run) {
    proto::MetricSamples* cpu =
        run.mutable_results(0)->mutable_measurements(0)->add_metrics();
    cpu->set_metric("cpu_time");
    cpu->set_unit("ns");
    cpu->add_values(90);
    *run.add_results() = run.results(0);
    run.mutable_results(1)->mutable_key()->set_operator_name("BM_rate");
    proto::Measurement* rate = run.mutable_results(1)->mutable_measurements(0);
    rate->clear_median_ns();
  });
  series_ = BuildSeries(runs_);
  const std::vector<bool> main = MainSeries(series_);
  for (size_t i = 0; i < series_.size(); ++i) {
    const bool has_time = series_[i].key.benchmark.operator_name() == "BM_x";
    EXPECT_EQ(main[i], has_time == (series_[i].key.metric == "time"))
        << series_[i].text;
  }
}

}  // namespace
}  // namespace optrail::tracker
