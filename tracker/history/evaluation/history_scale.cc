// How a history holds up, in a folder or in a PostgreSQL server of its own that
// commits synchronously: 10^6 points of 5,001 series by default.
//
//   bazel run -c opt //tracker/history/evaluation:history_scale --
//       --dir=/path/to/new/history --commits=200 --seed=7
//   bazel run -c opt //tracker/history/evaluation:history_scale --
//       --postgres --commits=200 --seed=7 --optrail=/path/to/optrail
//
// Prints how many points a second were recorded, and, of a folder, taken in by
// the index, which is brought up to date every so many runs, as by an import
// that a report follows. PostgreSQL's index is never behind. Making the runs is
// not counted.
//
// Then it prints how long a series takes that is read over a new connection
// and over an open one, and how long all series take, on the clock and in
// processor time of this program and of the server; --reads=0 leaves that out.
// With --optrail, also how long the report of the history takes, with all
// series folded anew and from what the first report kept.

#include <algorithm>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_server.h"

ABSL_FLAG(std::string, dir, "", "Where the history is made.");
ABSL_FLAG(bool, postgres, false, "A server of its own instead of --dir.");
ABSL_FLAG(int, commits, 200, "Points of each series.");
ABSL_FLAG(int, benchmarks, 1667, "Series of each machine.");
ABSL_FLAG(int, machines, 3, "Machines, each with a run per commit.");
ABSL_FLAG(int, processes, 5, "Processes per run.");
ABSL_FLAG(int, samples, 20, "Samples per process.");
ABSL_FLAG(int, runs_per_update, 512,
          "Runs that the index of a folder takes in at once.");
ABSL_FLAG(int, reads, 50, "Series that are read.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the history.");
ABSL_FLAG(std::string, optrail, "", "The program, to time its report.");

namespace optrail::tracker {
namespace {

// Seconds of the clock, and of processors: this program's and the server's.
struct Cost {
  double wall = 0, own = 0, server = 0;

  Cost operator-(const Cost& before) const {
    return {wall - before.wall, own - before.own, server - before.server};
  }
  Cost& operator+=(const Cost& more) {
    wall += more.wall;
    own += more.own;
    server += more.server;
    return *this;
  }
};

class Scale {
 public:
  absl::Status Run() {
    OPTRAIL_RETURN_IF_ERROR(CheckFlags());
    OPTRAIL_RETURN_IF_ERROR(Prepare());
    OPTRAIL_ASSIGN_OR_RETURN(const History history, History::Open(place_));
    OPTRAIL_RETURN_IF_ERROR(Import(history));
    if (absl::GetFlag(FLAGS_reads) > 0) {
      OPTRAIL_RETURN_IF_ERROR(ReadSome(history));
      OPTRAIL_RETURN_IF_ERROR(ReadAll(history));
    }
    if (absl::GetFlag(FLAGS_optrail).empty()) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(TimeReport("first report"));
    return TimeReport("second report");
  }

 private:
  static absl::Status CheckFlags() {
    const std::pair<const char*, int> counts[] = {
        {"commits", absl::GetFlag(FLAGS_commits)},
        {"benchmarks", absl::GetFlag(FLAGS_benchmarks)},
        {"machines", absl::GetFlag(FLAGS_machines)},
        {"processes", absl::GetFlag(FLAGS_processes)},
        {"samples", absl::GetFlag(FLAGS_samples)},
        {"runs_per_update", absl::GetFlag(FLAGS_runs_per_update)}};
    for (const auto& [name, count] : counts) {
      if (count >= 1) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, "=", count, ": expected 1 or more"));
    }
    return absl::OkStatus();
  }

  Cost Now() const {
    return {static_cast<double>(Clock::Real()->NowNs()) * 1e-9,
            static_cast<double>(std::clock()) / CLOCKS_PER_SEC,
            server_ == nullptr ? 0 : server_->ProcessorSeconds()};
  }

  absl::Status Prepare() {
    place_ = absl::GetFlag(FLAGS_dir);
    if (!absl::GetFlag(FLAGS_postgres)) {
      if (place_.empty() || FileExists(JoinPath(place_, "runs"))) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--dir=", place_,
            ": expected a folder without a history, or --postgres"));
      }
      report_ = JoinPath(place_, "report.html");
      return CreateDirectories(place_);
    }
    if (!place_.empty()) {
      return absl::InvalidArgumentError(
          "--dir and --postgres: expected one of both");
    }
    OPTRAIL_ASSIGN_OR_RETURN(server_, PostgresServer::Start());
    place_ = server_->Url("postgres", "postgres");
    report_ = JoinPath(server_->folder(), "report.html");
    OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(place_));
    return InitHistorySchema(*db);
  }

  // Prints what recording took, without making the runs.
  absl::Status Import(const History& history) const {
    std::unique_ptr<HistoryIndex> index;  // of a folder
    if (server_ == nullptr) {
      OPTRAIL_ASSIGN_OR_RETURN(index, HistoryIndex::Open(history));
    }
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
      const Cost start = Now();
      const absl::Status status = index->Update().status();
      indexed += Now() - start;
      return status;
    };
    OPTRAIL_RETURN_IF_ERROR(
        GenerateRuns(options, [&](proto::Run run) -> absl::Status {
          points += run.results_size();
          const Cost start = Now();
          OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
          recorded += Now() - start;
          return ++runs % absl::GetFlag(FLAGS_runs_per_update) == 0 &&
                         index != nullptr
                     ? update()
                     : absl::OkStatus();
        }));
    std::cout << points << " points in " << runs << " runs\n";
    PrintRate("recorded", points, recorded);
    if (index == nullptr) return absl::OkStatus();
    OPTRAIL_RETURN_IF_ERROR(update());
    PrintRate("indexed", points, indexed);
    PrintRate("both", points, recorded += indexed);
    return absl::OkStatus();
  }

  std::string OfProcessors(const Cost& cost) const {
    return absl::StrCat(
        "processor time ", absl::StrFormat("%.1f s", cost.own),
        server_ == nullptr
            ? ""
            : absl::StrFormat(", and %.1f s of the server", cost.server));
  }

  void PrintRate(absl::string_view what, int64_t points,
                 const Cost& cost) const {
    const auto count = static_cast<double>(points);
    std::cout << absl::StrFormat(
                     "%s: %.1f s, %.0f points a second; %s, %.0f a second of "
                     "processor time\n",
                     what, cost.wall, count / cost.wall, OfProcessors(cost),
                     count / (cost.own + cost.server))
              << std::flush;
  }

  static void PrintReads(absl::string_view which,
                         const std::vector<Cost>& reads) {
    std::vector<double> wall_ms;
    Cost all;
    for (const Cost& read : reads) {
      wall_ms.push_back(1e3 * read.wall);
      all += read;
    }
    const double each_ms = 1e3 / static_cast<double>(reads.size());
    std::cout << absl::StrFormat(
        "a series, over %s: median %.1f ms, worst %.1f ms; processor time "
        "%.1f ms, and %.1f ms of the server\n",
        which, Median(wall_ms),
        *std::max_element(wall_ms.begin(), wall_ms.end()), all.own * each_ms,
        all.server * each_ms);
  }

  absl::Status ReadSome(const History& history) const {
    std::vector<SeriesInfo> series;
    {
      OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
      OPTRAIL_ASSIGN_OR_RETURN(series, index->ListSeries());
    }
    std::vector<Cost> fresh, open;
    for (int i = 0; i < absl::GetFlag(FLAGS_reads); ++i) {
      const std::string& text = series[i * 37 % series.size()].text;
      Cost start = Now();
      OPTRAIL_ASSIGN_OR_RETURN(const auto index, HistoryIndex::Open(history));
      OPTRAIL_RETURN_IF_ERROR(index->ReadSeries(text).status());
      fresh.push_back(Now() - start);
      start = Now();
      OPTRAIL_RETURN_IF_ERROR(
          index->ReadSeries(series[(i * 37 + 11) % series.size()].text)
              .status());
      open.push_back(Now() - start);
    }
    PrintReads("a new connection", fresh);
    PrintReads("an open one", open);
    return absl::OkStatus();
  }

  absl::Status ReadAll(const History& history) const {
    const Cost start = Now();
    OPTRAIL_ASSIGN_OR_RETURN(const LoadedSeries loaded, LoadSeries(history));
    const Cost all = Now() - start;
    std::cout << absl::StrFormat("all %d series: %.1f s, %s\n",
                                 loaded.series.size(), all.wall,
                                 OfProcessors(all))
              << std::flush;
    return absl::OkStatus();
  }

  absl::Status TimeReport(absl::string_view which) const {
    Cost cost = Now();
    OPTRAIL_ASSIGN_OR_RETURN(
        const CommandResult result,
        RunCommand({absl::GetFlag(FLAGS_optrail), "report",
                    "--history=" + place_, "--out=" + report_}));
    cost = Now() - cost;
    cost.own = absl::ToDoubleSeconds(result.exit.cpu_time);
    std::cout << absl::StrFormat("%s: %.1f s, %s, %s\n", which, cost.wall,
                                 OfProcessors(cost), result.exit.ToString())
              << std::flush;
    return result.exit.ok() ? absl::OkStatus()
                            : absl::InternalError(result.stderr_text);
  }

  std::unique_ptr<PostgresServer> server_;
  std::string place_, report_;
};

}  // namespace
}  // namespace optrail::tracker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::tracker::Scale().Run();
  if (!status.ok()) std::cerr << "history_scale: " << status.message() << "\n";
  return status.ok() ? 0 : absl::IsUnimplemented(status) ? 3 : 1;
}
