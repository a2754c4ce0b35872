// What is recorded, imported, merged and kept: the same evidence gives the same
// answers, and counts once.

#include <unistd.h>

#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

std::vector<proto::Run> StepRuns(int commits, uint64_t seed, int step_at) {
  Rng rng(seed);
  return MakeRuns(
      commits,
      [&](int position) {
        RunSpec spec;
        spec.benchmarks = Benchmarks(3);
        if (position >= step_at) {
          spec.benchmarks = Slower(spec.benchmarks, 1, 1.25);
        }
        return spec;
      },
      &rng);
}

// Answers that must not depend on how the history came to be.
std::vector<Answer> AskEverything(const Workbench& bench) {
  return {
      bench.AskJson({"compare", "latest~1", "latest"}),
      bench.AskJson({"gate", "--candidate=latest"}),
      bench.AskJson({"changes", "--min_effect=0", "--metric=.*"}),
      bench.AskJson({"log", "runs", "--limit=0"}),
      bench.AskJson({"log", "series"}),
      bench.AskJson({"show", "latest"}),
      bench.Ask({"history", "export", "--out=-"}),
      bench.Ask({"report", "--report_format=json", "--out=-", "--title=t"}),
  };
}

void ExpectSame(const std::vector<Answer>& a, const std::vector<Answer>& b,
                absl::string_view what, Findings& found) {
  for (size_t i = 0; i < a.size(); ++i) {
    found.Expect(a[i].exit_code == b[i].exit_code && a[i].out == b[i].out,
                 absl::StrCat(a[i].question, " answers otherwise ", what, ":\n",
                              a[i].out.substr(0, 400), "\n---\n",
                              b[i].out.substr(0, 400)));
  }
}

void TheOrderOfMergingDoesNotMatter(Workbench& bench, Findings& found) {
  const std::vector<proto::Run> runs = StepRuns(40, 71, 25);
  for (const proto::Run& run : runs) bench.Record(run);
  const auto in_order = AskEverything(bench);
  Rng rng(72);
  std::vector<proto::Run> shuffled = runs;
  rng.Shuffle(shuffled);
  bench.Delete(".optrail");
  const tracker::History others[] = {
      *tracker::History::Open(bench.Path("one")),
      *tracker::History::Open(bench.Path("two"))};
  for (size_t i = 0; i < shuffled.size(); ++i) {
    found.Expect(others[i % 2].AppendRun(shuffled[i]).ok(), "cannot record");
  }
  found.ExpectExit(bench.Ask({"history", "merge", "two"}), 0);
  found.ExpectExit(bench.Ask({"history", "merge", "one"}), 0);
  found.ExpectExit(bench.Ask({"history", "merge", "two"}), 0);
  ExpectSame(in_order, AskEverything(bench), "of a merged history", found);
}

void TheIndexAnswersAsTheFilesDo(Workbench& bench, Findings& found) {
  for (const proto::Run& run : StepRuns(110, 73, 60)) bench.Record(run);
  found.ExpectExit(bench.Ask({"history", "index", "--rebuild"}), 0);
  const auto indexed = AskEverything(bench);
  // A reader who cannot write finds no index, or a wrong one.
  bench.Delete(".optrail/history/index.sqlite");
  bench.Write(".optrail/history/index.sqlite", "no database");
  ExpectSame(indexed, AskEverything(bench), "with a damaged index", found);
}

void ARunOfTheFutureIsNeverTheLatest(Workbench& bench, Findings& found) {
  std::vector<proto::Run> runs = StepRuns(20, 74, 99);
  for (const proto::Run& run : runs) bench.Record(run);
  const std::string latest = runs.back().run_id();
  Rng rng(75);
  RunSpec spec;
  spec.benchmarks = Slower(Benchmarks(3), -1, 3);
  spec.started_unix_ns = 7'226'582'400 * kSecondNs;  // 2199
  const std::string future = bench.Record(MakeRun(spec, &rng));
  found.Expect(bench.Ask({"show", "latest"}).Says(latest),
               "show latest is the run of the future");
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  const Json parsed = gate.Parsed();
  if (!parsed.is_object()) return found.Expect(false, gate.err);
  for (const Json& run : At(parsed, "candidate_runs")) {
    found.Expect(TextOf(run, "run_id") == latest,
                 "gate latest is the run of the future");
  }
  // A note may name it.
  const Answer compare = bench.Ask({"compare", "latest~1", "latest"});
  for (const absl::string_view line : absl::StrSplit(compare.out, '\n')) {
    found.Expect(
        absl::StartsWith(line, "note") || !absl::StrContains(line, future),
        "compare takes it for the latest");
  }
}

void ADamagedRecordIsNamedByAll(Workbench& bench, Findings& found) {
  const std::vector<proto::Run> runs = StepRuns(20, 76, 99);
  for (const proto::Run& run : runs) bench.Record(run);
  const std::string name = "20260101T053000Z-0123456789ab.pb";
  bench.Write(absl::StrCat(".optrail/history/runs/2026/", name), "damaged");
  for (const std::vector<std::string>& question :
       std::vector<std::vector<std::string>>{
           {"changes"},
           {"log", "runs"},
           {"gate", "--candidate=latest"},
           {"report", "--report_format=json", "--out=-"},
           {"show", "BM_0"},
           {"history", "verify"}}) {
    const Answer answer = bench.Ask(question);
    found.Expect(
        answer.Says(name.substr(0, 16)),
        absl::StrCat(answer.question, " does not name the damaged file"));
  }
  // The newest one of all may be the one that matters.
  bench.Write(".optrail/history/runs/2026/20260601T053000Z-0123456789ac.pb",
              "damaged");
  found.ExpectExit(bench.Ask({"gate", "--candidate=latest"}), 3);
}

std::string SomeResults(double level, int minute) {
  return GoogleBenchmarkText(
      {{"BM_a", {level, level * 1.002, level * 1.001}}},
      absl::StrFormat("2026-01-02T09:%02d:00+00:00", minute));
}

void FilesImportedBySeveralAtOnceAreOneRun(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("measured");
  for (int i = 0; i < 3; ++i) {
    bench.Write(absl::StrCat("r", i, ".json"), SomeResults(1000 + i, i));
  }
  std::vector<std::thread> importers;
  for (int i = 0; i < 6; ++i) {
    importers.emplace_back([&bench] {
      bench.Ask(
          {"import", "--files_are_processes", "r0.json", "r1.json", "r2.json"});
    });
  }
  for (std::thread& importer : importers) importer.join();
  found.Expect(
      RunsOf(bench).size() == 1,
      absl::StrCat("the same files are ", RunsOf(bench).size(), " runs"));
}

void ImportingAgainIsTheSameRun(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("measured");
  bench.Write("r.json", SomeResults(1000, 0));
  bench.Write("copy.json", SomeResults(1000, 0));
  found.ExpectExit(bench.Ask({"import", "r.json"}), 0);
  found.ExpectExit(bench.Ask({"import", "copy.json"}), 0);
  found.Expect(RunsOf(bench).size() == 1, "a copy is evidence of its own");
}

// A program that is not affected by the change, or a deterministic counter,
// gives the very same file at two commits.
void AnIdenticalFileNeverMakesTheGateJudgeTheOlderCommit(Workbench& bench,
                                                         Findings& found) {
  bench.InitGit();
  for (int i = 0; i < 12; ++i) {
    bench.Commit(absl::StrCat("change ", i));
    for (int p = 0; p < 5; ++p) {
      bench.Write(absl::StrCat("r", p, ".json"),
                  SomeResults(1000 + i % 3 + p, 5 * i + p));
    }
    bench.Ask({"import", "--files_are_processes", "r0.json", "r1.json",
               "r2.json", "r3.json", "r4.json"});
  }
  const std::string head = bench.Commit("the same results");
  bench.Ask({"import", "--files_are_processes", "r0.json", "r1.json", "r2.json",
             "r3.json", "r4.json"});
  const Answer gate = bench.AskJson({"gate"});
  for (const std::string& commit : CandidateCommits(gate.Parsed())) {
    found.Expect(commit == head,
                 absl::StrCat("judged ", commit, " in place of HEAD"));
  }
  found.Expect(
      gate.exit_code == 3 || AreAll(CandidateCommits(gate.Parsed()), head),
      absl::StrCat("exit code ", gate.exit_code, ": ", gate.out));
}

void ProcessesWithIdenticalValuesAreProcesses(Workbench& bench,
                                              Findings& found) {
  bench.InitGit();
  bench.Commit("counted");
  for (int i = 0; i < 3; ++i) {
    bench.Write(absl::StrCat("r", i, ".csv"),
                "name,value,unit,metric\nBM_a,4242,1,instructions\n");
  }
  const Answer import = bench.Ask(
      {"import", "--files_are_processes", "r0.csv", "r1.csv", "r2.csv"});
  found.ExpectExit(import, 0);
  const auto runs = RunsOf(bench);
  found.Expect(runs.size() == 1 && runs[0].results_size() == 1 &&
                   runs[0].results(0).measurements_size() == 3,
               "three processes that count the same are not three processes");
}

void ThinKeepsTheCommitOfATag(Workbench& bench, Findings& found) {
  bench.InitGit();
  Rng rng(77);
  const auto commits = Commits(bench, 20);
  RecordCalmLine(bench, commits, &rng);
  bench.Git({"tag", "v1.0", commits[3]});
  const Answer thin = bench.Ask({"history", "thin", "--keep_runs=1",
                                 "--keep_days=0", "--keep_commits=v1.0"});
  if (thin.exit_code == 2) return;  // it says that it knows no tags
  found.ExpectExit(thin, 0);
  for (const proto::Run& run : RunsOf(bench)) {
    if (run.commit().id() != commits[3]) continue;
    found.Expect(run.results(0).measurements(0).sample_ns_size() > 0,
                 "the samples of the tagged commit are gone");
  }
  found.ExpectExit(bench.Ask({"history", "thin", "--keep_runs=1",
                              "--keep_days=0", "--keep_commits=no-such-tag"}),
                   2);
}

// A program that takes Google Benchmark's flags or none, and prints.
constexpr char kProgram[] = R"(#!/bin/sh
cat <<END
{"context": {"date": "2026-01-02T09:08:07+00:00", "num_cpus": 2,
 "mhz_per_cpu": 2000, "caches": []}, "benchmarks": [{"name": "BM_x",
 "run_name": "BM_x", "run_type": "iteration", "repetitions": 1,
 "repetition_index": 0, "threads": 1, "iterations": 100,
 "real_time": $(cat time), "cpu_time": 1000, "time_unit": "ns"}]}
END
)";

void WatchRecordsWhatGateAndShowThenCallLatest(Workbench& bench,
                                               Findings& found) {
  bench.InitGit();
  bench.Write("program", kProgram, /*executable=*/true);
  std::string head;
  for (int i = 0; i < 8; ++i) {
    bench.Write("time", absl::StrCat(i == 7 ? 2000 : 1000 + i));
    bench.Git({"add", "program", "time"});
    head = bench.Commit(absl::StrCat("change ", i));
  }
  const Answer watch =
      bench.Ask({"watch", "HEAD~7..", "--build=true", "--run=./program"});
  found.Expect(!RunsOf(bench).empty(),
               absl::StrCat("watch recorded nothing: ", watch.out, watch.err));
  found.Expect(bench.Ask({"show", "latest"}).Says(head.substr(0, 12)),
               "show latest is not HEAD");
  const Answer gate = bench.AskJson({"gate"});
  found.ExpectExitIsNot(gate, 0);
  for (const std::string& commit : CandidateCommits(gate.Parsed())) {
    found.Expect(commit == head, "the gate judged an older commit");
  }
  for (const proto::Run& run : RunsOf(bench)) {
    found.Expect(!run.commit().dirty(), "a run of watch is with changes");
  }
}

// Where .gitignore lacks .optrail/, the files of the first run are no edit.
void OurOwnFilesAreNoUncommittedEdit(Workbench& bench, Findings& found) {
  bench.Git({"init", "--quiet", "--initial-branch=main"});
  bench.Write("program", kProgram, /*executable=*/true);
  bench.Write("time", "1000");
  bench.Git({"add", "program", "time"});
  bench.Commit("first");
  // Before and after there are records.
  bench.Ask({"bench", "--op=add", "--record", "--processes=1",
             "--benchmark_filter=^$"});
  for (int i = 0; i < 2; ++i) {
    bench.Write("../r.json", SomeResults(1000 + i, i));
    bench.Ask({"import", "../r.json"});
  }
  const Answer gate = bench.Ask({"gate"});
  found.Expect(
      !gate.Says("uncommitted") && !gate.Says("work tree has"),
      absl::StrCat("our own files are called an edit: ", gate.out, gate.err));
  for (const proto::Run& run : RunsOf(bench)) {
    found.Expect(!run.commit().dirty(), "a run is with changes");
  }
}

void OneMachineHasOneId(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Write("program", kProgram, /*executable=*/true);
  bench.Write("time", "1000");
  bench.Git({"add", "program", "time"});
  bench.Commit("first");
  char host[256] = "host";
  gethostname(host, sizeof host - 1);
  Json file = Json::parse(SomeResults(1000, 0));
  file["context"]["host_name"] = host;
  file["context"]["num_cpus"] = sysconf(_SC_NPROCESSORS_ONLN);
  bench.Write("r.json", file.dump());
  bench.Write("r.csv", "name,value,unit\nBM_a,4242,ns\n");
  bench.Ask({"import", "r.json"});
  bench.Ask({"import", "r.csv"});
  bench.Ask({"watch", "HEAD", "--build=true", "--run=./program"});
  std::set<std::string> ids;
  for (const proto::Run& run : RunsOf(bench)) ids.insert(run.hardware().id());
  std::string all;
  for (const std::string& id : ids) absl::StrAppend(&all, " ", id);
  found.Expect(ids.size() == 1, absl::StrCat("one machine has the ids", all));
}

void UnitsAreOneScale(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("ns");
  bench.Write("a.csv", "name,value,unit\nBM_a,4200,ns\n");
  found.ExpectExit(bench.Ask({"import", "--suite=s", "--hardware=m", "a.csv"}),
                   0);
  bench.Commit("us");
  bench.Write("b.csv", "name,value,unit\nBM_a,4.2,us\n");
  found.ExpectExit(bench.Ask({"import", "--suite=s", "--hardware=m", "b.csv"}),
                   0);
  const Json points = bench.AskJson({"show", "BM_a|time|ns|m|main"}).Parsed();
  found.Expect(
      points.is_array() && points.size() == 2 &&
          IsNear(NumberOf(points[0], "value"), NumberOf(points[1], "value")),
      absl::StrCat("4200 ns and 4.2 us differ: ", points.dump()));
}

void AFileIsTheRunThatWasImportedFromIt(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("measured");
  std::vector<std::string> import = {"import", "--files_are_processes"};
  std::string files;
  for (int i = 0; i < 5; ++i) {
    const std::string name = absl::StrCat("r", i, ".json");
    bench.Write(name, SomeResults(1000 + i, i));
    import.push_back(name);
    absl::StrAppend(&files, i == 0 ? "" : ",", name);
  }
  found.ExpectExit(bench.Ask(import), 0);
  const Answer answer = bench.AskJson({"compare", "latest", files});
  const Json row = RowWith(answer.Parsed(), "benchmark", "BM_a");
  found.Expect(IsNear(NumberOf(row, "ratio"), 1, 1e-6),
               absl::StrCat("a file differs from the run imported from it: ",
                            answer.out, answer.err));
}

}  // namespace

std::vector<Case> RecordCases() {
  return {
      {"TheOrderOfMergingDoesNotMatter", TheOrderOfMergingDoesNotMatter},
      {"TheIndexAnswersAsTheFilesDo", TheIndexAnswersAsTheFilesDo},
      {"ARunOfTheFutureIsNeverTheLatest", ARunOfTheFutureIsNeverTheLatest},
      {"ADamagedRecordIsNamedByAll", ADamagedRecordIsNamedByAll},
      {"FilesImportedBySeveralAtOnceAreOneRun",
       FilesImportedBySeveralAtOnceAreOneRun},
      {"ImportingAgainIsTheSameRun", ImportingAgainIsTheSameRun},
      {"AnIdenticalFileNeverMakesTheGateJudgeTheOlderCommit",
       AnIdenticalFileNeverMakesTheGateJudgeTheOlderCommit},
      {"ProcessesWithIdenticalValuesAreProcesses",
       ProcessesWithIdenticalValuesAreProcesses},
      {"ThinKeepsTheCommitOfATag", ThinKeepsTheCommitOfATag},
      {"WatchRecordsWhatGateAndShowThenCallLatest",
       WatchRecordsWhatGateAndShowThenCallLatest},
      {"OurOwnFilesAreNoUncommittedEdit", OurOwnFilesAreNoUncommittedEdit},
      {"OneMachineHasOneId", OneMachineHasOneId},
      {"UnitsAreOneScale", UnitsAreOneScale},
      {"AFileIsTheRunThatWasImportedFromIt",
       AFileIsTheRunThatWasImportedFromIt},
  };
}

}  // namespace optrail::agreement
