// How fast a folder takes in runs: each is recorded (written, synced, renamed)
// and the index brought up to date every so many runs, as by an import that a
// report follows. 10^6 points of 5,001 series by default.
//
//   bazel run -c opt //tracker/history/evaluation:import_scale --
//       --dir=/path/to/new/history --commits=200 --seed=7
//
// Prints points a second, on the clock and of processor time, of both. Making
// the runs is not counted. The twin for PostgreSQL, where recording brings the
// index up to date, is postgres/evaluation/postgres_scale.cc.

#include <ctime>
#include <iostream>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"

ABSL_FLAG(std::string, dir, "", "Where the history is made.");
ABSL_FLAG(int, commits, 200, "Points of each series.");
ABSL_FLAG(int, benchmarks, 1667, "Series of each machine.");
ABSL_FLAG(int, machines, 3, "Machines, each with a run per commit.");
ABSL_FLAG(int, processes, 5, "Processes per run.");
ABSL_FLAG(int, samples, 20, "Samples per process.");
ABSL_FLAG(int, runs_per_update, 512, "Runs that the index takes in at once.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the history.");

namespace optrail::tracker {
namespace {

struct Cost {
  double wall_s = 0, cpu_s = 0;

  static Cost Now() {
    return {static_cast<double>(Clock::Real()->NowNs()) * 1e-9,
            static_cast<double>(std::clock()) / CLOCKS_PER_SEC};
  }
  void AddSince(const Cost& start) {
    const Cost now = Now();
    wall_s += now.wall_s - start.wall_s;
    cpu_s += now.cpu_s - start.cpu_s;
  }
};

void Print(absl::string_view what, int64_t points, const Cost& cost) {
  const auto count = static_cast<double>(points);
  std::cout << absl::StrFormat(
                   "%s: %.1f s, %.0f points a second; processor time %.1f s, "
                   "%.0f a second\n",
                   what, cost.wall_s, count / cost.wall_s, cost.cpu_s,
                   count / cost.cpu_s)
            << std::flush;
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_dir).empty() ||
      FileExists(JoinPath(absl::GetFlag(FLAGS_dir), "runs"))) {
    return absl::InvalidArgumentError(
        "--dir: expected a folder without a history");
  }
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(absl::GetFlag(FLAGS_dir)));
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(absl::GetFlag(FLAGS_dir)));
  OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
  GenerateOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.commits = absl::GetFlag(FLAGS_commits);
  options.benchmarks = absl::GetFlag(FLAGS_benchmarks);
  options.hardware = absl::GetFlag(FLAGS_machines);
  options.processes = absl::GetFlag(FLAGS_processes);
  options.samples = absl::GetFlag(FLAGS_samples);
  Cost recorded, indexed;
  int64_t points = 0, runs = 0;
  const auto update = [&] {
    const Cost start = Cost::Now();
    const absl::Status status = index->Update().status();
    indexed.AddSince(start);
    return status;
  };
  OPTRAIL_RETURN_IF_ERROR(
      GenerateRuns(options, [&](proto::Run run) -> absl::Status {
        points += run.results_size();
        const Cost start = Cost::Now();
        OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
        recorded.AddSince(start);
        return ++runs % absl::GetFlag(FLAGS_runs_per_update) == 0
                   ? update()
                   : absl::OkStatus();
      }));
  OPTRAIL_RETURN_IF_ERROR(update());
  std::cout << points << " points in " << runs << " runs\n";
  Print("recorded", points, recorded);
  Print("indexed", points, indexed);
  recorded.wall_s += indexed.wall_s;
  recorded.cpu_s += indexed.cpu_s;
  Print("both", points, recorded);
  return absl::OkStatus();
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tracker::Main();
  if (!status.ok()) std::cerr << "import_scale: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
