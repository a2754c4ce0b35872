#include "reports/build_report_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "reports/json_report.h"
#include "reports/markdown_report.h"
#include "reports/overview.h"
#include "reports/page_data.h"
#include "reports/sample/sample_history.h"
#include "reports/session_view.h"
#include "tracker/series/series.h"

namespace optrail::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

ReportData SampleData(const SampleOptions& options = {}) {
  const SampleHistory history = MakeSampleHistory(options);
  return BuildReportData(history.runs, history.sessions, {});
}

const SeriesView* Find(const ReportData& data, const std::string& op,
                       const std::string& hardware,
                       const std::string& selection,
                       const std::string& shape_prefix) {
  for (const SeriesView& series : data.series) {
    if (series.operator_name == op && series.selection == selection &&
        data.hardware[series.hardware].id == hardware &&
        series.shape.rfind(shape_prefix, 0) == 0) {
      return &series;
    }
  }
  return nullptr;
}

TEST(BuildReportDataTest, MakesASeriesPerBenchmarkAndHardware) {
  const ReportData data = SampleData();
  EXPECT_THAT(data.series, SizeIs(84));
  EXPECT_THAT(data.hardware, SizeIs(3));
  EXPECT_THAT(data.commits, SizeIs(60));
  EXPECT_THAT(data.sessions, SizeIs(6));
  EXPECT_EQ(data.run_count, 180);
}

TEST(BuildReportDataTest, FindsPlantedRegressionsAndTheirCommit) {
  const ReportData data = SampleData();
  const SeriesView* slower =
      Find(data, "softmax", "amd-epyc-zen4-8c", "tuned", "rows=4096");
  ASSERT_NE(slower, nullptr);
  EXPECT_EQ(slower->verdict, Verdict::kSlower);
  EXPECT_NEAR(*slower->ratio, 1.09, 0.02);
  EXPECT_LT(*slower->ratio_low, 1.09);
  EXPECT_GT(*slower->ratio_high, 1.08);
  ASSERT_FALSE(slower->changes.empty());
  EXPECT_NEAR(slower->changes.back().point, 42, 1);

  const SeriesView* same =
      Find(data, "softmax", "nvidia-h200", "tuned", "rows=");
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(same->verdict, Verdict::kUnchanged);
  EXPECT_GT(*same->minimum_detectable_effect, 0);
}

TEST(BuildReportDataTest, SaysFailedAndMissing) {
  const ReportData data = SampleData();
  const SeriesView* failed =
      Find(data, "conv2d", "nvidia-h200", "tuned", "c=128");
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->verdict, Verdict::kFailed);
  EXPECT_THAT(failed->verdict_detail, HasSubstr("CRASHED"));
  const SeriesView* missing =
      Find(data, "layer_norm", "intel-xeon-spr-4c", "tuned", "rows=8192");
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->verdict, Verdict::kMissing);
}

TEST(BuildReportDataTest, NotesEpochsAndRetuning) {
  const ReportData data = SampleData();
  const SeriesView* series =
      Find(data, "matmul", "intel-xeon-spr-4c", "tuned", "m=512");
  ASSERT_NE(series, nullptr);
  ASSERT_THAT(series->of->epochs, SizeIs(2));
  EXPECT_THAT(series->of->epochs[1].change, HasSubstr("13.2.0"));
  std::set<std::string> configs;
  for (const tracker::Point& point : series->of->points) {
    configs.insert(point.attributes->config);
  }
  EXPECT_THAT(configs, SizeIs(2));
}

TEST(BuildReportDataTest, OnePointHasNoBaseline) {
  SampleOptions options;
  options.commits = 1;
  for (const SeriesView& series : SampleData(options).series) {
    if (series.verdict == Verdict::kFailed) continue;  // planted
    EXPECT_EQ(series.verdict, Verdict::kNoBaseline) << series.name;
  }
}

TEST(BuildReportDataTest, AFewPointsAreNotCalledUnchanged) {
  SampleOptions options;
  options.commits = 5;
  for (const SeriesView& series : SampleData(options).series) {
    EXPECT_NE(series.verdict, Verdict::kUnchanged) << series.name;
    EXPECT_NE(series.verdict, Verdict::kSlower) << series.name;
  }
}

TEST(BuildReportDataTest, SessionsKeepKnobLevelsInNaturalOrder) {
  const ReportData data = SampleData();
  const TuningSession& session = data.sessions.front();
  std::map<std::string, std::vector<std::string>> levels;
  for (const Knob& knob : session.knobs) levels[knob.name] = knob.levels;
  EXPECT_EQ(levels["nr"], (std::vector<std::string>{"8", "16", "32", "48"}));
  EXPECT_THAT(session.of.trials, SizeIs(240));
  int winners = 0;
  for (const auto& finalist : session.of.finalists) {
    winners += finalist.is_winner;
  }
  EXPECT_EQ(winners, 1);
}

TEST(BuildReportDataTest, SessionsSayWhatWentWrong) {
  proto::Session session;
  session.set_session_id("20261120T000000Z-1");
  for (int i = 0; i < 40; ++i) {
    session.add_trials()->set_outcome(i < 35 ? proto::OUT_OF_MEMORY
                                             : proto::CRASHED);
  }
  const ReportData data = BuildReportData({}, {session}, {});
  ASSERT_THAT(data.sessions[0].findings, SizeIs(1));
  EXPECT_THAT(
      data.sessions[0].findings[0],
      AllOf(HasSubstr("most trials fail: 40 of 40"), HasSubstr("Remedy: ")));
}

TEST(BuildReportDataTest, AcceptsAnEmptyHistory) {
  const ReportData data = BuildReportData({}, {}, {});
  EXPECT_TRUE(data.series.empty());
  EXPECT_TRUE(Summarize(data).cells.empty());
}

TEST(BuildReportDataTest, ACommitThatTheSuiteMeasuredWithoutASeriesIsAGap) {
  SampleHistory history = MakeSampleHistory({});
  for (proto::Run& run : history.runs) {
    const int64_t position = run.commit().first_parent_position() - 400;
    if (position == 10 || position == 11) {
      run.mutable_results()->DeleteSubrange(0, 1);
    }
    // Nobody ran anything there.
    if (position == 20) run.mutable_results()->Clear();
  }
  history.runs.erase(std::remove_if(history.runs.begin(), history.runs.end(),
                                    [](const proto::Run& run) {
                                      return run.results().empty();
                                    }),
                     history.runs.end());
  const ReportData data = BuildReportData(history.runs, {}, {});
  int with_gaps = 0;
  for (const SeriesView& series : data.series) {
    if (series.gaps.empty()) continue;
    ++with_gaps;
    EXPECT_EQ(series.gaps, std::vector<int>{10}) << series.name;
    EXPECT_EQ(series.family, "matmul");
  }
  EXPECT_EQ(with_gaps, 3);
}

TEST(BuildReportDataTest, BenchmarksOfOtherToolsAreGroupedByTheirNames) {
  proto::Run run;
  for (const char* name : {"BM_Sort/1024", "BM_Sort", "io/test_a.py::test_b[1]",
                           "/odd", "std::sort<int>(4)"}) {
    run.add_results()->mutable_key()->set_operator_name(name);
  }
  std::map<std::string, std::string> families;
  for (const SeriesView& series : BuildReportData({run}, {}, {}).series) {
    EXPECT_TRUE(series.imported);
    families[series.name] = series.family;
  }
  EXPECT_EQ(families["BM_Sort/1024"], "BM_Sort");
  EXPECT_EQ(families["BM_Sort"], "BM_Sort");
  EXPECT_EQ(families["io/test_a.py::test_b[1]"], "io/test_a.py");
  EXPECT_EQ(families["/odd"], "/odd");
  EXPECT_EQ(families["std::sort<int>(4)"], "std::sort");
}

// A session of `tune --command` with two metrics.
proto::Session WithTwoMetrics() {
  proto::Session session;
  session.mutable_task()->set_operator_name("server");
  proto::Objective* latency = session.add_objectives();
  latency->set_metric("p99");
  latency->set_unit("ms");
  latency->set_direction(proto::LOWER_IS_BETTER);
  proto::Objective* rate = session.add_objectives();
  rate->set_metric("rate");
  rate->set_direction(proto::HIGHER_IS_BETTER);
  rate->set_limit(10);
  const double values[][2] = {{5, 10}, {3, 20}, {4, 15}, {8, 90}, {9, 90}};
  for (const auto& [p99, per_s] : values) {
    proto::Trial* trial = session.add_trials();
    trial->set_outcome(proto::OK);
    proto::KnobValue* knob = trial->mutable_config()->add_set();
    knob->set_knob("threads");
    knob->set_int_(session.trials_size());
    proto::MetricSamples* sample = trial->add_objectives();
    sample->set_metric("p99");
    sample->add_values(p99);
    sample = trial->add_objectives();
    sample->set_metric("rate");
    sample->add_values(per_s);
  }
  session.add_trials()->set_outcome(proto::CRASHED);
  return session;
}

TEST(BuildReportDataTest, ASessionOfSeveralMetricsHasThemAndItsFront) {
  const TuningSession session = ConvertSession(WithTwoMetrics());
  ASSERT_THAT(session.of.objectives, SizeIs(2));
  EXPECT_EQ(session.of.trials[3].values, (tracker::Values{8., 90.}));
  // 5, 10 and 4, 15 are beaten by 3, 20; 9, 90 by 8, 90.
  ASSERT_EQ(session.of.front.size(), 2);
  EXPECT_EQ(session.of.front[0].trial, 1);
  EXPECT_EQ(session.of.front[1].trial, 3);

  ReportData data;
  data.hardware.emplace_back();
  data.sessions = {session};
  const std::string markdown = WriteMarkdownReport(data, {});
  EXPECT_THAT(markdown, HasSubstr("| config | p99, ms | rate |"));
  EXPECT_THAT(markdown, HasSubstr("| `threads=2` | 3 | 20 |\n"
                                  "| `threads=4` | 8 | 90 |\n"));
}

// 54 trials of earlier sessions and 104 of its own; as a finalist the default
// took .62 of the winner's time, and the proof saved 10.5%.
proto::Session WithProof() {
  proto::Session session;
  session.set_warm_start_trial_count(54);
  for (int i = 0; i < 158; ++i) {
    proto::Trial* trial = session.add_trials();
    trial->set_outcome(proto::OK);
    trial->set_time_ns(i < 54 ? 10 : 2000 - i);
  }
  for (const int tile : {1, 8}) {
    proto::Finalist* finalist = session.add_finalists();
    proto::KnobValue* knob = finalist->mutable_config()->add_set();
    knob->set_knob("tile");
    knob->set_int_(tile);
    finalist->set_outcome(proto::OK);
    finalist->set_is_default(tile == 1);
    finalist->set_first_time_ns(1050);
    finalist->set_time_ns(tile == 1 ? 620 : 1000);
  }
  *session.mutable_winner() = session.finalists(1).config();
  session.mutable_proof()->set_metric("time");
  session.mutable_proof()->set_gain(.105);
  session.mutable_proof()->set_rounds(42);
  session.mutable_proof()->set_claimed(true);
  return session;
}

TEST(BuildReportDataTest, EveryFormatTellsTheTrialsAndTheProofOfASession) {
  ReportData data;
  data.hardware.emplace_back();
  data.sessions = ConvertSessions({WithProof()});
  const std::string markdown = WriteMarkdownReport(data, {});
  EXPECT_THAT(markdown, HasSubstr("| 104 | 1.00 us |"));
  EXPECT_THAT(markdown, HasSubstr("| 1.12x | proven: "));
  EXPECT_THAT(markdown, Not(HasSubstr("0.62x")));
  const nlohmann::json session =
      nlohmann::json::parse(WriteJsonReport(data))["sessions"][0];
  EXPECT_NEAR(session["verified_speedup"].get<double>(), 1 / .895, 1e-9);
  EXPECT_EQ(session["winner_value"], 1000);
  EXPECT_NE(session["best_value"], session["winner_value"]);
  EXPECT_EQ(session["proof"]["gain"], .105);
  EXPECT_EQ(session["winner"], "tile=8");
  EXPECT_EQ(session["trials"].size(), 104);
  EXPECT_EQ(session["warm_start_trials"], 54);
  EXPECT_EQ(session["outcomes"]["OK"], 104);
  const std::string page = PageJson(data, 1 << 20);
  EXPECT_THAT(page, HasSubstr("10.5% better"));
  EXPECT_THAT(page, HasSubstr("0 of 1 finalist cost more when measured again"));
}

TEST(BuildReportDataTest, ANodeThatWasLostIsInJsonAndPage) {
  proto::Session lost = WithProof();
  for (const char* name : {"gpu7:7070", "gpu8:7070"}) {
    proto::MeasuringNode& node = *lost.add_nodes();
    node.set_name(name);
    node.set_verdict(proto::NODE_EQUAL);
    node.set_searches(true);
  }
  lost.mutable_nodes(1)->set_lost_because("the cable is out");
  ReportData data;
  data.hardware.emplace_back();
  data.sessions = ConvertSessions({lost});
  const nlohmann::json nodes =
      nlohmann::json::parse(WriteJsonReport(data))["sessions"][0]["nodes"];
  ASSERT_EQ(nodes.size(), 2);
  EXPECT_TRUE(nodes[0]["lost"].is_null());
  EXPECT_EQ(nodes[1]["lost"], "the cable is out");
  EXPECT_THAT(PageJson(data, 1 << 20),
              HasSubstr("lost during the search: the cable is out"));
}

TEST(BuildReportDataTest, ASessionOverSchedulesShowsWhatItTried) {
  const ReportData data = SampleData();
  const auto with = absl::c_find_if(
      data.sessions, [](const auto& session) { return session.schedule; });
  ASSERT_NE(with, data.sessions.end());
  const ScheduleView& view = *with->schedule;
  EXPECT_EQ(view.note, "");
  size_t trials = 0;
  int of_winner = 0;
  for (const ScheduleView::Sketch& sketch : view.sketches) {
    trials += sketch.trials;
    of_winner += sketch.of_winner;
    EXPECT_THAT(sketch.text, HasSubstr("softmax at root"));
  }
  EXPECT_EQ(trials, with->of.trials.size());
  EXPECT_EQ(of_winner, 1);
  EXPECT_THAT(view.loops, HasSubstr("softmax = f("));
  // The rule that decides what the sample's times depend on most.
  ASSERT_FALSE(view.rules.empty());
  EXPECT_EQ(view.rules[0].name, "inline");
  EXPECT_GT(*view.rules[0].importance, 0.3);
  const auto inlined = absl::c_find_if(
      view.decisions, [](const auto& d) { return d.name == "s1_inline"; });
  ASSERT_NE(inlined, view.decisions.end());
  EXPECT_EQ(inlined->stage, "power");
  EXPECT_EQ(inlined->rule, "inline");
  EXPECT_EQ(inlined->value, 0);
}

// Whoever reads a record with other rules does not show what they would make.
TEST(BuildReportDataTest, AScheduleOfOtherRulesSaysSo) {
  proto::Session session = WithTwoMetrics();
  session.mutable_schedule()->set_rules("inline 0");
  const TuningSession converted = ConvertSession(session);
  ASSERT_TRUE(converted.schedule);
  EXPECT_THAT(converted.schedule->note, HasSubstr("inline 0"));
  EXPECT_THAT(converted.schedule->sketches, SizeIs(0));
}

TEST(BuildReportDataTest, ASessionOfTimeAloneHasNoOtherMetrics) {
  const ReportData data = SampleData();
  for (const TuningSession& session : data.sessions) {
    EXPECT_TRUE(session.of.is_time());
    EXPECT_THAT(session.of.front, SizeIs(0));
  }
}

// Newest runs only, each hardware's own.
TEST(BuildReportDataTest, WorkloadsAreThoseOfTheNewestRuns) {
  SampleOptions options;
  options.commits = 5;
  const SampleHistory sample = MakeSampleHistory(options);
  const ReportData data = BuildReportData(sample.runs, {}, {});
  ASSERT_EQ(data.workloads.size(), 3);
  std::set<int> hardware;
  for (const WorkloadView& workload : data.workloads) {
    hardware.insert(workload.hardware);
    EXPECT_EQ(workload.commit.position, data.commits.back().position);
    EXPECT_EQ(workload.time.name, "sample_model");
    EXPECT_EQ(workload.time.counted, 6);
    EXPECT_EQ(workload.time.layers.size(), 7);
    EXPECT_GT(workload.time.default_ns, workload.time.best_ns);
    EXPECT_EQ(workload.time.parts.size(), 1);
  }
  EXPECT_EQ(hardware.size(), 3);
  const std::string markdown = WriteMarkdownReport(data);
  EXPECT_THAT(markdown, HasSubstr("on 8 threads, 6 of 6 layers"));
}

}  // namespace
}  // namespace optrail::reports
