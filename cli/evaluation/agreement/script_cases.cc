// What scripts and the bench say: ci/gate.sh, ci/nightly.sh, commands that the
// gate runs, and numbers that the bench prints.

#include <map>
#include <string>

#include "absl/strings/str_format.h"
#include "cli/evaluation/agreement/cases.h"

namespace optrail::agreement {
namespace {

// Takes what the scripts pass to `optrail bench` and `optrail suite`: writes
// results of four benchmarks, of which the file `slow` of the work tree slows
// BM_2 (percent), or imports them where there is no --benchmark_out.
constexpr char kPlantedBench[] = R"(#!/bin/sh
out=; list=; history=; filter=.
for argument; do
  case $argument in
    --benchmark_out=*) out=${argument#--benchmark_out=} ;;
    --benchmark_list_tests) list=1 ;;
    --benchmark_filter=*) filter=${argument#--benchmark_filter=} ;;
    --history=*) history=$argument ;;
    --no_such_flag) echo "error: --no_such_flag" >&2; exit 2 ;;
  esac
done
[ -z "$list" ] || exit 0
slow=0
[ ! -f slow ] || read slow <slow
mkdir -p .optrail
count=0
[ ! -f .optrail/count ] || read count <.optrail/count
process() {
  count=$((count + 1))
  echo '{"context": {"num_cpus": 2, "mhz_per_cpu": 2000, "caches": []},'
  echo ' "benchmarks": ['
  comma=
  for i in 1 2 3 4; do
    echo "BM_$i" | grep -qE "$filter" || continue
    [ $i -eq 2 ] && percent=$slow || percent=0
    level=$((100000 * i * (100 + percent) / 100))
    for sample in 1 2 3 4 5; do
      ns=$((level + i * ((count * 37 + i * 11) % 7 * 30 + sample * 10)))
      echo "$comma{\"name\": \"BM_$i\", \"run_name\": \"BM_$i\","
      echo "\"run_type\": \"iteration\", \"repetitions\": 5, \"threads\": 1,"
      echo "\"repetition_index\": $((sample - 1)), \"iterations\": 100,"
      echo "\"real_time\": $ns, \"cpu_time\": $ns, \"time_unit\": \"ns\"}"
      comma=,
    done
  done
  echo ']}'
}
if [ -n "$out" ]; then
  process >"$out"
else
  for p in 1 2 3 4 5; do
    process >.optrail/process_$p.json
  done
  "$REAL_OPTRAIL" import --files_are_processes --suite=smoke "$history" \
    .optrail/process_[1-5].json >&2 || exit 2
fi
echo $count >.optrail/count
)";

// A project whose builds take no time: its `optrail` measures by kPlantedBench
// and judges with the real one.
void MakeProject(Workbench& bench) {
  bench.Write(
      "bazelw",
      absl::StrFormat(R"(#!/bin/sh
[ "$1" = build ] || exit 0
mkdir -p bazel-bin/cli
cat >bazel-bin/cli/optrail <<'END'
#!/bin/sh
REAL_OPTRAIL='%s'
export REAL_OPTRAIL
case $1 in bench | suite) shift; exec '%s' "$@" ;; esac
exec "$REAL_OPTRAIL" "$@"
END
chmod +x bazel-bin/cli/optrail
)",
                      bench.optrail(), bench.Path(".git/planted_bench")),
      /*executable=*/true);
  bench.Write(".git/planted_bench", kPlantedBench, /*executable=*/true);
  bench.Write("ci/policy.textproto", "# the defaults\n");
  bench.Write(".gitignore", "bazel-bin\n.optrail\n");
}

std::string CommitAll(Workbench& bench, absl::string_view subject) {
  bench.Git({"add", "-A"});
  return bench.Commit(subject);
}

void GateShSaysWhatItsVerdictSays(Workbench& bench, Findings& found) {
  bench.InitGit();
  MakeProject(bench);
  CommitAll(bench, "base");
  bench.Git({"checkout", "--quiet", "-b", "head"});
  const std::string script = bench.Source("ci/gate.sh");
  const auto gate = [&](int expected) {
    const Answer answer = bench.Run({script, "main"});
    found.ExpectExit(answer, expected);
    return answer;
  };
  bench.Write("readme", "words\n");
  CommitAll(bench, "nothing that matters");
  const Answer same = gate(0);
  const Json verdict = bench.ReadJson(".optrail/verdict.json");
  found.Expect(NumberOf(verdict, "exit_code") == 0 &&
                   same.Says(TextOf(verdict, "summary")),
               "gate.sh and its verdict differ");
  bench.Write("slow", "10\n");
  const std::string head = CommitAll(bench, "slower");
  const Answer slow = gate(1);
  const Json red = bench.ReadJson(".optrail/verdict.json");
  found.Expect(NumberOf(red, "exit_code") == 1, "the verdict is not red");
  const Json row = RowWith(At(red, "rows"), "name", "BM_2");
  found.Expect(TextOf(row, "verdict") == "slower" && slow.Says("BM_2"),
               "gate.sh does not name BM_2");
  found.Expect(TextOf(At(row, "candidate"), "commit") == head,
               "the red row is of another commit than HEAD");
}

void NightlyShSaysWhatTheGateSays(Workbench& bench, Findings& found) {
  bench.InitGit();
  MakeProject(bench);
  const std::string script = bench.Source("ci/nightly.sh");
  const std::string history = bench.Path(".optrail/nights");
  for (int night = 1; night <= 7; ++night) {
    bench.Write("readme", absl::StrCat(night, "\n"));
    if (night == 7) bench.Write("slow", "15\n");
    const std::string commit = CommitAll(bench, absl::StrCat("night ", night));
    const Answer script_says =
        bench.Run({script, history, bench.Path(".optrail/report.html")});
    const Answer gate =
        bench.AskJson({"gate", absl::StrCat("--history=", history), "--looks=3",
                       absl::StrCat("--candidate=", commit)});
    const bool no_past = TextOf(gate.Parsed(), "reason") == "no_baseline";
    found.Expect(no_past == (night <= 5),
                 absl::StrCat("night ", night, ": the gate's reason is ",
                              TextOf(gate.Parsed(), "reason")));
    found.ExpectExit(script_says, no_past ? 0 : gate.exit_code);
    found.ExpectExit(gate, no_past ? 3 : night == 7 ? 1 : 0);
  }
}

// Its results are of another commit than the one that is asked about.
void ARunCommandThatMovesHeadIsRefused(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("base");
  bench.Commit("head");
  const Answer answer =
      bench.Ask({"gate",
                 "--run=git checkout --quiet HEAD~0 && git commit --quiet "
                 "--allow-empty -m moved && echo name,value && echo BM_a,1",
                 "--baseline=commit:HEAD~1", "--max_rounds=5", "--quiet"});
  found.ExpectExit(answer, 2);
  found.Expect(answer.Says("moved HEAD"), "it does not say that HEAD moved");
  found.Expect(RunsOf(bench).empty(), "something was recorded");
}

// The config was tuned with another kernel than the one that ran.
void ATunedConfigOfAnotherKernelIsNamed(Workbench& bench, Findings& found) {
  Rng rng(71);
  for (int position = 1; position <= 8; ++position) {
    RunSpec spec;
    spec.commit = MadeCommit(position);
    spec.position = position;
    spec.started_unix_ns = kStartNs + position * kHourNs;
    spec.benchmarks = Benchmarks(3);
    proto::Run run = MakeRun(spec, &rng);
    for (proto::BenchmarkResult& result : *run.mutable_results()) {
      result.set_kernel_id(position == 8 ? "kernel_b" : "kernel_a");
      if (position < 8) continue;
      result.add_labels("unverified config: tuned with kernel kernel_a");
    }
    bench.Record(std::move(run));
  }
  const Answer gate = bench.AskJson({"gate", "--candidate=latest"});
  found.Expect(gate.Says("unverified config"),
               "the gate does not name the config of another kernel");
  for (const Json& row : At(gate.Parsed(), "rows")) {
    found.Expect(TextOf(At(row, "candidate"), "kernel_id") == "kernel_b" &&
                     TextOf(At(row, "baseline"), "kernel_id") == "kernel_a",
                 "a row has other kernel ids than its runs");
  }
}

// The numbers of one run, from the bench's own output on.
void BenchShowAndCompareHaveOneNumber(Workbench& bench, Findings& found) {
  bench.InitGit();
  bench.Commit("bench");
  const Answer measured = bench.Ask(
      {"bench", "--op=add", "--shape=n=4096/f32", "--select=default",
       "--processes=2", "--record", "--quiet", "--benchmark_format=json"});
  found.ExpectExitIsNot(measured, 2);
  const auto runs = RunsOf(bench);
  if (runs.size() != 1) return found.Expect(false, "no run is recorded");
  std::map<std::string, double> shown;
  for (const Json& row : bench.AskJson({"show", "latest"}).Parsed()) {
    if (TextOf(row, "metric") == "time") {
      shown[TextOf(row, "benchmark")] = NumberOf(row, "value");
    }
  }
  found.Expect(!shown.empty(), "show has no time");
  for (const Json& row :
       bench.AskJson({"compare", "latest", "latest"}).Parsed()) {
    const double value = shown[TextOf(row, "benchmark")];
    found.Expect(IsNear(NumberOf(row, "baseline"), value) &&
                     IsNear(NumberOf(row, "candidate"), value),
                 absl::StrCat("compare prints ", NumberOf(row, "candidate"),
                              ", show ", value));
  }
  int printed = 0;
  for (const Json& row : At(measured.Parsed(), "benchmarks")) {
    if (TextOf(row, "aggregate_name") != "median") continue;
    ++printed;
    const auto value = shown.find(TextOf(row, "run_name"));
    found.Expect(value != shown.end() &&
                     IsNear(NumberOf(row, "real_time"), value->second, 1e-3),
                 absl::StrCat(TextOf(row, "run_name"), ": bench prints ",
                              NumberOf(row, "real_time"), " ",
                              TextOf(row, "time_unit")));
  }
  found.Expect(printed > 0, "bench prints no median");
}

}  // namespace

std::vector<Case> ScriptCases() {
  return {
      {"GateShSaysWhatItsVerdictSays", GateShSaysWhatItsVerdictSays},
      {"NightlyShSaysWhatTheGateSays", NightlyShSaysWhatTheGateSays},
      {"ARunCommandThatMovesHeadIsRefused", ARunCommandThatMovesHeadIsRefused},
      {"ATunedConfigOfAnotherKernelIsNamed",
       ATunedConfigOfAnotherKernelIsNamed},
      {"BenchShowAndCompareHaveOneNumber", BenchShowAndCompareHaveOneNumber},
  };
}

}  // namespace optrail::agreement
