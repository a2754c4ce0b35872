// How a history in PostgreSQL holds up, on a server of its own that commits
// synchronously: 10^6 points of 5,001 series by default.
//
//   bazel run -c opt //tracker/history/postgres/evaluation:postgres_scale --
//       --commits=200 --seed=7 --optrail=/path/to/optrail
//
// Prints how many points a second were recorded, how long a series takes that
// is read over a new connection and over an open one, and how long all series
// take, on the clock and in processor time of this program and of the server.
// With --optrail, also how long the report of the history takes, with all
// series folded anew and from the folds that the first report kept.

#include <algorithm>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_server.h"

ABSL_FLAG(int, commits, 200, "Points of each series.");
ABSL_FLAG(int, benchmarks, 1667, "Series of each machine.");
ABSL_FLAG(int, machines, 3, "Machines, each with a run per commit.");
ABSL_FLAG(int, processes, 5, "Processes per run.");
ABSL_FLAG(int, samples, 20, "Samples per process.");
ABSL_FLAG(int, reads, 50, "Series that are read.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the history.");
ABSL_FLAG(std::string, optrail, "", "The program, to time its report.");

namespace optrail::tracker {
namespace {

double NowSeconds() {
  return static_cast<double>(Clock::Real()->NowNs()) * 1e-9;
}

// Seconds of the clock, and of processors: this program's and the server's.
struct Cost {
  double wall = 0, own = 0, server = 0;

  Cost operator-(const Cost& before) const {
    return {wall - before.wall, own - before.own, server - before.server};
  }
  void operator+=(const Cost& more) {
    wall += more.wall;
    own += more.own;
    server += more.server;
  }
};

Cost Now(const PostgresServer& server) {
  return {NowSeconds(), static_cast<double>(std::clock()) / CLOCKS_PER_SEC,
          server.ProcessorSeconds()};
}

// Returns what recording took, without making the runs.
absl::StatusOr<Cost> Import(const PostgresServer& server,
                            const History& history, int64_t* points) {
  GenerateOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.commits = absl::GetFlag(FLAGS_commits);
  options.benchmarks = absl::GetFlag(FLAGS_benchmarks);
  options.hardware = absl::GetFlag(FLAGS_machines);
  options.processes = absl::GetFlag(FLAGS_processes);
  options.samples = absl::GetFlag(FLAGS_samples);
  Cost cost;
  OPTRAIL_RETURN_IF_ERROR(
      GenerateRuns(options, [&](proto::Run run) -> absl::Status {
        *points += run.results_size();
        const Cost start = Now(server);
        OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
        cost += Now(server) - start;
        return absl::OkStatus();
      }));
  return cost;
}

void PrintReads(absl::string_view which, const std::vector<Cost>& reads) {
  std::vector<double> wall_ms;
  Cost all;
  for (const Cost& read : reads) {
    wall_ms.push_back(1e3 * read.wall);
    all += read;
  }
  const double each_ms = 1e3 / static_cast<double>(reads.size());
  std::cout << absl::StrFormat(
      "a series, over %s: median %.1f ms, worst %.1f ms; processor time %.1f "
      "ms, and %.1f ms of the server\n",
      which, Median(wall_ms), *std::max_element(wall_ms.begin(), wall_ms.end()),
      all.own * each_ms, all.server * each_ms);
}

absl::Status ReadSome(const PostgresServer& server, const History& history,
                      const std::vector<SeriesInfo>& series) {
  std::vector<Cost> fresh, open;
  for (int i = 0; i < absl::GetFlag(FLAGS_reads); ++i) {
    const std::string& text = series[i * 37 % series.size()].text;
    Cost start = Now(server);
    OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
    OPTRAIL_RETURN_IF_ERROR(index->ReadSeries(text).status());
    fresh.push_back(Now(server) - start);
    start = Now(server);
    OPTRAIL_RETURN_IF_ERROR(
        index->ReadSeries(series[(i * 37 + 11) % series.size()].text).status());
    open.push_back(Now(server) - start);
  }
  PrintReads("a new connection", fresh);
  PrintReads("an open one", open);
  return absl::OkStatus();
}

absl::Status TimeReport(absl::string_view which, const PostgresServer& server,
                        const std::string& url) {
  const Cost start = Now(server);
  OPTRAIL_ASSIGN_OR_RETURN(
      const CommandResult result,
      RunCommand({absl::GetFlag(FLAGS_optrail), "report", "--history=" + url,
                  absl::StrCat("--out=", server.folder(), "/report.html")}));
  const Cost cost = Now(server) - start;
  std::cout << absl::StrFormat(
                   "%s: %.1f s, processor time %.1f s, and %.1f s of the "
                   "server, %s\n",
                   which, cost.wall,
                   absl::ToDoubleSeconds(result.exit.cpu_time), cost.server,
                   result.exit.ToString())
            << std::flush;
  return result.exit.ok() ? absl::OkStatus()
                          : absl::InternalError(result.stderr_text);
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_reads) < 1) {
    return absl::InvalidArgumentError("--reads: expected at least 1");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const auto server, PostgresServer::Start());
  const std::string url = server->Url("postgres", "postgres");
  {
    OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(url));
    OPTRAIL_RETURN_IF_ERROR(InitHistorySchema(*db));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(url));
  int64_t points = 0;
  OPTRAIL_ASSIGN_OR_RETURN(const Cost cost, Import(*server, history, &points));
  std::cout << absl::StrFormat(
                   "%d points recorded in %.1f s: %.0f a second; processor "
                   "time %.1f s, and %.1f s of the server\n",
                   points, cost.wall, static_cast<double>(points) / cost.wall,
                   cost.own, cost.server)
            << std::flush;
  OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<SeriesInfo> series,
                           index->ListSeries());
  OPTRAIL_RETURN_IF_ERROR(ReadSome(*server, history, series));
  const Cost start = Now(*server);
  OPTRAIL_ASSIGN_OR_RETURN(const LoadedSeries loaded, LoadSeries(history));
  const Cost all = Now(*server) - start;
  std::cout << absl::StrFormat(
                   "all %d series: %.1f s, processor time %.1f s, and %.1f s "
                   "of the server\n",
                   loaded.series.size(), all.wall, all.own, all.server)
            << std::flush;
  if (absl::GetFlag(FLAGS_optrail).empty()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(TimeReport("first report", *server, url));
  return TimeReport("second report", *server, url);
}

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tracker::Main();
  if (!status.ok()) std::cerr << "postgres_scale: " << status.message() << "\n";
  return status.ok() ? 0 : absl::IsUnimplemented(status) ? 3 : 1;
}
