// Which runs are judged: the commit, hardware and suites that were asked for,
// or exit code 3.

#include <algorithm>

#include "absl/strings/match.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

constexpr char kOtherHardware[] = "intel-icelake-8c";

// A line of commits on two machines, of which the second takes twice the time
// at the last commit.
void RecordTwoMachines(Workbench& bench,
                       const std::vector<std::string>& commits, Rng* rng) {
  RecordCalmLine(bench, commits, rng);
  for (size_t i = 0; i < commits.size(); ++i) {
    RunSpec spec = CalmSpec(commits, i);
    spec.hardware = kOtherHardware;
    spec.started_unix_ns -= 600 * kSecondNs;
    if (i + 1 == commits.size()) {
      spec.benchmarks = Slower(spec.benchmarks, -1, 2);
    }
    bench.Record(MakeRun(spec, rng));
  }
}

void GateJudgesTheHardwareThatItIsAskedAbout(Workbench& bench,
                                             Findings& found) {
  Rng rng(1);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordTwoMachines(bench, commits, &rng);
  const Answer other =
      bench.AskJson({"gate", absl::StrCat("--hardware=", kOtherHardware)});
  found.ExpectExit(other, 1);
  found.Expect(AreAll(CandidateHardware(other.Parsed()), kOtherHardware),
               "gate --hardware judged a run of another machine");
  const Answer calm = bench.AskJson({"gate", "--hardware=amd-epyc-zen4-2c"});
  found.ExpectExit(calm, 0);
  const Answer none = bench.Ask({"gate", "--hardware=nobody-has-this"});
  found.ExpectExit(none, 3);
  found.Expect(none.Says("nobody-has-this"),
               "the hardware that is missing is not named");
}

void GateOfTwoMachinesIsNeverGreenForTheSlowOne(Workbench& bench,
                                                Findings& found) {
  Rng rng(2);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordTwoMachines(bench, commits, &rng);
  const Answer gate = bench.AskJson({"gate"});
  found.ExpectExitIsNot(gate, 0);
}

void HeadWithoutARunIsExit3(Workbench& bench, Findings& found) {
  Rng rng(3);
  bench.InitGit();
  RecordCalmLine(bench, Commits(bench, 14), &rng);
  const std::string head = bench.Commit("not measured");
  const Answer gate = bench.Ask({"gate"});
  found.ExpectExit(gate, 3);
  found.Expect(gate.Says(head.substr(0, 12)),
               "the commit without a run is not named");
  found.ExpectExit(bench.Ask({"gate", "--candidate=HEAD"}), 3);
}

void CheckSlowHead(Workbench& bench, Findings& found, int64_t started_unix_ns) {
  Rng rng(4);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  for (size_t i = 0; i < commits.size(); ++i) {
    RunSpec spec = CalmSpec(commits, i);
    if (i + 1 == commits.size()) {
      spec.benchmarks = Slower(spec.benchmarks, 1, 2);
      spec.started_unix_ns = started_unix_ns;
    }
    bench.Record(MakeRun(spec, &rng));
  }
  const Answer gate = bench.AskJson({"gate"});
  found.ExpectExit(gate, 1);
  found.Expect(AreAll(CandidateCommits(gate.Parsed()), commits.back()),
               "another commit than HEAD was judged");
  const Answer shown = bench.Ask({"show", "latest"});
  found.Expect(shown.Says(commits.back().substr(0, 12)),
               "show latest is not the newest commit by position");
}

void HeadMeasuredByAClockThatIsBehindIsJudged(Workbench& bench,
                                              Findings& found) {
  CheckSlowHead(bench, found, kStartNs - 24 * kHourNs);
}

void HeadMeasuredByAClockThatIsAheadIsNotGreen(Workbench& bench,
                                               Findings& found) {
  Rng rng(5);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordCalmLine(bench, {commits.begin(), commits.end() - 1}, &rng);
  RunSpec spec = CalmSpec(commits, commits.size() - 1);
  spec.benchmarks = Slower(spec.benchmarks, 1, 2);
  spec.started_unix_ns = 4'102'444'800 * kSecondNs;  // 2100
  bench.Record(MakeRun(spec, &rng));
  const Answer gate = bench.AskJson({"gate"});
  found.ExpectExitIsNot(gate, 0);
  for (const std::string& commit : CandidateCommits(gate.Parsed())) {
    found.Expect(commit == commits.back(),
                 absl::StrCat("judged ", commit, " instead of HEAD"));
  }
}

void EverySuiteOfTheCandidateIsJudged(Workbench& bench, Findings& found) {
  for (const int last : {0, 1}) {
    Rng rng(6);
    bench.Delete(".git");
    bench.Delete(".optrail");
    bench.InitGit();
    const auto commits = Commits(bench, 14);
    for (size_t i = 0; i < commits.size(); ++i) {
      for (const int second : {0, 1}) {
        RunSpec spec = CalmSpec(commits, i);
        spec.suite = second ? "slow_suite" : "calm_suite";
        for (MadeBenchmark& benchmark : spec.benchmarks) {
          benchmark.name += second ? "_slow" : "_calm";
        }
        if (second && i + 1 == commits.size()) {
          spec.benchmarks = Slower(spec.benchmarks, -1, 2);
        }
        if (second == last) spec.started_unix_ns += 60 * kSecondNs;
        bench.Record(MakeRun(spec, &rng));
      }
    }
    found.ExpectExit(bench.Ask({"gate"}), 1);
    found.ExpectExit(bench.Ask({"gate", "--suite=calm_suite"}), 0);
    found.ExpectExit(bench.Ask({"gate", "--suite=slow_suite"}), 1);
  }
}

void AMissingSuiteIsNamedAndExit3(Workbench& bench, Findings& found) {
  Rng rng(7);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  for (size_t i = 0; i < commits.size(); ++i) {
    RunSpec spec = CalmSpec(commits, i);
    bench.Record(MakeRun(spec, &rng));
    if (i + 1 == commits.size()) continue;
    spec.suite = "second_suite";
    for (MadeBenchmark& benchmark : spec.benchmarks) benchmark.name += "_2";
    bench.Record(MakeRun(spec, &rng));
  }
  const Answer gate = bench.Ask({"gate"});
  found.ExpectExitIsNot(gate, 0);
  found.Expect(gate.Says("second_suite"), "the missing suite is not named");
  const Answer compare = bench.Ask({"compare", "HEAD~1", "HEAD"});
  found.Expect(compare.Says("second_suite"),
               "compare does not name the suite that B lacks");
  const Answer unknown = bench.Ask({"gate", "--suite=nobody_has_this"});
  found.ExpectExit(unknown, 3);
}

void CompareOfTwoMachinesNamesThem(Workbench& bench, Findings& found) {
  Rng rng(8);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordTwoMachines(bench, commits, &rng);
  const Answer compare = bench.Ask({"compare", "HEAD~1", "HEAD"});
  found.Expect(compare.Says(kOtherHardware) && compare.Says("amd-epyc-zen4-2c"),
               absl::StrCat("one of two machines was picked in silence:\n",
                            compare.out, compare.err));
}

// Records the newest commit first, as `watch` does.
void AfterWatchLatestIsTheNewestCommit(Workbench& bench, Findings& found) {
  Rng rng(9);
  bench.InitGit();
  const auto commits = Commits(bench, 16);
  for (size_t i = commits.size(); i-- > 0;) {
    RunSpec spec = CalmSpec(commits, i);
    spec.started_unix_ns =
        kStartNs + static_cast<int64_t>(commits.size() - i) * kHourNs;
    if (i + 1 == commits.size()) {
      spec.benchmarks = Slower(spec.benchmarks, 1, 1.5);
    }
    bench.Record(MakeRun(spec, &rng));
  }
  const std::string head = commits.back().substr(0, 12);
  found.Expect(bench.Ask({"show", "latest"}).Says(head),
               "show latest is not HEAD");
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  found.Expect(AreAll(CandidateCommits(gate.Parsed()), commits.back()),
               "gate --candidate=latest judged another commit");
  found.ExpectExit(gate, 1);
  found.ExpectExit(bench.Ask({"gate"}), 1);
  const Json rows = bench.AskJson({"compare", "latest~1", "latest"}).Parsed();
  found.Expect(
      TextOf(RowWith(rows, "benchmark", "BM_1"), "verdict") == "slower",
      "compare latest~1 latest does not see the newest commit last");
}

void AnOldCandidateIsJudgedByWhatWasBeforeIt(Workbench& bench,
                                             Findings& found) {
  Rng rng(10);
  bench.InitGit();
  const auto commits = Commits(bench, 24);
  RecordCalmLine(bench, commits, &rng);
  const Json gate =
      bench.AskJson({"gate", absl::StrCat("--candidate=", commits[14])})
          .Parsed();
  found.Expect(AreAll(CandidateCommits(gate), commits[14]),
               "another commit was judged");
  if (!gate.is_object()) return found.Expect(false, "no JSON");
  for (const Json& baseline : At(gate, "baselines")) {
    for (const Json& run : At(baseline, "runs")) {
      const auto place =
          std::find(commits.begin(), commits.end(), TextOf(run, "commit"));
      found.Expect(place - commits.begin() < 14,
                   absl::StrCat("a later commit is its baseline: ",
                                TextOf(run, "commit")));
    }
  }
}

void ARunThatMeasuredNothingIsExit3(Workbench& bench, Findings& found) {
  Rng rng(11);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordCalmLine(bench, {commits.begin(), commits.end() - 1}, &rng);
  RunSpec spec = CalmSpec(commits, commits.size() - 1);
  for (MadeBenchmark& benchmark : spec.benchmarks) {
    benchmark.outcome = proto::CONTENDED;
  }
  bench.Record(MakeRun(spec, &rng));
  found.ExpectExit(bench.Ask({"gate"}), 3);
  // And one without a single result.
  spec.benchmarks.clear();
  const std::string head = bench.Commit("empty");
  spec.commit = head;
  spec.position = 15;
  spec.started_unix_ns += kHourNs;
  bench.Record(MakeRun(spec, &rng));
  const Answer gate = bench.Ask({"gate"});
  found.ExpectExitIsNot(gate, 0);
}

void AnUncommittedEditIsNamed(Workbench& bench, Findings& found) {
  Rng rng(12);
  bench.InitGit();
  bench.Write("source.cc", "int x;\n");
  bench.Git({"add", "source.cc"});
  RecordCalmLine(bench, Commits(bench, 14), &rng);
  bench.Write("source.cc", "int y;\n");
  const Answer gate = bench.Ask({"gate"});
  found.Expect(gate.Says("uncommitted") || gate.Says("work tree") ||
                   gate.Says("changes that"),
               absl::StrCat("the edit is not named: ", gate.out, gate.err));
}

void ADirtyRunNeverStandsForTheCommit(Workbench& bench, Findings& found) {
  Rng rng(13);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  for (size_t i = 0; i < commits.size(); ++i) {
    RunSpec spec = CalmSpec(commits, i);
    const bool head = i + 1 == commits.size();
    if (head) spec.benchmarks = Slower(spec.benchmarks, 1, 2);
    bench.Record(MakeRun(spec, &rng));
    if (!head) continue;
    // Somebody tries a mend, and does not commit it.
    spec = CalmSpec(commits, i);
    spec.dirty = true;
    spec.started_unix_ns += 600 * kSecondNs;
    bench.Record(MakeRun(spec, &rng));
  }
  const Answer gate = bench.Ask({"gate"});
  found.ExpectExitIsNot(gate, 0);
}

void OutsideGitLatestIsPrinted(Workbench& bench, Findings& found) {
  Rng rng(14);
  std::vector<std::string> commits;
  for (int i = 1; i <= 14; ++i) commits.push_back(MadeCommit(i));
  RecordCalmLine(bench, commits, &rng);
  const Answer gate = bench.Ask({"gate"});
  found.ExpectExit(gate, 0);
  found.Expect(gate.Says("latest"), "that `latest` was judged is not printed");
  found.Expect(gate.Says(commits.back().substr(0, 12)),
               "the commit that was judged is not printed");
}

void EveryFormatOfTheGateHasOneExitCode(Workbench& bench, Findings& found) {
  Rng rng(15);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordTwoMachines(bench, commits, &rng);
  const std::string hardware = absl::StrCat("--hardware=", kOtherHardware);
  const Answer json = bench.AskJson({"gate", hardware});
  const Json parsed = json.Parsed();
  found.Expect(NumberOf(parsed, "exit_code") == json.exit_code,
               "the JSON has another exit code than the process");
  for (const char* format : {"table", "markdown", "csv"}) {
    const Answer answer =
        bench.Ask({"gate", hardware, absl::StrCat("--format=", format)});
    found.ExpectExit(answer, json.exit_code);
    for (const Json& row : At(parsed, "rows")) {
      if (TextOf(row, "action") != "FAIL") continue;
      found.Expect(
          answer.Says(TextOf(row, "name")) ||
              absl::StrContains(answer.out, "BM\\_"),
          absl::StrCat(format, " does not name ", TextOf(row, "name")));
    }
  }
}

void FlagsThatACommandDoesNotUseAreErrors(Workbench& bench, Findings& found) {
  Rng rng(16);
  bench.InitGit();
  RecordCalmLine(bench, Commits(bench, 14), &rng);
  const std::vector<std::vector<std::string>> questions = {
      {"show", "latest", "--suite=suite"},
      {"show", "latest", "--hardware=x"},
      {"changes", "--candidate=HEAD"},
      {"log", "runs", "--min_effect=.1"},
      {"compare", "latest~1", "latest", "--max_rounds=3"},
      {"gate", "--max_rounds=3"},
      {"history", "verify", "--keep_runs=3"},
      {"history", "export", "--keep_days=3"},
      {"detect", "--csv=x.csv", "--suite=suite"},
  };
  for (const std::vector<std::string>& question : questions) {
    const Answer answer = bench.Ask(question);
    const std::string flag =
        question.back().substr(0, question.back().find('='));
    // A command may take to use the flag; then it is no error.
    found.Expect(answer.exit_code == 2 && answer.Says(flag),
                 absl::StrCat(answer.question, " ignores ", flag,
                              ", exit code ", answer.exit_code));
  }
}

std::vector<std::string> BaselineTexts(const Json& gate, const char* field) {
  std::vector<std::string> texts;
  for (const Json& baseline : At(gate, "baselines")) {
    for (const Json& run : At(baseline, "runs")) {
      texts.push_back(TextOf(run, field));
    }
  }
  return texts;
}

void EveryNameOfACommitIsThatCommit(Workbench& bench, Findings& found) {
  Rng rng(17);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordCalmLine(bench, commits, &rng);
  bench.Git({"tag", "v1.0", commits[12]});
  for (const std::string& name :
       {std::string("HEAD~1"), commits[12], commits[12].substr(0, 12),
        std::string("v1.0")}) {
    const Answer gate =
        bench.AskJson({"gate", absl::StrCat("--candidate=", name)});
    found.Expect(AreAll(CandidateCommits(gate.Parsed()), commits[12]),
                 absl::StrCat("gate --candidate=", name,
                              " judged another commit: ", gate.err));
    found.Expect(bench.Ask({"show", name}).Says(commits[12].substr(0, 12)),
                 absl::StrCat("show ", name, " shows another commit"));
  }
}

void ATagAsBaselineIsItsCommit(Workbench& bench, Findings& found) {
  Rng rng(18);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  RecordCalmLine(bench, commits, &rng);
  bench.Git({"tag", "v1.0", commits[5]});
  const Json gate = bench.AskJson({"gate", "--baseline=tag:v1.0"}).Parsed();
  found.Expect(AreAll(BaselineTexts(gate, "commit"), commits[5]),
               "the baseline is not the commit of the tag");
  const Answer unknown = bench.Ask({"gate", "--baseline=tag:v9.9"});
  found.Expect(unknown.exit_code >= 2 && unknown.Says("v9.9"),
               "an unknown tag is taken for something");
}

// Nothing was measured: that is no wrong use, in git or outside of it.
void AnEmptyHistoryIsExit3(Workbench& bench, Findings& found) {
  for (const bool git : {false, true}) {
    if (git) {
      bench.InitGit();
      bench.Commit("not measured");
    }
    const Answer gate = bench.AskJson({"gate"});
    found.ExpectExit(gate, 3);
    found.Expect(TextOf(gate.Parsed(), "reason") == "no_candidate",
                 absl::StrCat("the reason is ", gate.out));
  }
}

void ABaselineThatIsTheCandidateIsNamed(Workbench& bench, Findings& found) {
  Rng rng(19);
  bench.InitGit();
  RecordCalmLine(bench, Commits(bench, 14), &rng);
  for (const char* baseline : {"commit:HEAD", "run:latest"}) {
    const Answer gate =
        bench.Ask({"gate", absl::StrCat("--baseline=", baseline)});
    found.ExpectExit(gate, 3);
    found.Expect(gate.Says("is the candidate itself"),
                 absl::StrCat(baseline, ": ", gate.out));
  }
}

void SuitesThatShareABenchmarkAreNotMixed(Workbench& bench, Findings& found) {
  Rng rng(19);
  bench.InitGit();
  const auto commits = Commits(bench, 14);
  for (size_t i = 0; i < commits.size(); ++i) {
    for (const char* suite : {"short", "long"}) {
      RunSpec spec = CalmSpec(commits, i);
      spec.suite = suite;
      if (std::string(suite) == "long") {
        spec.benchmarks = Slower(spec.benchmarks, -1, 3);
        spec.started_unix_ns += 60 * kSecondNs;
      }
      bench.Record(MakeRun(spec, &rng));
    }
  }
  for (const char* suite : {"short", "long"}) {
    const Answer answer =
        bench.AskJson({"gate", absl::StrCat("--suite=", suite)});
    found.ExpectExit(answer, 0);
    found.Expect(AreAll(BaselineTexts(answer.Parsed(), "suite"), suite),
                 absl::StrCat("a baseline of ", suite, " is of another suite"));
  }
  found.ExpectExit(bench.Ask({"gate"}), 0);
}

}  // namespace

std::vector<Case> CandidateCases() {
  return {
      {"GateJudgesTheHardwareThatItIsAskedAbout",
       GateJudgesTheHardwareThatItIsAskedAbout},
      {"GateOfTwoMachinesIsNeverGreenForTheSlowOne",
       GateOfTwoMachinesIsNeverGreenForTheSlowOne},
      {"HeadWithoutARunIsExit3", HeadWithoutARunIsExit3},
      {"HeadMeasuredByAClockThatIsBehindIsJudged",
       HeadMeasuredByAClockThatIsBehindIsJudged},
      {"HeadMeasuredByAClockThatIsAheadIsNotGreen",
       HeadMeasuredByAClockThatIsAheadIsNotGreen},
      {"EverySuiteOfTheCandidateIsJudged", EverySuiteOfTheCandidateIsJudged},
      {"AMissingSuiteIsNamedAndExit3", AMissingSuiteIsNamedAndExit3},
      {"CompareOfTwoMachinesNamesThem", CompareOfTwoMachinesNamesThem},
      {"AfterWatchLatestIsTheNewestCommit", AfterWatchLatestIsTheNewestCommit},
      {"AnOldCandidateIsJudgedByWhatWasBeforeIt",
       AnOldCandidateIsJudgedByWhatWasBeforeIt},
      {"ARunThatMeasuredNothingIsExit3", ARunThatMeasuredNothingIsExit3},
      {"AnUncommittedEditIsNamed", AnUncommittedEditIsNamed},
      {"ADirtyRunNeverStandsForTheCommit", ADirtyRunNeverStandsForTheCommit},
      {"OutsideGitLatestIsPrinted", OutsideGitLatestIsPrinted},
      {"EveryFormatOfTheGateHasOneExitCode",
       EveryFormatOfTheGateHasOneExitCode},
      {"FlagsThatACommandDoesNotUseAreErrors",
       FlagsThatACommandDoesNotUseAreErrors},
      {"EveryNameOfACommitIsThatCommit", EveryNameOfACommitIsThatCommit},
      {"ATagAsBaselineIsItsCommit", ATagAsBaselineIsItsCommit},
      {"AnEmptyHistoryIsExit3", AnEmptyHistoryIsExit3},
      {"ABaselineThatIsTheCandidateIsNamed",
       ABaselineThatIsTheCandidateIsNamed},
      {"SuitesThatShareABenchmarkAreNotMixed",
       SuitesThatShareABenchmarkAreNotMixed},
  };
}

}  // namespace optrail::agreement
