// How many tasks a second simulated pilots claim and complete at a PostgreSQL
// server of their own, which commits synchronously:
//
//   bazel run //fleet/evaluation:claims -- --pilots=1000 --connections=32
//   bazel run //fleet/evaluation:claims -- --pilots=1000 --pgbouncer
//
// Pilots share connections; with --pgbouncer each has one of its own to
// pgbouncer, which shares 32 among transactions. Each claims a task and
// completes it at once, with a record or without. Prints the rate, the fewest
// and most tasks of a pilot, and tasks that were lost or done twice; exits with
// 1 where there are any.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/postgres/testing/postgres_server.h"

ABSL_FLAG(int, pilots, 1000, "simulated pilots");
ABSL_FLAG(int, connections, 32, "that they share");
ABSL_FLAG(int, seconds, 20, "to measure");
ABSL_FLAG(bool, pgbouncer, false, "a connection each, through pgbouncer");
ABSL_FLAG(bool, records, false, "complete each task with a record");

namespace optrail::fleet {
namespace {

using tracker::Postgres;
using tracker::PostgresServer;

constexpr int kTasksOfAJob = 20000;

double NowSeconds() {
  return static_cast<double>(Clock::Real()->NowNs()) * 1e-9;
}

class Simulation {
 public:
  // Pilots connect to `pool`.
  Simulation(std::string url, std::string pool, int connections)
      : url_(std::move(url)),
        pool_(std::move(pool)),
        connections_(connections) {}

  absl::Status Run() {
    const int pilots = absl::GetFlag(FLAGS_pilots);
    const int connections = connections_;
    OPTRAIL_RETURN_IF_ERROR(InitFleet(url_));
    OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue, JobQueue::Open(url_));
    OPTRAIL_RETURN_IF_ERROR(AddTasks(queue));
    done_.assign(pilots, 0);
    std::vector<absl::Status> ends(connections);
    std::vector<std::thread> threads;
    const double start = NowSeconds();
    end_ = start + absl::GetFlag(FLAGS_seconds);
    for (int i = 0; i < connections; ++i) {
      threads.emplace_back([&, i] { ends[i] = Serve(i, connections); });
    }
    // More is added before the queue is empty.
    absl::Status added;
    while (NowSeconds() < end_ && added.ok()) {
      absl::SleepFor(absl::Milliseconds(200));
      if (submitted_ - completed_ < kTasksOfAJob / 2) added = AddTasks(queue);
    }
    for (std::thread& thread : threads) thread.join();
    const double seconds = NowSeconds() - start;
    OPTRAIL_RETURN_IF_ERROR(added);
    for (const absl::Status& end : ends) OPTRAIL_RETURN_IF_ERROR(end);
    return Report(seconds);
  }

 private:
  absl::Status AddTasks(JobQueue& queue) {
    JobRequest request;
    request.name = "claims";
    request.commands.assign(kTasksOfAJob, "bench --suite=x");
    submitted_ += kTasksOfAJob;
    return queue.Submit(request).status();
  }

  // One connection, with pilots `first`, `first` + `step`, ... in turn.
  absl::Status Serve(int first, int step) {
    OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue, JobQueue::Open(pool_));
    const int pilots = static_cast<int>(done_.size());
    while (true) {
      for (int i = first; i < pilots; i += step) {
        if (NowSeconds() >= end_) return absl::OkStatus();
        const PilotInfo pilot = {absl::StrCat("pilot", i), "host", "hw", ""};
        OPTRAIL_ASSIGN_OR_RETURN(const auto task, queue.Claim(pilot));
        if (!task.has_value()) continue;
        std::vector<tracker::PlacedRecord> records;
        if (absl::GetFlag(FLAGS_records)) {
          records.push_back({"triage",
                             absl::StrFormat("20260101T000000Z-%012x",
                                             static_cast<int64_t>(task->task)),
                             "a record"});
        }
        OPTRAIL_RETURN_IF_ERROR(queue.Finish(*task, {true, 0, ""}, records));
        ++done_[i];
        ++completed_;
      }
    }
  }

  absl::Status Report(double seconds) {
    OPTRAIL_ASSIGN_OR_RETURN(const auto db, Postgres::Connect(url_));
    const auto count = [&](const std::string& sql) -> absl::StatusOr<int64_t> {
      OPTRAIL_ASSIGN_OR_RETURN(const auto rows,
                               db->Query("SELECT count(*) FROM " + sql, {}));
      return std::stoll(rows[0][0].value_or("0"));
    };
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t attempts, count("optrail.attempts"));
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t kept,
                             count("optrail.tasks WHERE state = 'done'"));
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t held,
                             count("optrail.tasks WHERE state = 'leased'"));
    OPTRAIL_ASSIGN_OR_RETURN(
        const int64_t twice,
        count("(SELECT FROM optrail.attempts GROUP BY task "
              "HAVING count(*) > 1) x"));
    const int64_t completed = completed_;
    const auto [fewest, most] = std::minmax_element(done_.begin(), done_.end());
    std::cout << done_.size() << " pilots over " << connections_
              << " connections, "
              << absl::StrFormat(
                     "%.1f s: %.0f tasks a second claimed and "
                     "completed; %d to %d a pilot\n",
                     seconds, completed / seconds, *fewest, *most)
              << completed << " completed, " << completed - kept << " lost, "
              << twice << " twice, " << held << " still leased\n";
    if (kept == completed && attempts == completed && twice == 0 && held == 0) {
      return absl::OkStatus();
    }
    return absl::DataLossError("tasks were lost or done twice");
  }

  const std::string url_, pool_;
  const int connections_;
  std::atomic<int64_t> submitted_{0}, completed_{0};
  std::vector<int> done_;  // tasks of each pilot
  double end_ = 0;
};

// A pgbouncer before `server`; its URL goes to `url`.
absl::StatusOr<std::unique_ptr<Subprocess>> StartPool(
    const PostgresServer& server, std::string* url) {
  const std::string direct = server.Url("postgres", "postgres");
  const std::string folder = server.folder() + "/pool";
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
      folder + "/pool.ini",
      absl::StrCat("[databases]\n* = host=", server.folder(), " port=",
                   direct.substr(direct.rfind('=') + 1), " user=postgres\n",
                   "[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
                   "unix_socket_dir = ",
                   folder, "\nauth_type = any\npool_mode = transaction\n",
                   "max_client_conn = 5000\ndefault_pool_size = 32\n",
                   "logfile = ", folder, "/log\n")));
  OPTRAIL_RETURN_IF_ERROR(
      RunCommand({"chown", "-R", "postgres", folder}).status());
  *url = absl::StrCat("postgresql://postgres@/postgres?host=", folder,
                      "&port=6432");
  SubprocessOptions options;
  options.stderr_mode = StderrMode::kDiscard;
  auto pool = Subprocess::Start(
      {"setpriv", "--pdeathsig=KILL", "--reuid=postgres", "--regid=postgres",
       "--clear-groups", "/usr/sbin/pgbouncer", "--quiet",
       folder + "/pool.ini"},
      options);
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (Postgres::Connect(*url).ok()) return pool;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return absl::UnimplementedError("unsupported here: no pgbouncer");
}

absl::Status Main() {
  if (absl::GetFlag(FLAGS_connections) < 1 ||
      absl::GetFlag(FLAGS_pilots) < absl::GetFlag(FLAGS_connections)) {
    return absl::InvalidArgumentError(
        "--pilots and --connections: expected at least one connection, and a "
        "pilot for each");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const auto server, PostgresServer::Start());
  const std::string url = server->Url("postgres", "postgres");
  if (!absl::GetFlag(FLAGS_pgbouncer)) {
    return Simulation(url, url, absl::GetFlag(FLAGS_connections)).Run();
  }
  // A descriptor for each pilot.
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::string pool;
  OPTRAIL_ASSIGN_OR_RETURN(const auto process, StartPool(*server, &pool));
  return Simulation(url, pool, absl::GetFlag(FLAGS_pilots)).Run();
}

}  // namespace
}  // namespace optrail::fleet

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = optrail::fleet::Main();
  if (!status.ok()) std::cerr << "claims: " << status.message() << "\n";
  return status.ok() ? 0 : absl::IsUnimplemented(status) ? 3 : 1;
}
