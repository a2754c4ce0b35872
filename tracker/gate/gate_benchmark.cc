// The gate on a long history:
//
//   bazel run //tracker/gate:gate_benchmark
//
// 2,000 runs of 500 benchmarks are 10^6 points. Writing them takes a while.

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "benchmark/benchmark.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"

namespace optrail::tracker {
namespace {

constexpr int kBenchmarks = 500;
constexpr int kProcesses = 5;
constexpr int64_t kStart = 1795000000LL * 1000000000;
constexpr int64_t kHour = 3600LL * 1000000000;

proto::Run MakeRun(int number, Rng& rng) {
  proto::Run run;
  run.set_started_unix_ns(kStart + number * kHour);
  run.set_run_id(NewRecordId(run.started_unix_ns()));
  run.set_suite("large");
  run.mutable_hardware()->set_id("test-2c");
  run.mutable_commit()->set_id(absl::StrCat(1000000 + number));
  run.mutable_commit()->set_branch("main");
  run.mutable_commit()->set_first_parent_position(number);
  for (int i = 0; i < kBenchmarks; ++i) {
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name(absl::StrCat("BM_", i));
    result->set_outcome(proto::OK);
    for (int process = 0; process < kProcesses; ++process) {
      result->add_measurements()->set_median_ns(1000 *
                                                std::exp(.01 * rng.Gaussian()));
    }
  }
  return run;
}

// The argument is the number of runs in the history.
void BM_Gate(benchmark::State& state) {
  std::string dir = "/tmp/gate_benchmark_XXXXXX";
  OPTRAIL_CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  const History history = *History::Open(dir);
  Rng rng(1);
  for (int i = 0; i < state.range(0); ++i) {
    OPTRAIL_CHECK(history.AppendRun(MakeRun(i, rng)).ok());
  }
  const Policy policy = Policy::Default();
  for (auto _ : state) {
    const auto report = Gate(history, policy, {});
    OPTRAIL_CHECK(report.ok()) << report.status();
    benchmark::DoNotOptimize(GateText(*report));
  }
  state.counters["points"] = static_cast<double>(state.range(0) * kBenchmarks);
  OPTRAIL_CHECK(std::system(absl::StrCat("rm -r ", dir).c_str()) == 0);
}
BENCHMARK(BM_Gate)->Arg(20)->Arg(2000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail::tracker
