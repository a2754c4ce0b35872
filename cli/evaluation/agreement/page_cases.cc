// What is said of a change: changes, the answers of people to it, the report
// and the gate say the same.

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

void ThePageCountsWhatChangesCounts(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 58, [](RunSpec& spec, int position) {
    spec.has_rate = true;
    if (position >= 40) spec.benchmarks = Slower(spec.benchmarks, 0, 1.2);
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
  });
  const Json report = ReportOf(bench);
  if (!report.is_object()) return found.Expect(false, "no report");
  std::set<std::string> alerts;
  for (const Json& row : bench.AskJson({"changes"}).Parsed()) {
    if (TextOf(row, "state") == "new") alerts.insert(TextOf(row, "series"));
  }
  found.Expect(alerts.size() == 2, "changes does not know both steps");
  const double slower = NumberOf(At(report, "verdicts"), "slower");
  found.Expect(slower == alerts.size(),
               absl::StrCat("the JSON says ", slower, " slower, changes ",
                            alerts.size()));
  const Answer markdown =
      bench.Ask({"report", "--report_format=markdown", "--out=-"});
  found.Expect(markdown.Says(absl::StrCat(alerts.size(), " slower")),
               absl::StrCat("the page counts other series than changes: ",
                            markdown.out.substr(0, 700)));
}

void TheReportStatesEachChangeAsChangesDoes(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 59, [](RunSpec& spec, int position) {
    if (position >= 40) spec.benchmarks = Slower(spec.benchmarks, 0, 1.2);
    if (position >= 30) spec.benchmarks = Slower(spec.benchmarks, 1, .8);
  });
  bench.Ask({"ack", "BM_0", MadeCommit(40), "--reason=known"});
  const Json report = ReportOf(bench);
  for (const Json& row :
       bench.AskJson({"changes", "--min_effect=0"}).Parsed()) {
    const std::string name = TextOf(row, "benchmark");
    const Json series = ReportSeries(report, name);
    bool there = false;
    for (const Json& change : At(series, "change_points")) {
      there = there ||
              (IsNear(NumberOf(change, "relative_change"),
                      NumberOf(row, "relative_change")) &&
               absl::StartsWith(TextOf(change, "state"), TextOf(row, "state")));
    }
    found.Expect(
        there, absl::StrCat(name, ": the report lacks '", TextOf(row, "state"),
                            "' of ", NumberOf(row, "relative_change")));
  }
  found.Expect(TextOf(ReportSeries(report, "BM_0"), "verdict") != "slower",
               "the report calls slower what is acknowledged");
}

void AMutedSeriesIsMutedOnThePageToo(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 62, [](RunSpec& spec, int position) {
    if (position >= 40) spec.benchmarks = Slower(spec.benchmarks, 1, 1.2);
  });
  found.ExpectExit(bench.Ask({"mute", "BM_1", "--until=2099-12-31",
                              "--reason=waits for the new machine"}),
                   0);
  found.ExpectExit(bench.Ask({"changes"}), 0);
  found.Expect(
      TextOf(ReportSeries(ReportOf(bench), "BM_1"), "verdict") != "slower",
      "the report calls slower what is muted");
}

void AMissingBenchmarkIsMissingEverywhere(Workbench& bench, Findings& found) {
  RecordSeries(bench, 30, 63, [](RunSpec& spec, int position) {
    if (position == 30) spec.benchmarks.pop_back();
  });
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  found.ExpectExit(gate, 1);
  found.Expect(TextOf(RowWith(At(gate.Parsed(), "rows"), "name", "BM_2"),
                      "verdict") == "missing",
               "the gate does not call it missing");
  found.Expect(
      TextOf(ReportSeries(ReportOf(bench), "BM_2"), "verdict") == "missing",
      absl::StrCat("the report calls it ",
                   TextOf(ReportSeries(ReportOf(bench), "BM_2"), "verdict")));
}

void AFailingBenchmarkFailsEverywhere(Workbench& bench, Findings& found) {
  RecordSeries(bench, 30, 64, [](RunSpec& spec, int position) {
    if (position == 30) spec.benchmarks[1].outcome = proto::CRASHED;
  });
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  found.ExpectExit(gate, 1);
  found.Expect(TextOf(RowWith(At(gate.Parsed(), "rows"), "name", "BM_1"),
                      "verdict") == "crashed",
               "the gate does not call it crashed");
  const std::string page =
      TextOf(ReportSeries(ReportOf(bench), "BM_1"), "verdict");
  found.Expect(page == "failed" || page == "crashed",
               "the report calls it " + page);
  const Json shown =
      RowWith(bench.AskJson({"show", "latest"}).Parsed(), "benchmark", "BM_1");
  found.Expect(absl::StrContains(TextOf(shown, "outcome"), "CRASHED"),
               "show calls it " + TextOf(shown, "outcome"));
  found.Expect(TextOf(shown, "config").empty() &&
                   !TextOf(shown, "detail").empty() &&
                   TextOf(shown, "commit") == MadeCommit(30),
               "show has what failed elsewhere: " + shown.dump());
  // A row of the table: the summary below it has no commits.
  const std::string text = bench.Ask({"changes"}).out;
  found.Expect(text.find(Short(MadeCommit(30))) < text.find("3 series:"),
               "the table of changes has no row of it: " + text);
}

void ASkippedBenchmarkIsMissingEverywhere(Workbench& bench, Findings& found) {
  RecordSeries(bench, 30, 65, [](RunSpec& spec, int position) {
    if (position == 30) spec.benchmarks[1].outcome = proto::UNSUPPORTED;
    spec.benchmarks.push_back({"BM_never", 100, proto::UNSUPPORTED});
  });
  const Json gate =
      At(bench.AskJson({"gate", "--candidate=latest"}).Parsed(), "rows");
  const Json compared =
      bench.AskJson({"compare", "latest~1", "latest"}).Parsed();
  const Json report = ReportOf(bench);
  for (const auto& [name, expected] :
       {std::make_pair("BM_1", "missing"), {"BM_never", "skipped"}}) {
    for (const std::string& verdict :
         {VerdictOf(gate, name), VerdictOf(compared, name),
          TextOf(ReportSeries(report, name), "verdict")}) {
      found.Expect(verdict == expected,
                   absl::StrCat(name, " is called ", verdict));
    }
  }
  found.ExpectExit(bench.Ask({"changes"}), 0);
  found.Expect(bench.Ask({"changes"}).Says("missing: BM_1"),
               "changes does not name it");
}

void ACrashIsOneOfEveryMetric(Workbench& bench, Findings& found) {
  RecordSeries(bench, 30, 68, [](RunSpec& spec, int position) {
    spec.has_rate = true;
    if (position == 30) spec.benchmarks[1].outcome = proto::CRASHED;
  });
  for (const char* metric : {"time", ".*_per_second", ".*"}) {
    const Answer answer =
        bench.AskJson({"changes", absl::StrCat("--metric=", metric)});
    found.ExpectExit(answer, 1);
    found.Expect(TextOf(RowWith(answer.Parsed(), "benchmark", "BM_1"),
                        "state") == "failed",
                 absl::StrCat("no row of the crash for --metric=", metric));
  }
}

void AnAbandonedBranchFailsNothing(Workbench& bench, Findings& found) {
  Rng rng(69);
  for (int i = 1; i <= 30; ++i) {
    RunSpec spec;
    spec.position = i;
    spec.branch = i == 10 ? "feature" : "main";
    spec.commit = MadeCommit(i, spec.branch);
    spec.started_unix_ns = kStartNs + i * kHourNs;
    spec.benchmarks = Benchmarks(3);
    if (i == 10) spec.benchmarks[1].outcome = proto::CRASHED;
    bench.Record(MakeRun(spec, &rng));
  }
  found.ExpectExit(bench.Ask({"changes"}), 0);
  found.ExpectExit(bench.Ask({"changes", "--branch=feature"}), 1);
  const Json verdicts = At(ReportOf(bench), "verdicts");
  found.Expect(!verdicts.contains("failed"),
               "the report has a failure: " + verdicts.dump());
}

void ANewCompilerIsAnEpochEverywhere(Workbench& bench, Findings& found) {
  RecordSeries(bench, 30, 66, [](RunSpec& spec, int position) {
    if (position < 30) return;
    spec.compiler = "g++ 13.1.0";
    spec.benchmarks = Slower(spec.benchmarks, -1, 1.2);
  });
  found.ExpectExit(bench.Ask({"gate", "--candidate=latest"}), 3);
  found.ExpectExit(bench.Ask({"changes"}), 0);
  const Json series = ReportSeries(ReportOf(bench), "BM_0");
  found.Expect(At(series, "epochs").size() == 1, "the report has no epoch");
  found.Expect(TextOf(series, "verdict") != "slower",
               "the report calls a new compiler slower");
}

void ARenamedBenchmarkIsRenamedEverywhere(Workbench& bench, Findings& found) {
  RecordSeries(bench, 50, 67, [](RunSpec& spec, int position) {
    for (MadeBenchmark& benchmark : spec.benchmarks) {
      benchmark.name = absl::StrCat("BM_Sort_large/", benchmark.name);
    }
    if (position < 30) return;
    spec.benchmarks[1].name += "_v2";
    spec.benchmarks[1].level_ns *= 1.3;
  });
  const Answer changes = bench.AskJson({"changes"});
  const std::string name = "BM_Sort_large/BM_1_v2";
  const Json row = RowWith(changes.Parsed(), "benchmark", name);
  const std::string page =
      TextOf(ReportSeries(ReportOf(bench), name), "verdict");
  found.Expect((changes.exit_code == 1) == (page == "slower"),
               absl::StrCat("changes exits with ", changes.exit_code,
                            ", the report says ", page));
}

void ChangesSaysHowManyPointsItLacks(Workbench& bench, Findings& found) {
  RecordSeries(bench, 9, 68, [](RunSpec&, int) {});
  const Answer changes = bench.Ask({"changes"});
  found.Expect(changes.Says("9 of 20"),
               absl::StrCat("the points that are there and needed are not "
                            "printed: ",
                            changes.out, changes.err));
}

// The gate says of a change of its baseline what `changes` says.
void TheGatesNoteOfAChangeIsThatOfChanges(Workbench& bench, Findings& found) {
  RecordSeries(bench, 60, 69, [](RunSpec& spec, int position) {
    if (position >= 40) spec.benchmarks = Slower(spec.benchmarks, 1, 1.25);
  });
  const Json changes = bench.AskJson({"changes"}).Parsed();
  const Json gate = bench.AskJson({"gate", "--candidate=latest"}).Parsed();
  if (!gate.is_object()) return found.Expect(false, "no JSON");
  bool said = false;
  for (const Json& note : At(gate, "notes")) {
    const std::string text = note.get<std::string>();
    if (!absl::StrContains(text, "BM_1")) continue;
    for (const Json& row : changes) {
      said = said || absl::StrContains(text, TextOf(row, "first_commit_after"));
    }
  }
  found.Expect(said || NumberOf(gate, "exit_code") == 1,
               absl::StrCat("the unanswered change is not said: ",
                            At(gate, "notes").dump()));
}

// A slow-down that ended has a row with its end, not its end alone.
void ASlowDownThatEndedIsListed(Workbench& bench, Findings& found) {
  for (const int before : {12, 20}) {
    for (const int after : {6, 15, 25}) {
      bench.Delete(".optrail");
      const int back = before + 8;
      RecordSeries(bench, back + after, 91, [&](RunSpec& spec, int position) {
        if (position > before && position <= back) {
          spec.benchmarks = Slower(spec.benchmarks, 1, 1.3);
        }
      });
      const Json row = ChangeAt(bench.AskJson({"changes"}).Parsed(), "BM_1",
                                MadeCommit(before + 1));
      const std::string what =
          absl::StrCat("+30% after ", before, " commits, ", after,
                       " after its end: ", row.dump());
      found.Expect(!row.is_null(), what);
      const bool is_undone = absl::StrContains(TextOf(row, "state"), "undone");
      found.Expect(is_undone || TextOf(row, "state") == "new", what);
      found.Expect(!is_undone || absl::StrContains(TextOf(row, "why"),
                                                   Short(MadeCommit(back + 1))),
                   what);
    }
  }
}

// The gate judges two programs with a benchmark of one name each by itself.
// The gate and `changes` say so where one series has both.
void ANameThatTwoSuitesShareIsNamed(Workbench& bench, Findings& found) {
  Rng rng(92);
  for (int position = 1; position <= 14; ++position) {
    for (const bool is_second : {false, true}) {
      RunSpec spec;
      spec.suite = is_second ? "second" : "first";
      spec.commit = MadeCommit(position);
      spec.position = position;
      spec.started_unix_ns =
          kStartNs + position * kHourNs + (is_second ? kSecondNs : 0);
      spec.benchmarks = Benchmarks(2);
      if (is_second) spec.benchmarks[1].name = "BM_of_second";
      if (is_second) spec.benchmarks = Slower(spec.benchmarks, 0, 2);
      bench.Record(MakeRun(spec, &rng));
    }
  }
  for (const std::vector<std::string>& question :
       std::vector<std::vector<std::string>>{{"gate", "--candidate=latest"},
                                             {"changes"}}) {
    const Answer answer = bench.Ask(question);
    found.Expect(answer.Says("BM_0 on") && answer.Says("(suites first,") &&
                     !answer.Says("BM_of_second on"),
                 absl::StrCat(answer.question, " names no shared name: ",
                              answer.out, answer.err));
  }
}

}  // namespace

std::vector<Case> PageCases() {
  return {
      {"ANameThatTwoSuitesShareIsNamed", ANameThatTwoSuitesShareIsNamed},
      {"ASlowDownThatEndedIsListed", ASlowDownThatEndedIsListed},
      {"ThePageCountsWhatChangesCounts", ThePageCountsWhatChangesCounts},
      {"TheReportStatesEachChangeAsChangesDoes",
       TheReportStatesEachChangeAsChangesDoes},
      {"AMutedSeriesIsMutedOnThePageToo", AMutedSeriesIsMutedOnThePageToo},
      {"AMissingBenchmarkIsMissingEverywhere",
       AMissingBenchmarkIsMissingEverywhere},
      {"AFailingBenchmarkFailsEverywhere", AFailingBenchmarkFailsEverywhere},
      {"ASkippedBenchmarkIsMissingEverywhere",
       ASkippedBenchmarkIsMissingEverywhere},
      {"ACrashIsOneOfEveryMetric", ACrashIsOneOfEveryMetric},
      {"AnAbandonedBranchFailsNothing", AnAbandonedBranchFailsNothing},
      {"ANewCompilerIsAnEpochEverywhere", ANewCompilerIsAnEpochEverywhere},
      {"ARenamedBenchmarkIsRenamedEverywhere",
       ARenamedBenchmarkIsRenamedEverywhere},
      {"ChangesSaysHowManyPointsItLacks", ChangesSaysHowManyPointsItLacks},
      {"TheGatesNoteOfAChangeIsThatOfChanges",
       TheGatesNoteOfAChangeIsThatOfChanges},
  };
}

}  // namespace optrail::agreement
