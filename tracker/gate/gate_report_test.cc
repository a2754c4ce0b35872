// What the gate prints, and what it asks for.

#include "tracker/gate/gate_report.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/text/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tracker/gate/gate_test_fixture.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(GateTest, NamesAreInertWhereverTheyAreShown) {
  const std::string hostile = "x|</td><script>\x1b[31m\n# heading";
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{hostile, 100}}));
  Record(MakeRun(7, "topic", {{hostile, 150}}));
  const GateReport report = Judged();
  ASSERT_EQ(report.exit_code, 1);
  EXPECT_THAT(GateText(report), Not(HasSubstr("\x1b")));
  const std::string markdown = GateMarkdown(report);
  // In code, where it does nothing; the pipe would end the cell even there.
  EXPECT_THAT(markdown, HasSubstr("`x`&#124;`</td><script>\\x1b[31m\\n#"));
  EXPECT_THAT(markdown, Not(HasSubstr("\n# heading")));
}

TEST_F(GateTest, JsonHasWhatAProgramNeeds) {
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 120}, {"b", 200}}));
  const nlohmann::json json = nlohmann::json::parse(GateJson(Judged()));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["reason"], "regression");
  EXPECT_EQ(json["red"], 1);
  EXPECT_EQ(json["rows"][0]["suite"], "smoke");
  EXPECT_EQ(json["rows"][0]["hardware"], kHardware);
  EXPECT_EQ(json["remeasure"], nullptr);
  EXPECT_EQ(json["baselines"][0]["runs"].size(), 6);
  const nlohmann::json& row = json["rows"][0];
  EXPECT_EQ(row["name"], "a");
  EXPECT_EQ(row["verdict"], "slower");
  EXPECT_NEAR(row["ratio"]["ratio"].get<double>(), 1.2, .01);
  EXPECT_LT(row["ratio"]["low"], row["ratio"]["high"]);
  EXPECT_EQ(row["candidate"]["commit"], CommitId(7));
}

TEST_F(GateTest, ADamagedFileIsSaidAndSkipped) {
  RecordMain(7);
  Record(MakeRun(8, "topic", {{"a", 100}, {"b", 200}}));
  const RunList list = *history_.ListRuns();
  ASSERT_TRUE(WriteFileAtomically(list.runs[2].path, "garbage", &fs_).ok());
  const GateReport report = Judged();
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
  EXPECT_THAT(GateText(report), HasSubstr("damaged file skipped"));
}

TEST_F(GateTest, TextFitsATerminal) {
  const std::string name =
      "matmul/cpu/m=384,n=4096,k=1024/f32/default/threads=1/hot";
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{name, 100}}));
  Record(MakeRun(7, "topic", {{name, 450}}));
  const GateReport report = Judged();
  const std::string text = GateText(report, 100);
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(DisplayWidth(line), 100) << line;
  }
  EXPECT_THAT(text, AllOf(HasSubstr(name),
                          HasSubstr("takes 4.50x the time (+350%), p < 0.001"),
                          Not(HasSubstr("metric"))));
}

TEST_F(GateTest, NamesAreNeverCut) {
  const std::string name = absl::StrCat("BM_", std::string(120, 'x'), "/1024");
  for (int i = 1; i <= 6; ++i) Record(MakeRun(i, "main", {{name, 100}}));
  Record(MakeRun(7, "topic", {{name, 450}}));
  const std::string text = GateText(Judged(), 100);
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", name, "\n  FAIL")));
  EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xa6")));
}

TEST_F(GateTest, LongConfigsShowWhatDiffers) {
  std::string before, after;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&before, i ? "," : "", "knob", i, "=", 1);
    absl::StrAppend(&after, i ? "," : "", "knob", i, "=", i == 13 ? 7 : 1);
  }
  for (int i = 1; i <= 6; ++i) {
    proto::Run run = MakeRun(i, "main", {{"a", 100}});
    run.mutable_results(0)->set_config(before);
    Record(run);
  }
  proto::Run candidate = MakeRun(7, "topic", {{"a", 150}});
  candidate.mutable_results(0)->set_config(after);
  Record(candidate);
  const GateReport report = Judged();
  const std::string text = GateText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("config: knob13 1 -> 7\n"),
                          Not(HasSubstr("knob12"))));
  const nlohmann::json json = nlohmann::json::parse(GateJson(report));
  EXPECT_EQ(json["rows"][0]["changed"][0], "config: knob13 1 -> 7");
  EXPECT_EQ(json["rows"][0]["baseline"]["config"], before);
  EXPECT_EQ(json["rows"][0]["candidate"]["config"], after);
}

// Names of operators need no escapes, and those that look like patterns match
// nothing else.
TEST_F(GateTest, TheFilterToMeasureAgainIsReadable) {
  const std::vector<double> noisy = {92, 100, 108, 103};
  const std::string names[] = {"add/cpu/n=4,m=2/f32", "BM_<a'b>\n(1.5)"};
  for (int i = 1; i <= 2; ++i) {
    proto::Run run = MakeRun(i, "main", {{names[0], 1}, {names[1], 1}});
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      result.clear_measurements();
      for (const double ns : noisy) {
        result.add_measurements()->set_median_ns(ns);
      }
    }
    Record(run);
  }
  GateOptions options;
  options.baseline = *ParseBaseline("latest~1");
  GateReport report = Judged("", options);
  const absl::optional<Remeasure> request = RemeasureRequest(report);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->filter, "^(BM_<a'b>\\n\\(1\\.5\\)|add/cpu/n=4,m=2/f32)$");
  EXPECT_EQ(request->additional_processes, request->processes - 4);
  const std::string text = GateText(report);
  EXPECT_THAT(text, AllOf(HasSubstr("RERUN"), Not(HasSubstr("FAIL")),
                          HasSubstr("BM_<a'\\''b>")))
      << "safe to paste into a shell";
  // A gate that measured by itself goes on by itself.
  report.rounds = 4;
  EXPECT_THAT(GateText(report),
              AllOf(HasSubstr(absl::StrCat("repeat it with --max_rounds=",
                                           4 + request->additional_processes)),
                    Not(HasSubstr("--benchmark_filter"))));
}

TEST_F(GateTest, LooksShareTheFalseAlarmRate) {
  EXPECT_DOUBLE_EQ(CompareOptionsFor(Policy::Default(), 2 * 5).false_alarm_rate,
                   .001);
  RecordMain(6);
  Record(MakeRun(7, "topic", {{"a", 100}, {"b", 200}}));
  const std::string policy = "rule { min_effect: 0.001 }";
  GateOptions options;
  const double one =
      *RowOf(Judged(policy, options), "a").row.minimum_detectable_effect;
  options.looks = 1000000;
  EXPECT_GT(*RowOf(Judged(policy, options), "a").row.minimum_detectable_effect,
            1.5 * one);
}

// The change is too young to be confirmed: the level is that of before, and so
// is all that is said of the baseline.
TEST_F(GateTest, TheEvidenceIsOfTheRunsThatWereUsed) {
  for (int i = 1; i <= 40; ++i) {
    Record(MakeRun(i, "main", {{"a", i < 37 ? 2000. : 2500.}, {"b", 200}}));
  }
  const GateReport report = Judged();
  const Side& baseline = RowOf(report, "a").row.baseline;
  ASSERT_TRUE(baseline.value.has_value());
  const int last = std::stoi(baseline.commit.id());
  EXPECT_NEAR(*baseline.value, last < 37 ? 2000 : 2500, 30) << GateText(report);
  for (const std::string& id : baseline.run_ids) {
    const proto::Run run = *history_.ReadRun(id);
    EXPECT_NEAR(run.results(0).measurements(0).median_ns(), *baseline.value, 60)
        << id;
  }
  EXPECT_EQ(baseline.processes, 5 * baseline.run_ids.size());
}

// Gives benchmark a of `run` ten samples a process, one of them `fastest`.
proto::Run WithSamples(proto::Run run, double fastest, double others) {
  for (proto::Measurement& measurement :
       *run.mutable_results(0)->mutable_measurements()) {
    const double noise = measurement.median_ns() / 100;
    measurement.clear_median_ns();
    measurement.set_calls_per_sample(1000);
    for (int i = 0; i < 10; ++i) {
      measurement.add_sample_ns(
          static_cast<int64_t>(1000 * noise * (i == 0 ? fastest : others)));
    }
  }
  return run;
}

// The fastest samples rise and the medians fall.
TEST_F(GateTest, ARowNamesTheNumbersThatItsRatioIsOf) {
  for (int i = 1; i <= 12; ++i)
    Record(WithSamples(MakeRun(i, "main", {{"a", 100}}), 100, 150));
  Record(WithSamples(MakeRun(13, "main", {{"a", 100}}), 112, 135));
  const GateReport report = Judged();
  const Row& row = RowOf(report, "a").row;
  EXPECT_EQ(row.verdict, Verdict::kSlower) << GateText(report);
  EXPECT_LT(*row.candidate.value, *row.baseline.value);
  ASSERT_TRUE(row.ratio.has_value());
  EXPECT_NEAR(row.ratio->candidate / row.ratio->baseline, row.ratio->ratio,
              1e-9);
  EXPECT_THAT(GateText(report), HasSubstr("ratio of"));
  EXPECT_THAT(GateText(report), HasSubstr("(levels of fastest samples "));
  EXPECT_THAT(GateJson(report), HasSubstr("\"of\": \"fastest samples\""));
  // There is no such column if both say the same.
  Record(WithSamples(MakeRun(14, "main", {{"a", 100}}), 100, 150));
  EXPECT_THAT(GateText(Judged()), Not(HasSubstr("ratio of")));
}

// Most of the window lies after the step: the medians that a reason speaks of
// are those of the runs that were used, as the row's values are.
TEST_F(GateTest, AReasonSpeaksOfTheRunsThatWereUsed) {
  for (int i = 1; i < 20; ++i)
    Record(WithSamples(MakeRun(i, "main", {{"a", 100}}), 100, 100));
  int slower = 0;
  for (int i = 20; i < 30; ++i) {
    Record(WithSamples(MakeRun(i, "main", {{"a", 100}}), 120, 120));
    const GateReport report = Judged();
    const Row& row = RowOf(report, "a").row;
    slower += row.verdict == Verdict::kSlower ? 1 : 0;
    EXPECT_THAT(row.reason, Not(HasSubstr("the medians"))) << i;
    const int named = static_cast<int>(row.baseline.run_ids.size());
    EXPECT_EQ(named + row.unused_runs, std::min(10, i - 1)) << i;
    if (report.exit_code == 1 && row.unused_runs > 0) {
      EXPECT_THAT(GateText(report),
                  HasSubstr(absl::StrCat("; ", row.unused_runs,
                                         " more of the baseline are of")));
    }
  }
  EXPECT_GT(slower, 3);
}

TEST_F(GateTest, ARedRowSaysHowToFindTheCommit) {
  for (int i = 1; i <= 12; ++i) Record(MakeRun(i, "main", {{"a", 100}}));
  // One commit needs no search.
  Record(MakeRun(13, "main", {{"a", 125}}));
  EXPECT_THAT(GateText(Judged()), AllOf(Not(HasSubstr("bisect")),
                                        HasSubstr("next: git show 0000")));
}

// The times of commit `i` in the noise of .2%.
std::vector<std::pair<std::string, double>> Noisy(int i, double ns) {
  return {{"a", ns * (1 + .001 * (i * 7 % 5 - 2))}};
}

TEST_F(GateTest, ARedRowSuspectsNoCommitAfterARunThatIsSlow) {
  for (int i = 1; i <= 12; ++i) Record(MakeRun(i, "main", Noisy(i, 100)));
  for (int i = 15; i <= 16; ++i) Record(MakeRun(i, "main", Noisy(i, 125)));
  GateReport report = Judged();
  ASSERT_EQ(report.exit_code, 1) << GateText(report);
  ASSERT_TRUE(RowOf(report, "a").good && RowOf(report, "a").bad);
  EXPECT_EQ(RowOf(report, "a").good->commit.id(), CommitId(12));
  EXPECT_EQ(RowOf(report, "a").bad->commit.id(), CommitId(15));
  report.measured_by = "--build=make --run='./bench -q'";
  const std::string id = CommitId(15);
  EXPECT_THAT(GateText(report),
              AllOf(HasSubstr("next: optrail bisect "),
                    HasSubstr(absl::StrCat(id.substr(0, 12),
                                           " --filter='^a$' --build=make "
                                           "--run='./bench -q'")),
                    Not(HasSubstr("config of both"))));
  // The command is copied as a whole.
  EXPECT_THAT(GateMarkdown(report), HasSubstr("next: `optrail bisect "));
  EXPECT_THAT(GateMarkdown(report), HasSubstr(" --run='./bench -q'`"));
}

// There is nothing to bisect where a side has no time.
TEST_F(GateTest, ARowWithoutTimesSaysHowToSeeWhatHappened) {
  RecordMain(6);
  proto::Run run = MakeRun(7, "topic", {{"b", 200}});
  run.mutable_results(0)->clear_measurements();
  run.mutable_results(0)->set_outcome(proto::CRASHED);
  Record(run);
  GateReport report = Judged();
  EXPECT_THAT(GateText(report), Not(HasSubstr("next:")))
      << "no history is named";
  report.history_flag = " --history=x";
  const std::string base = report.baselines.at(0).runs.back().id();
  EXPECT_THAT(
      GateText(report, 80),
      AllOf(HasSubstr(absl::StrCat("\n  next: optrail show ", run.run_id(),
                                   " --filter='^b$' --history=x\n")),
            HasSubstr(absl::StrCat("\n  next: optrail show ", base,
                                   " --filter='^a$' --history=x\n"))));
}

TEST_F(GateTest, AMutedCrashIsRedAndSaysWhy) {
  RecordMain(6);
  proto::Run run = MakeRun(7, "topic", {{"a", 100}, {"b", 200}});
  run.mutable_results(1)->clear_measurements();
  run.mutable_results(1)->set_outcome(proto::CRASHED);
  Record(run);
  proto::TriageRecord mute;
  mute.set_created_unix_ns(kStart + 6 * kMinute);
  mute.set_record_id(NewRecordId(mute.created_unix_ns()));
  mute.set_kind(proto::MUTE);
  mute.set_pattern("b.*");
  mute.set_until_unix_ns(*ParseEndOfDay("2099-12-31"));
  ASSERT_TRUE(history_.AppendTriage(mute).ok());
  GateOptions options;
  options.now_unix_s = kStart / 1'000'000'000;
  GateReport report = Judged("", options);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(RowOf(report, "b").muted_until, "2099-12-31");
  EXPECT_THAT(GateText(report),
              HasSubstr("muted until 2099-12-31 for `changes` and the report, "
                        "where it quiets changes of a number and no crash; it "
                        "does not quiet the gate"));
  // A mute that has ended is no mute.
  options.now_unix_s = *ParseEndOfDay("2099-12-31") / 1'000'000'000;
  EXPECT_EQ(RowOf(Judged("", options), "b").muted_until, "");
  // An exemption does for the gate what a mute does elsewhere.
  options.now_unix_s = kStart / 1'000'000'000;
  report = Judged(
      "rule {} exemption { benchmark: 'b' until: '2099-12-31' reason: 'r' }",
      options);
  EXPECT_EQ(report.exit_code, 0) << GateText(report);
}

TEST_F(GateTest, SentencesAreWrapped) {
  for (int i = 1; i <= 12; ++i) Record(MakeRun(i, "main", {{"a", 100}}));
  for (int i = 13; i <= 52; ++i) Record(MakeRun(i, "main", {{"a", 125}}));
  const std::string text = GateText(Judged(), 80);
  EXPECT_THAT(text, HasSubstr("nobody has"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(DisplayWidth(line), 80) << line;
  }
}

TEST_F(GateTest, NotesAreSaidOnceAndNameTheMetric) {
  const auto run = [&](int position, double ns) {
    proto::Run run = MakeRun(position, "main", {{"a", ns}});
    for (proto::Measurement& measurement :
         *run.mutable_results(0)->mutable_measurements()) {
      proto::MetricSamples* cpu = measurement.add_metrics();
      cpu->set_metric("cpu_time");
      cpu->set_unit("ns");
      cpu->set_direction(proto::LOWER_IS_BETTER);
      cpu->add_values(measurement.median_ns());
    }
    return run;
  };
  for (int i = 1; i <= 12; ++i) Record(run(i, 100));
  // Long enough for the change to be confirmed.
  for (int i = 13; i <= 52; ++i) Record(run(i, 125));
  const GateReport report = Judged();
  ASSERT_THAT(report.open_changes, SizeIs(1)) << "cpu_time is not gated";
  EXPECT_EQ(report.open_changes[0].state, "new");
  const std::string text = GateText(report);
  std::set<std::string> notes(report.notes.begin(), report.notes.end());
  EXPECT_EQ(notes.size(), report.notes.size()) << text;
  // One note for all that is alike, with the command that has the evidence.
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("nobody has answered 1 change"),
                                    HasSubstr("since 000000000000 a (+25.0%)"),
                                    HasSubstr("next: optrail changes"))));
}

// The window lies after the step, and `changes` can't confirm it yet.
TEST_F(GateTest, AGreenGateNamesTheChangeThatMoreRunsMustConfirm) {
  for (int i = 1; i <= 12; ++i) Record(MakeRun(i, "main", Noisy(i, 100)));
  GateReport report;
  int maybe = 0;
  for (int i = 13; i <= 40; ++i) {
    Record(MakeRun(i, "main", Noisy(i, 125)));
    report = Judged();
    ASSERT_THAT(report.open_changes, SizeIs(1)) << "at commit " << i;
    const GateReport::OpenChange& change = report.open_changes[0];
    EXPECT_EQ(change.first, CommitId(13));
    EXPECT_EQ(change.points_since, i - 12);
    EXPECT_EQ(change.next, "git show 000000000000");
    if (report.exit_code == 1) continue;
    EXPECT_THAT(report.notes, Contains(HasSubstr("optrail changes")));
    maybe += !change.is_confirmed;
  }
  EXPECT_GT(maybe, 0);
  EXPECT_TRUE(report.open_changes[0].is_confirmed);
}

}  // namespace
}  // namespace optrail::tracker
