// A row's numbers, the runs that it names and its sentence do not contradict
// each other.

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

// Both sides of a pair have one start time; rounds that one side lacks are of
// no pair.
void PairsAreJudgedAsPairsByBoth(Workbench& bench, Findings& found) {
  Rng rng(42);
  Rng rounds(43);
  proto::Run sides[2];
  for (int side = 0; side < 2; ++side) {
    RunSpec spec;
    spec.commit = MadeCommit(side + 1);
    spec.position = side + 1;
    spec.started_unix_ns = kStartNs;
    spec.pairing_id = "pair-1";
    spec.processes = side == 0 ? 12 : 9;
    spec.benchmarks = Benchmarks(4);
    if (side == 1) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
    sides[side] = MakeRun(spec, &rng);
  }
  // The machine drifts by 20% from round to round, for both sides alike.
  for (int round = 0; round < 12; ++round) {
    const double machine = std::exp(.2 * rounds.Gaussian());
    for (proto::Run& run : sides) {
      for (proto::BenchmarkResult& result : *run.mutable_results()) {
        if (round >= result.measurements_size()) continue;
        for (int64_t& sample :
             *result.mutable_measurements(round)->mutable_sample_ns()) {
          sample = std::llround(sample * machine);
        }
      }
    }
  }
  const std::string a = bench.Record(sides[0]);
  const std::string b = bench.Record(sides[1]);
  const Json compare = bench.AskJson({"compare", a, b}).Parsed();
  const Json gate = bench
                        .AskJson({"gate", absl::StrCat("--candidate=", b),
                                  absl::StrCat("--baseline=run:", a)})
                        .Parsed();
  const Json latest = bench.AskJson({"compare", "latest~1", "latest"}).Parsed();
  found.Expect(VerdictOf(compare, "BM_1") == "slower",
               "compare says " + VerdictOf(compare, "BM_1"));
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const std::string verdict = VerdictOf(compare, name);
    const std::string of_gate = VerdictOf(At(gate, "rows"), name);
    found.Expect(of_gate == verdict,
                 absl::StrCat(name, ": compare says ", verdict, ", gate says ",
                              of_gate));
    found.Expect(VerdictOf(latest, name) == verdict,
                 absl::StrCat(name, ": compare by id says ", verdict,
                              ", compare latest~1 latest says ",
                              VerdictOf(latest, name)));
  }
}

// Somebody measured both commits apart as well: the pairs still decide.
void PairsBesideRunsMeasuredApartAreJudgedAsPairs(Workbench& bench,
                                                  Findings& found) {
  Rng rng(44);
  std::vector<std::string> ids;
  for (const bool in_pairs : {true, false}) {
    Rng rounds(45);
    for (int side = 0; side < 2; ++side) {
      RunSpec spec;
      spec.commit = MadeCommit(side + 1);
      spec.position = side + 1;
      spec.started_unix_ns =
          kStartNs + side * kHourNs + (in_pairs ? 0 : kSecondNs);
      spec.pairing_id = in_pairs ? "pair-1" : "";
      spec.processes = in_pairs ? 12 : 5;
      spec.benchmarks = Benchmarks(4);
      if (side == 1) spec.benchmarks = Slower(spec.benchmarks, 1, 1.1);
      // Apart, the machine is 30% slower for the first side.
      spec.machine = in_pairs || side == 1 ? 0 : .26;
      ids.push_back(bench.Record(MakeRun(spec, &rng)));
    }
  }
  const Json of_runs = bench.AskJson({"compare", ids[0], ids[1]}).Parsed();
  const Answer answer = bench.Ask({"compare", MadeCommit(1), MadeCommit(2)});
  const Json of_commits =
      bench.AskJson({"compare", MadeCommit(1), MadeCommit(2)}).Parsed();
  const Json gate =
      bench
          .AskJson({"gate", absl::StrCat("--candidate=", MadeCommit(2)),
                    absl::StrCat("--baseline=commit:", MadeCommit(1))})
          .Parsed();
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const std::string verdict = VerdictOf(of_runs, name);
    found.Expect(VerdictOf(of_commits, name) == verdict &&
                     VerdictOf(At(gate, "rows"), name) == verdict,
                 absl::StrCat(name, ": the pair is ", verdict,
                              ", compare of the commits says ",
                              VerdictOf(of_commits, name), ", the gate ",
                              VerdictOf(At(gate, "rows"), name)));
  }
  found.Expect(answer.Says(ids[2]) && answer.Says("left out"),
               "the runs that are left out are not named");
}

// The fastest samples became 5% slower, the others twice as fast.
void ARowSaysWhereMediansAndFastestSamplesMoveApart(Workbench& bench,
                                                    Findings& found) {
  const auto runs = RecordLine(bench, 46, [](RunSpec& spec, int, bool last) {
    spec.benchmarks[1].sample_shape = {1, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    if (!last) return;
    spec.benchmarks[1].sample_shape = {1.05, 1.05, 1.05, 1.05, 1.05};
  });
  const Json row =
      RowOf(bench.AskJson({"compare", runs[12], runs[13]}).Parsed(), "BM_1");
  found.Expect(NumberOf(row, "ratio") > 1 &&
                   NumberOf(row, "candidate") < NumberOf(row, "baseline"),
               "the history does not show what the case is about");
  found.Expect(absl::StrContains(TextOf(row, "why"), "medians fall by 4"),
               absl::StrCat("compare says ", TextOf(row, "why")));
  const Json judged =
      RowOf(At(bench.AskJson({"gate", "--candidate=latest"}).Parsed(), "rows"),
            "BM_1");
  found.Expect(absl::StrContains(TextOf(judged, "reason"), "medians fall by 4"),
               absl::StrCat("the gate says ", TextOf(judged, "reason")));
}

void CountsOfZeroAreCompared(Workbench& bench, Findings& found) {
  bench.InitGit();
  for (int i = 0; i < 8; ++i) {
    bench.Commit(absl::StrCat("change ", i));
    std::vector<std::string> import = {"import", "--files_are_processes",
                                       "--suite=s", "--hardware=m"};
    for (int p = 0; p < 3; ++p) {
      const std::string name = absl::StrCat("r", i, "_", p, ".csv");
      bench.Write(name, absl::StrCat("name,value,unit,metric\nBM_a,",
                                     i < 7 ? 0 : 4, ",1,allocs\nBM_a,",
                                     1000 + 10 * i + p, ",ns,time\n"));
      import.push_back(name);
    }
    found.ExpectExit(bench.Ask(import), 0);
  }
  const auto verdict = [&](const std::string& from, const std::string& to) {
    return VerdictOf(
        bench.AskJson({"compare", from, to, "--metric=allocs"}).Parsed(),
        "BM_a");
  };
  for (const auto& [from, to, expected] :
       {std::make_tuple("HEAD~2", "HEAD~1", "unchanged"),
        std::make_tuple("HEAD~1", "HEAD", "slower"),
        std::make_tuple("HEAD", "HEAD~1", "faster")}) {
    found.Expect(verdict(from, to) == expected,
                 absl::StrCat(from, " to ", to, " is ", verdict(from, to)));
  }
  found.ExpectExit(bench.Ask({"gate", "--metric=allocs"}), 1);
  found.ExpectExit(bench.Ask({"gate", "--metric=allocs", "--candidate=HEAD~1"}),
                   0);
}

constexpr char kProgram[] = R"(#!/bin/sh
cat <<END
{"context": {"date": "2026-01-02T09:08:07+00:00", "num_cpus": 2,
 "mhz_per_cpu": 2000, "caches": []}, "benchmarks": [{"name": "BM_x",
 "run_name": "BM_x", "run_type": "iteration", "repetitions": 1,
 "repetition_index": 0, "threads": 1, "iterations": 100,
 "real_time": $(cat time), "cpu_time": 1000, "time_unit": "ns"}]}
END
)";

void RowsOfAMeasuredGateNameTheRecordedRuns(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Write("program", kProgram, /*executable=*/true);
  for (const int time : {1000, 1300}) {
    bench.Write("time", absl::StrCat(time));
    bench.Git({"add", "program", "time"});
    bench.Commit(absl::StrCat("takes ", time));
  }
  const Answer gate =
      bench.AskJson({"gate", "--build=true", "--run=./program", "--record",
                     "--baseline=commit:HEAD~1", "--max_rounds=5", "--quiet"});
  found.ExpectExit(gate, 1);
  std::set<std::string> recorded, named;
  for (const proto::Run& run : RunsOf(bench)) recorded.insert(run.run_id());
  for (const Json& row : At(gate.Parsed(), "rows")) {
    for (const char* side : {"baseline", "candidate"}) {
      for (const Json& id : At(At(row, side), "run_ids")) {
        named.insert(id.get<std::string>());
      }
    }
  }
  found.Expect(
      recorded.size() == 2 && named == recorded,
      absl::StrCat("the rows name runs that are not recorded: ", gate.out));
}

// Noise that hides everything: no row may be FAIL in one format and UNCLEAR in
// another.
void EveryFormatOfTheGateHasOneAction(Workbench& bench, Findings& found) {
  RecordLine(bench, 47,
             [](RunSpec& spec, int, bool) { spec.process_noise = .5; });
  const Answer answer = bench.AskJson({"gate", "--candidate=latest"});
  const Json gate = answer.Parsed();
  found.ExpectExit(answer, 3);
  const Answer csv = bench.Ask({"gate", "--candidate=latest", "--format=csv"});
  int unclear = 0;
  for (const Json& row : At(gate, "rows")) {
    const std::string action = TextOf(row, "action");
    unclear += action == "RERUN" || action == "UNCLEAR";
    const std::string line =
        absl::StrCat("\n", action == "IGNORE" ? "" : action, ",",
                     TextOf(row, "verdict"), ",", TextOf(row, "name"), ",");
    found.Expect(absl::StrContains(csv.out, line),
                 absl::StrCat("JSON says ", action, " of ", TextOf(row, "name"),
                              ", CSV says:\n", csv.out));
  }
  found.Expect(unclear > 0 && NumberOf(gate, "cannot_tell") == unclear,
               absl::StrCat("cannot_tell is ", NumberOf(gate, "cannot_tell"),
                            ", the rows have ", unclear));
}

}  // namespace

std::vector<Case> RowCases() {
  return {
      {"EveryFormatOfTheGateHasOneAction", EveryFormatOfTheGateHasOneAction},
      {"PairsAreJudgedAsPairsByBoth", PairsAreJudgedAsPairsByBoth},
      {"PairsBesideRunsMeasuredApartAreJudgedAsPairs",
       PairsBesideRunsMeasuredApartAreJudgedAsPairs},
      {"ARowSaysWhereMediansAndFastestSamplesMoveApart",
       ARowSaysWhereMediansAndFastestSamplesMoveApart},
      {"CountsOfZeroAreCompared", CountsOfZeroAreCompared},
      {"RowsOfAMeasuredGateNameTheRecordedRuns",
       RowsOfAMeasuredGateNameTheRecordedRuns},
  };
}

}  // namespace optrail::agreement
