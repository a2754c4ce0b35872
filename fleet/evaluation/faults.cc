// Kills pilots, submitters and PostgreSQL at random moments, freezes pilots,
// holds the bytes of one, starts some with a wrong clock, and counts what was
// lost or done twice:
//
//   bazel run //fleet/evaluation:faults -- --faults=200 --seed=7
//
// With --slurm a Slurm of two nodes starts the pilots, and its daemons are
// killed instead of frozen pilots; with --disk_mib the database has a disk of
// its own, which is full now and then. Both need root.
//
// Says how far it is on standard error. Exits with 1 where anything was lost,
// or stood for too long; then it keeps the logs of Slurm, of the pilots and of
// the database, and says where. With --keep_logs it keeps them in any case.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/process/process_guard.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "fleet/evaluation/fault_run.h"
#include "fleet/evaluation/fault_tasks.h"
#include "fleet/evaluation/slurm_cluster.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/testing/postgres_server.h"

ABSL_FLAG(int, faults, 200, "in all");
ABSL_FLAG(int, tasks, 300, "in the queue at the start");
ABSL_FLAG(int, pilots, 3, "at a time");
ABSL_FLAG(int, task_ms, 50, "that a task takes");
ABSL_FLAG(int, lease_ms, 1000, "of a task");
ABSL_FLAG(int, disk_mib, 0, "of the database; 0: that of /tmp, never full");
ABSL_FLAG(bool, slurm, false, "pilots are jobs of Slurm");
ABSL_FLAG(bool, keep_logs, false, "also where nothing went wrong");
ABSL_FLAG(uint64_t, seed, 1, "of the moments and the kinds");

namespace optrail::fleet {
namespace {

// The goal: no task stands for longer, in leases.
constexpr double kMostOverdue = 2;

// The logs of a run, removed with it unless they are kept.
class Logs {
 public:
  static absl::StatusOr<std::unique_ptr<Logs>> Create() {
    std::string folder = "/tmp/optrail_faults_XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return absl::InternalError(absl::StrCat("making ", folder));
    }
    return std::unique_ptr<Logs>(new Logs(folder));
  }
  ~Logs() {
    if (!is_kept_) (void)RunCommand({"rm", "-rf", folder_});
  }

  const std::string& folder() const { return folder_; }

  void Keep(const tracker::PostgresServer& server, const SlurmCluster* slurm) {
    is_kept_ = true;
    (void)RunCommand(
        {"cp", server.folder() + "/log", JoinPath(folder_, "database")});
    const absl::Status kept =
        slurm == nullptr ? absl::OkStatus() : slurm->KeepLogs(folder_);
    std::cerr << "faults: the logs are in " << folder_
              << (kept.ok() ? "" : "; of Slurm: ") << kept.message() << "\n";
  }

 private:
  explicit Logs(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  bool is_kept_ = false;
};

absl::Status Main(const std::string& self) {
  FaultOptions options;
  options.faults = absl::GetFlag(FLAGS_faults);
  options.tasks = absl::GetFlag(FLAGS_tasks);
  options.pilots = absl::GetFlag(FLAGS_pilots);
  options.seed = absl::GetFlag(FLAGS_seed);
  if (options.tasks < 1 || options.pilots < 1 || options.faults < 0) {
    return absl::InvalidArgumentError(
        "--tasks, --pilots, --faults: expected at least 1, 1 and 0");
  }
  options.lease = absl::Milliseconds(absl::GetFlag(FLAGS_lease_ms));
  options.task_time = absl::Milliseconds(absl::GetFlag(FLAGS_task_ms));
  options.fill_disk = absl::GetFlag(FLAGS_disk_mib) > 0;
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto server,
      tracker::PostgresServer::Start(absl::GetFlag(FLAGS_disk_mib)));
  std::unique_ptr<SlurmCluster> slurm;
  if (absl::GetFlag(FLAGS_slurm)) {
    OPTRAIL_ASSIGN_OR_RETURN(slurm, SlurmCluster::Start());
    options.slurm = slurm.get();
    options.pilots = std::min(options.pilots, SlurmCluster::kNodes);
    options.pilot = {self, "pilot"};
  }
  const std::string url = server->Url("postgres", "postgres");
  OPTRAIL_RETURN_IF_ERROR(InitFleet(url));
  OPTRAIL_ASSIGN_OR_RETURN(const auto logs, Logs::Create());
  options.log_folder = logs->folder();
  options.progress = &std::cerr;
  const absl::StatusOr<FaultReport> ran = RunWithFaults(*server, url, options);
  const bool is_fine =
      ran.ok() && ran->Problem().empty() && ran->most_overdue <= kMostOverdue;
  if (!is_fine || absl::GetFlag(FLAGS_keep_logs)) {
    logs->Keep(*server, slurm.get());
  }
  if (!ran.ok()) return ran.status();
  const FaultReport& report = *ran;
  std::cout << absl::StrFormat(
      "seed %d: killed %d pilots, %d servers, %d submitters, %d slurmctld and "
      "%d slurmd, froze %d pilots, stalled %d times, started %d pilots with a "
      "wrong clock, filled %d disks, which refused %d writes\n%d of %d tasks "
      "done, %d runs, %d tasks done twice, "
      "%d torn jobs, in %.1f s; a task stood %.2f leases beyond its own at "
      "most, %.2f of them while a pilot was there, %.2f while the disk had "
      "room\n",
      options.seed, report.pilots_killed, report.servers_killed,
      report.submitters_killed, report.controllers_killed, report.nodes_killed,
      report.pilots_frozen, report.stalls, report.wrong_clocks,
      report.disks_filled, report.refused_writes, report.done, report.tasks,
      report.runs, report.done_twice, report.torn_jobs, report.seconds,
      report.most_overdue, report.most_overdue_with_pilots,
      report.most_overdue_with_room);
  if (is_fine) return absl::OkStatus();
  if (report.Problem().empty()) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "a task stood for longer than %.0f leases", kMostOverdue));
  }
  return absl::DataLossError(report.Problem());
}

// Slurm starts this: `faults pilot ARGUMENTS`.
absl::Status Pilot(const std::vector<std::string>& arguments) {
  OPTRAIL_ASSIGN_OR_RETURN(PilotOptions options, PilotOptionsOf(arguments));
  const char* const job = std::getenv("SLURM_JOB_ID");
  if (job != nullptr) options.info.slurm_job = job;
  options.guard = "/proc/self/exe";
  return RunPilot(options, std::cout).status();
}

}  // namespace
}  // namespace optrail::fleet

int main(int argc, char** argv) {
  if (optrail::IsProcessGuard(argc, argv)) {
    return optrail::RunProcessGuard(argc, argv);
  }
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  const absl::Status status =
      words.size() > 1 ? optrail::fleet::Pilot({words.begin() + 2, words.end()})
                       : optrail::fleet::Main(
                             std::filesystem::read_symlink("/proc/self/exe"));
  if (!status.ok()) std::cerr << "faults: " << status.message() << "\n";
  return status.ok() ? 0 : absl::IsUnimplemented(status) ? 3 : 1;
}
