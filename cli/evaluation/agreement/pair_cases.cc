// Two sides have one verdict, whichever command is asked and whichever way
// they came in.

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

// A program that takes Google Benchmark's flags and reports seven repetitions:
// the fastest takes 1000 ns, the others `others`; the noise walks through a few
// per mille.
// `name` is in its text, so that no two programs are the same file.
std::string Program(const std::string& name, int others) {
  return absl::StrFormat(R"(#!/bin/sh
# %2$s
for argument; do
  case $argument in --benchmark_out=*) out=${argument#--benchmark_out=} ;; esac
done
count=0
[ -f "$0.count" ] && read count < "$0.count"
echo $((count + 1)) > "$0.count"
noise=$((count * 37 %% 7 - 3))
row() {
  echo "{\"name\": \"BM_x\", \"run_name\": \"BM_x\", \"run_type\": \"iteration\","
  echo " \"repetitions\": 7, \"repetition_index\": $2, \"threads\": 1,"
  echo " \"iterations\": 100, \"real_time\": $(($1 + noise)),"
  echo " \"cpu_time\": $(($1 + noise)), \"time_unit\": \"ns\"}$3"
}
{
  echo '{"context": {"date": "2026-01-02T09:08:07+00:00", "num_cpus": 2,'
  echo ' "mhz_per_cpu": 2000, "caches": []}, "benchmarks": ['
  row 1000 0 ,
  for i in 1 2 3 4 5; do row $((%1$d + i)) $i ,; done
  row %1$d 6
  echo ']}'
} > "$out"
)",
                         others, name);
}

// compare --binaries --record of two programs, then compare and gate of what
// was recorded.
void CheckRecordedPair(Workbench& bench, Findings& found, int others_a,
                       int others_b) {
  bench.InitGit();
  bench.Commit("programs");
  bench.Write("a", Program("a", others_a), /*executable=*/true);
  bench.Write("b", Program("b", others_b), /*executable=*/true);
  const Answer measured =
      bench.AskJson({"compare", "--binaries", "a", "b", "--record",
                     "--max_rounds=12", "--quiet"});
  const std::string verdict = VerdictOf(measured.Parsed(), "BM_x");
  found.Expect(!verdict.empty(),
               absl::StrCat("no verdict: ", measured.out, measured.err));
  const Answer latest = bench.AskJson({"compare", "latest~1", "latest"});
  found.Expect(VerdictOf(latest.Parsed(), "BM_x") == verdict,
               absl::StrCat("compare --binaries says ", verdict,
                            ", compare latest~1 latest says ",
                            VerdictOf(latest.Parsed(), "BM_x")));
  const double ratio = NumberOf(RowOf(measured.Parsed(), "BM_x"), "ratio");
  found.Expect(
      IsNear(NumberOf(RowOf(latest.Parsed(), "BM_x"), "ratio"), ratio, 1e-6),
      "compare latest~1 latest has another ratio");
  found.Expect(RunsOf(bench).size() == 2, "two runs are not recorded");
  const Answer gate =
      bench.AskJson({"gate", "--candidate=latest", "--baseline=run:latest~1"});
  const Json rows = At(gate.Parsed(), "rows");
  found.Expect(VerdictOf(rows, "BM_x") == verdict,
               absl::StrCat("compare --binaries says ", verdict,
                            ", the gate says ", VerdictOf(rows, "BM_x")));
}

void EqualFastestSamplesAndSlowerOthersHaveOneVerdict(Workbench& bench,
                                                      Findings& found) {
  CheckRecordedPair(bench, found, 1020, 1122);
}

void ARecordedPairOfSlowerProgramsHasOneVerdict(Workbench& bench,
                                                Findings& found) {
  CheckRecordedPair(bench, found, 1020, 1300);
}

void ARecordedPairOfEqualProgramsHasOneVerdict(Workbench& bench,
                                               Findings& found) {
  CheckRecordedPair(bench, found, 1020, 1020);
}

void CompareAndGateAgreeOnTwoRuns(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(bench, 21, [](RunSpec& spec, int, bool last) {
    if (last) {
      spec.benchmarks = Slower(spec.benchmarks, 1, 1.2);
      spec.benchmarks = Slower(spec.benchmarks, 2, .8);
    }
  });
  const Json compare = bench.AskJson({"compare", runs[12], runs[13]}).Parsed();
  const Json gate =
      bench
          .AskJson({"gate", absl::StrCat("--candidate=", runs[13]),
                    absl::StrCat("--baseline=run:", runs[12])})
          .Parsed();
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const std::string a = VerdictOf(compare, name);
    const std::string b = VerdictOf(At(gate, "rows"), name);
    found.Expect(!a.empty() && a == b, absl::StrCat(name, ": compare says '", a,
                                                    "', gate says '", b, "'"));
  }
}

void SidesThatAreSwappedHaveTheOppositeVerdict(Workbench& bench,
                                               Findings& found) {
  const auto runs = RecordLine(bench, 22, [](RunSpec& spec, int, bool last) {
    if (!last) return;
    spec.benchmarks = Slower(spec.benchmarks, 0, 1.25);
    spec.benchmarks = Slower(spec.benchmarks, 1, .8);
  });
  const Json there = bench.AskJson({"compare", runs[12], runs[13]}).Parsed();
  const Json back = bench.AskJson({"compare", runs[13], runs[12]}).Parsed();
  const auto opposite = [](const std::string& verdict) {
    return verdict == "slower"   ? "faster"
           : verdict == "faster" ? "slower"
                                 : verdict;
  };
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const double product = NumberOf(RowOf(there, name), "ratio") *
                           NumberOf(RowOf(back, name), "ratio");
    found.Expect(std::abs(product - 1) < .01,
                 absl::StrCat(name, ": ratio times its inverse is ", product));
    const std::string a = VerdictOf(there, name), b = VerdictOf(back, name);
    const bool told = a == "slower" || a == "faster";
    found.Expect(!told || b == opposite(a),
                 absl::StrCat(name, ": ", a, " one way, ", b, " the other"));
  }
}

void ARunIsWhatItIsBesideItself(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(bench, 23, nullptr);
  const Answer answer = bench.AskJson({"compare", runs[5], runs[5]});
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const std::string verdict = VerdictOf(answer.Parsed(), name);
    found.Expect(verdict != "slower" && verdict != "faster",
                 absl::StrCat(name, " is ", verdict, " than itself"));
  }
}

void UnchangedExcludesWhatItSaysItExcludes(Workbench& bench, Findings& found) {
  // Two processes that are far apart, once, and no history.
  Rng rng(24);
  for (int i = 0; i < 2; ++i) {
    RunSpec spec;
    spec.commit = MadeCommit(i + 1);
    spec.position = i + 1;
    spec.started_unix_ns = kStartNs + i * kHourNs;
    spec.processes = 3;
    spec.process_noise = .2;
    spec.benchmarks = Benchmarks(6);
    bench.Record(MakeRun(spec, &rng));
  }
  const Json rows = bench.AskJson({"compare", "latest~1", "latest"}).Parsed();
  for (const Json& row : rows) {
    if (TextOf(row, "verdict") != "unchanged") continue;
    const std::string name = TextOf(row, "benchmark");
    const double detectable = NumberOf(row, "detectable");
    found.Expect(!(detectable > .10),
                 absl::StrCat(name, " is unchanged, and ", detectable,
                              " is the smallest change that would be found"));
    found.Expect(std::abs(std::log(NumberOf(row, "ratio"))) < .1,
                 absl::StrCat(name, " is unchanged at a ratio of ",
                              NumberOf(row, "ratio")));
  }
}

void ShowAndCompareHaveOneNumberForOneRun(Workbench& bench, Findings& found) {
  // A busy machine: the median is well above the fastest sample.
  const auto runs = RecordLine(bench, 25, [](RunSpec& spec, int, bool) {
    for (MadeBenchmark& benchmark : spec.benchmarks) {
      benchmark.sample_shape = {1,    1.03, 1.04, 1.05, 1.05,
                                1.06, 1.06, 1.07, 1.09, 1.2};
    }
  });
  const Json shown = bench.AskJson({"show", runs[13]}).Parsed();
  const Json rows = bench.AskJson({"compare", runs[12], runs[13]}).Parsed();
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("BM_", i);
    const double a = NumberOf(RowOf(shown, name), "value");
    const double b = NumberOf(RowOf(rows, name), "candidate");
    found.Expect(IsNear(a, b, .005), absl::StrCat(name, ": show prints ", a,
                                                  " ns, compare ", b, " ns"));
  }
}

void NineOfTenSamplesTwiceAsSlowAreNamed(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(bench, 26, [](RunSpec& spec, int, bool last) {
    if (!last) return;
    spec.benchmarks[1].sample_shape = {1, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  });
  const Json compare = bench.AskJson({"compare", runs[12], runs[13]}).Parsed();
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  const Json gate_rows = At(gate.Parsed(), "rows");
  const std::string a = VerdictOf(compare, "BM_1");
  const std::string b = VerdictOf(gate_rows, "BM_1");
  found.Expect(absl::StrContains(a, "slower"),
               absl::StrCat("compare says ", a));
  found.Expect(absl::StrContains(b, "slower"),
               absl::StrCat("the gate says ", b));
}

// 1 to 3% of drift between runs, no calibration loops, ten benchmarks.
std::vector<std::string> RecordDrift(Workbench& bench, uint64_t seed,
                                     double drift, int changed, double factor) {
  Rng drifts(seed);
  return RecordLine(
      bench, seed,
      [&](RunSpec& spec, int, bool last) {
        spec.machine = drift * drifts.Gaussian();
        if (!last) return;
        for (int i = 0; i < changed; ++i) {
          spec.benchmarks = Slower(spec.benchmarks, i, factor);
        }
      },
      14, 10);
}

void SixOfTenSlowerIsNeverGreen(Workbench& bench, Findings& found) {
  for (const double drift : {.01, .02, .03}) {
    for (uint64_t seed = 31; seed < 34; ++seed) {
      bench.Delete(".optrail");
      RecordDrift(bench, seed, drift, 6, 1.08);
      const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
      found.Expect(gate.exit_code != 0,
                   absl::StrCat("drift ", drift, ", seed ", seed,
                                ": green with six of ten 8% slower"));
    }
  }
}

void NineOfTenFasterLeaveTheTenthUnchanged(Workbench& bench, Findings& found) {
  for (const double drift : {.01, .02, .03}) {
    for (uint64_t seed = 34; seed < 37; ++seed) {
      bench.Delete(".optrail");
      RecordDrift(bench, seed, drift, 9, .9);
      const Json gate = bench.AskJson({"gate", "--candidate=latest"}).Parsed();
      const Json row = RowOf(At(gate, "rows"), "BM_9");
      found.Expect(TextOf(row, "verdict") != "slower",
                   absl::StrCat("drift ", drift, ", seed ", seed,
                                ": the untouched benchmark is slower"));
    }
  }
}

void AMetricThatIsBetterTheHigherHasOneVerdict(Workbench& bench,
                                               Findings& found) {
  const auto runs = RecordLine(bench, 37, [](RunSpec& spec, int, bool last) {
    spec.has_rate = true;
    if (last) spec.benchmarks = Slower(spec.benchmarks, 1, 1.25);
  });
  const Json rows =
      bench.AskJson({"compare", runs[12], runs[13], "--metric=.*"}).Parsed();
  std::map<std::string, std::string> verdicts;
  for (const Json& row : rows) {
    if (TextOf(row, "benchmark") == "BM_1") {
      verdicts[TextOf(row, "metric")] = TextOf(row, "verdict");
    }
  }
  found.Expect(verdicts["time"] == "slower", "time is " + verdicts["time"]);
  found.Expect(verdicts["items_per_second"] == verdicts["time"],
               "items_per_second is " + verdicts["items_per_second"]);
}

void FilesCompareAsTheRunsImportedFromThem(Workbench& bench, Findings& found) {
  bench.InitGit();
  Rng rng(38);
  std::vector<std::string> files[2];
  for (int side = 0; side < 2; ++side) {
    bench.Commit(absl::StrCat("side ", side));
    std::vector<std::string> import = {"import", "--files_are_processes"};
    for (int i = 0; i < 5; ++i) {
      const std::string name = absl::StrCat("side", side, "_", i, ".json");
      const double noise = std::exp(.003 * rng.Gaussian());
      bench.Write(
          name,
          GoogleBenchmarkText(
              {{"BM_a", {1000 * noise, 1004 * noise, 1010 * noise}},
               {"BM_b",
                {(side ? 1300 : 1000) * noise, (side ? 1310 : 1005) * noise}}},
              absl::StrCat("2026-01-0", side + 2, "T09:08:0", i, "+00:00")));
      files[side].push_back(name);
      import.push_back(name);
    }
    found.ExpectExit(bench.Ask(import), 0);
  }
  const Json of_files = bench
                            .AskJson({"compare", absl::StrJoin(files[0], ","),
                                      absl::StrJoin(files[1], ",")})
                            .Parsed();
  const Json of_runs = bench.AskJson({"compare", "HEAD~1", "HEAD"}).Parsed();
  for (const char* name : {"BM_a", "BM_b"}) {
    found.Expect(!VerdictOf(of_files, name).empty() &&
                     VerdictOf(of_files, name) == VerdictOf(of_runs, name),
                 absl::StrCat(name, ": files ", VerdictOf(of_files, name),
                              ", runs ", VerdictOf(of_runs, name)));
  }
}

// Retention keeps the medians of old runs and forgets their samples: what is
// left must not read as another speed.
void AThinnedBaselineIsNoChangeOfSpeed(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(
      bench, 39,
      [](RunSpec& spec, int, bool last) {
        for (MadeBenchmark& benchmark : spec.benchmarks) {
          benchmark.sample_shape = {1,    1.08, 1.09, 1.1,  1.1,
                                    1.11, 1.11, 1.12, 1.15, 1.2};
        }
        if (last) spec.benchmarks = Slower(spec.benchmarks, 1, 1.08);
      },
      24);
  const Answer before = bench.AskJson({"gate", "--candidate=latest"});
  found.ExpectExit(before, 1);
  found.ExpectExit(
      bench.Ask({"history", "thin", "--keep_runs=1", "--keep_days=0"}), 0);
  const Answer after = bench.AskJson({"gate", "--candidate=latest"});
  found.ExpectExitIsNot(after, 0);
  const Json gate = after.Parsed();
  if (!gate.is_object()) return found.Expect(false, "no JSON");
  for (const Json& row : At(gate, "rows")) {
    found.Expect(TextOf(row, "verdict") != "faster",
                 absl::StrCat(TextOf(row, "name"),
                              " is faster since its baseline was thinned"));
  }
  const Json rows = bench.AskJson({"compare", runs[22], runs[23]}).Parsed();
  for (const char* name : {"BM_0", "BM_2", "BM_3"}) {
    found.Expect(VerdictOf(rows, name) != "faster",
                 absl::StrCat("compare: ", name,
                              " is faster than what was "
                              "thinned"));
  }
}

void HardwareIsNeverComparedWithOther(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(bench, 40, [](RunSpec& spec, int, bool last) {
    if (last) spec.hardware = "intel-icelake-8c";
  });
  found.ExpectExit(bench.Ask({"compare", runs[12], runs[13]}), 3);
  const Answer gate = bench.Ask({"gate", absl::StrCat("--candidate=", runs[13]),
                                 absl::StrCat("--baseline=run:", runs[12])});
  found.ExpectExitIsNot(gate, 0);
  found.ExpectExitIsNot(gate, 1);
}

void SuitesWithNothingInCommonCannotTell(Workbench& bench, Findings& found) {
  const auto runs = RecordLine(bench, 41, [](RunSpec& spec, int, bool last) {
    if (!last) return;
    spec.suite = "another";
    for (MadeBenchmark& benchmark : spec.benchmarks) benchmark.name += "_2";
  });
  const Answer compare = bench.Ask({"compare", runs[12], runs[13]});
  found.ExpectExitIsNot(compare, 0);
  // A suite that one side lacks is missing, for `gate` as well.
  for (const char* command : {"compare", "gate"}) {
    std::vector<std::string> ask = {command, "--suite=another"};
    if (absl::string_view(command) == "compare") {
      ask.insert(ask.end(), {runs[12], runs[13]});
    } else {
      ask.push_back("--candidate=" + runs[12]);
    }
    found.ExpectExit(bench.Ask(ask), 3);
  }
}

}  // namespace

std::vector<Case> PairCases() {
  return {
      {"EqualFastestSamplesAndSlowerOthersHaveOneVerdict",
       EqualFastestSamplesAndSlowerOthersHaveOneVerdict},
      {"ARecordedPairOfSlowerProgramsHasOneVerdict",
       ARecordedPairOfSlowerProgramsHasOneVerdict},
      {"ARecordedPairOfEqualProgramsHasOneVerdict",
       ARecordedPairOfEqualProgramsHasOneVerdict},
      {"CompareAndGateAgreeOnTwoRuns", CompareAndGateAgreeOnTwoRuns},
      {"SidesThatAreSwappedHaveTheOppositeVerdict",
       SidesThatAreSwappedHaveTheOppositeVerdict},
      {"ARunIsWhatItIsBesideItself", ARunIsWhatItIsBesideItself},
      {"UnchangedExcludesWhatItSaysItExcludes",
       UnchangedExcludesWhatItSaysItExcludes},
      {"ShowAndCompareHaveOneNumberForOneRun",
       ShowAndCompareHaveOneNumberForOneRun},
      {"NineOfTenSamplesTwiceAsSlowAreNamed",
       NineOfTenSamplesTwiceAsSlowAreNamed},
      {"SixOfTenSlowerIsNeverGreen", SixOfTenSlowerIsNeverGreen},
      {"NineOfTenFasterLeaveTheTenthUnchanged",
       NineOfTenFasterLeaveTheTenthUnchanged},
      {"AMetricThatIsBetterTheHigherHasOneVerdict",
       AMetricThatIsBetterTheHigherHasOneVerdict},
      {"FilesCompareAsTheRunsImportedFromThem",
       FilesCompareAsTheRunsImportedFromThem},
      {"AThinnedBaselineIsNoChangeOfSpeed", AThinnedBaselineIsNoChangeOfSpeed},
      {"HardwareIsNeverComparedWithOther", HardwareIsNeverComparedWithOther},
      {"SuitesWithNothingInCommonCannotTell",
       SuitesWithNothingInCommonCannotTell},
  };
}

}  // namespace optrail::agreement
