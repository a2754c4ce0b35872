// How the index holds up: 10^6 values of 5,000 series on 3 machines by default.
//
//   bazel run -c opt //tracker/history/index:index_benchmark
//   bazel run -c opt //tracker/history/index:index_benchmark -- --commits=20
//
// The history is made once, in a temporary folder or in --dir, where a later
// run finds it. Every figure is of a warm page cache.

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/text/units.h"
#include "benchmark/benchmark.h"
#include "tracker/gate/gate.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/retention.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/judge.h"
#include "tracker/triage/triage.h"

ABSL_FLAG(std::string, dir, "", "Where the history is, or is made.");
ABSL_FLAG(int, commits, 200, "Commits, each with a run per machine.");
ABSL_FLAG(int, benchmarks, 1667, "Benchmarks per machine.");
ABSL_FLAG(int, machines, 3, "Machines.");
ABSL_FLAG(int, processes, 5, "Processes per run.");
ABSL_FLAG(int, samples, 20, "Samples per process.");

namespace optrail::tracker {
namespace {

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  OPTRAIL_CHECK(value.ok()) << value.status();
  return *std::move(value);
}

struct Fixture {
  std::unique_ptr<History> history;
  std::unique_ptr<HistoryIndex> index;
  std::vector<SeriesInfo> series;
};
Fixture* fixture = nullptr;

int64_t BytesBelow(const std::string& dir) {
  int64_t bytes = 0;
  for (const std::string& path : OrDie(ListRecursively(dir, ""))) {
    FileInfo info;
    if (FileSystem::Real()->Stat(path, &info) == 0) bytes += info.size_bytes;
  }
  return bytes;
}

// The processor time of the whole process: the figure of an idle machine.
double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double SecondsSince(int64_t start_ns) {
  return static_cast<double>(Clock::Real()->NowNs() - start_ns) * 1e-9;
}

void SetUp() {
  fixture = new Fixture;
  std::string dir = absl::GetFlag(FLAGS_dir);
  if (dir.empty()) {
    const char* tmp = std::getenv("TMPDIR");
    dir = std::string(tmp == nullptr ? "/tmp" : tmp) + "/index_XXXXXX";
    OPTRAIL_CHECK(mkdtemp(dir.data()) != nullptr);
  }
  fixture->history = std::make_unique<History>(OrDie(History::Open(dir)));
  if (!FileExists(JoinPath(dir, "runs"))) {
    GenerateOptions options;
    options.commits = absl::GetFlag(FLAGS_commits);
    options.benchmarks = absl::GetFlag(FLAGS_benchmarks);
    options.hardware = absl::GetFlag(FLAGS_machines);
    options.processes = absl::GetFlag(FLAGS_processes);
    options.samples = absl::GetFlag(FLAGS_samples);
    const absl::Status made = GenerateHistory(options, *fixture->history);
    OPTRAIL_CHECK(made.ok()) << made;
  }
  fixture->index = OrDie(HistoryIndex::Open(*fixture->history));
  const int64_t start_ns = Clock::Real()->NowNs();
  const double start_cpu_s = CpuSeconds();
  (void)OrDie(fixture->index->Rebuild());
  const double cpu_s = CpuSeconds() - start_cpu_s;
  const double rebuilt_s = SecondsSince(start_ns);
  fixture->series = OrDie(fixture->index->ListSeries());
  int64_t values = 0;
  for (const SeriesInfo& info : fixture->series) values += info.runs;
  FileInfo file;
  OPTRAIL_CHECK(FileSystem::Real()->Stat(fixture->index->path(), &file) == 0);
  std::cout << "history " << dir << ": " << values << " values, "
            << fixture->series.size() << " series, "
            << OrDie(fixture->index->ListRuns()).runs.size() << " runs\n"
            << "files " << FormatBytes(BytesBelow(JoinPath(dir, "runs")))
            << ", index " << FormatBytes(file.size_bytes) << "\n"
            << "index rebuilt in " << rebuilt_s << " s (" << cpu_s
            << " s of processor time)\n";
  RetentionPolicy policy;
  policy.keep_days = 0;
  const RetentionPlan plan = OrDie(PlanRetention(
      *fixture->history, policy, int64_t{4'000'000'000} * 1'000'000'000));
  std::cout << "thinning all but the newest " << policy.keep_runs << " runs of "
            << "each machine: " << FormatBytes(plan.bytes_before) << " become "
            << FormatBytes(plan.bytes_after) << "\n";
}

// Opening an index that is up to date: what every command pays.
void BM_Open(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(HistoryIndex::Open(*fixture->history)));
  }
}
BENCHMARK(BM_Open)->Unit(benchmark::kMillisecond);

// One series with a fresh index: the headers of its runs, too, are read.
void BM_OpenAndReadSeries(benchmark::State& state) {
  size_t i = 0;
  for (auto _ : state) {
    auto index = OrDie(HistoryIndex::Open(*fixture->history));
    benchmark::DoNotOptimize(OrDie(index->ReadSeries(
        fixture->series[i++ * 37 % fixture->series.size()].text)));
  }
}
BENCHMARK(BM_OpenAndReadSeries)->Unit(benchmark::kMillisecond);

void BM_ReadSeries(benchmark::State& state) {
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(fixture->index->ReadSeries(
        fixture->series[i++ * 37 % fixture->series.size()].text)));
  }
}
BENCHMARK(BM_ReadSeries)->Unit(benchmark::kMillisecond);

// 500 benchmarks with their whole history.
void BM_Read500Series(benchmark::State& state) {
  for (auto _ : state) {
    for (size_t i = 0; i < 500; ++i) {
      benchmark::DoNotOptimize(OrDie(fixture->index->ReadSeries(
          fixture->series[i % fixture->series.size()].text)));
    }
  }
}
BENCHMARK(BM_Read500Series)->Unit(benchmark::kMillisecond);

void BM_ListSeries(benchmark::State& state) {
  SeriesFilter filter;
  filter.pattern = "softmax";
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(fixture->index->ListSeries(filter)));
  }
}
BENCHMARK(BM_ListSeries)->Unit(benchmark::kMillisecond);

// The gate on the latest run, with and without the index.
void BM_Gate(benchmark::State& state) {
  const bool indexed = state.range(0) != 0;
  const Policy policy = Policy::Default();
  GateOptions options;
  options.now_unix_s = 1'800'000'000;
  size_t rows = 0;
  for (auto _ : state) {
    const History history =
        indexed ? OrDie(OpenIndexedHistory(fixture->history->dir()))
                : *fixture->history;
    rows = OrDie(Gate(history, policy, options)).rows.size();
  }
  state.counters["benchmarks"] = static_cast<double>(rows);
}
BENCHMARK(BM_Gate)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2);

// All series, as `optrail changes` and `optrail report` read them.
void BM_LoadSeries(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(OrDie(LoadSeries(*fixture->history)));
  }
}
BENCHMARK(BM_LoadSeries)->Unit(benchmark::kMillisecond)->Iterations(1);

// Judging all of them, as `changes` and `report` do: afresh, from folds that
// the index keeps, and where each series has one point that was not folded yet.
enum class Folds { kNone, kKept, kButForOne };
void BM_Judge(benchmark::State& state) {
  const Folds with = static_cast<Folds>(state.range(0));
  const LoadedSeries loaded = OrDie(LoadSeries(*fixture->history));
  const TriageBook book({}, 0);
  std::unordered_map<std::string, std::string> kept;
  if (with != Folds::kNone) {
    std::vector<Series> before = loaded.series;
    for (Series& series : before) {
      if (with == Folds::kButForOne) series.points.pop_back();
    }
    FoldMemory first({});
    JudgeOptions options;
    options.folds = &first;
    (void)JudgeAll(before, book, options);
    kept = {first.changed().begin(), first.changed().end()};
  }
  for (auto _ : state) {
    FoldMemory folds(kept);
    JudgeOptions options;
    if (with != Folds::kNone) options.folds = &folds;
    benchmark::DoNotOptimize(JudgeAll(loaded.series, book, options));
  }
}
BENCHMARK(BM_Judge)
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->Iterations(1);

// The same from the files, as without an index.
void BM_ScanFiles(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        BuildSeries(OrDie(fixture->history->LoadRuns()).runs));
  }
}
BENCHMARK(BM_ScanFiles)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  optrail::tracker::SetUp();
  benchmark::RunSpecifiedBenchmarks();
}
