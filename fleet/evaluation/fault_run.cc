#include "fleet/evaluation/fault_run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/testing/wrong_clock.h"
#include "fleet/evaluation/fault_tasks.h"
#include "fleet/evaluation/holding_proxy.h"
#include "fleet/evaluation/queue_counts.h"
#include "fleet/evaluation/run_log.h"
#include "fleet/keep_pilots.h"
#include "fleet/pilot.h"
#include "fleet/queue.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::fleet {
namespace {

using tracker::Postgres;

constexpr int kTasksOfASubmitter = 3;
// How long a job of Slurm may be silent. `optrail fleet up --keep` waits for a
// minute at least; leases are shorter here, too.
constexpr absl::Duration kKeepersPatience = absl::Seconds(10);
// Until all tasks are done after the last fault.
constexpr absl::Duration kPatience = absl::Minutes(3);

class FaultRun {
 public:
  FaultRun(tracker::PostgresServer& server, const std::string& url,
           const FaultOptions& options)
      : server_(server),
        url_(url),
        options_(options),
        queue_counts_(url),
        log_(options.log_folder, options.progress),
        rng_(options.seed),
        clock_rng_(~options.seed) {}
  ~FaultRun() {
    for (const PilotProcess& pilot : pilots_) {
      kill(pilot.pid, SIGKILL);
      waitpid(pilot.pid, nullptr, 0);
    }
  }

  absl::StatusOr<FaultReport> Run() {
    OPTRAIL_ASSIGN_OR_RETURN(
        program_,
        PrepareTasks(absl::StrCat(server_.folder(), "/prepared"),
                     options_.tasks + options_.faults * kTasksOfASubmitter,
                     options_.task_time));
    OPTRAIL_RETURN_IF_ERROR(Submit(0, options_.tasks));
    next_task_ = options_.tasks;
    OPTRAIL_ASSIGN_OR_RETURN(proxy_, HoldingProxy::Start(server_.folder()));
    if (options_.slurm != nullptr) {
      OPTRAIL_RETURN_IF_ERROR(StartKeepers());
    } else {
      for (int i = 0; i < options_.pilots; ++i) {
        pilots_.push_back(StartPilot(i));
      }
    }
    for (int i = 0; i < options_.faults; ++i) {
      Watch(absl::Milliseconds(50 + rng_.UniformInt(400)));
      OPTRAIL_RETURN_IF_ERROR(OneFault());
    }
    log_.Note("the last fault is over");
    const absl::Time until = absl::Now() + kPatience;
    while (absl::Now() < until && !queue_counts_.AllAreDone()) {
      Watch(absl::Milliseconds(100));
    }
    return Report();
  }

 private:
  struct PilotProcess {
    int number;
    pid_t pid;
    absl::Time thaws = absl::InfiniteFuture();  // where it is frozen
  };

  absl::Status Submit(int first, int count) {
    OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue,
                             JobQueue::Open(url_, options_.lease));
    JobRequest request;
    request.name = "job";
    request.commands = CommandsOf(first, count);
    request.most_attempts = 1000;
    return queue.Submit(request).status();
  }

  // The first pilot's network may stall.
  PilotOptions OptionsOf(int number) {
    PilotOptions options;
    options.url = number == 0 ? proxy_->UrlOf(url_) : url_;
    options.info = {"", "host", "hw", ""};
    options.run_as = "nobody";
    options.folder = absl::StrCat(server_.folder(), "/pilot", ++started_);
    options.program = program_;
    options.poll = absl::Milliseconds(50);
    options.lease = options_.lease;
    return options;
  }

  // Up to half a day ahead or behind, at least an hour.
  absl::Duration SomeClockError() {
    ++report_.wrong_clocks;
    const absl::Duration error =
        absl::Hours(1) + absl::Hours(11) * clock_rng_.UniformReal();
    return clock_rng_.UniformInt(2) == 0 ? error : -error;
  }

  PilotProcess StartPilot(int number,
                          absl::Duration clock_error = absl::ZeroDuration()) {
    const PilotOptions options = OptionsOf(number);
    const pid_t pid = fork();
    if (pid != 0) return {number, pid};
    SetWallClockError(clock_error);
    std::ofstream log(
        options_.log_folder.empty()
            ? "/dev/null"
            : JoinPath(options_.log_folder, absl::StrCat("pilot-", started_)));
    _exit(RunPilot(options, log).ok() ? 0 : 1);
  }

  // Each keeps one pilot, since the network of the first may stall.
  absl::Status StartKeepers() {
    OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue,
                             JobQueue::Open(url_, options_.lease));
    queue_ = absl::make_unique<JobQueue>(std::move(queue));
    const std::string& logs = options_.log_folder.empty()
                                  ? options_.slurm->folder()
                                  : options_.log_folder;
    for (int i = 0; i < options_.pilots; ++i) {
      const PilotOptions options = OptionsOf(i);
      PilotsToKeep pilots = {1,
                             {absl::StrCat("--output=", logs, "/job-%j")},
                             options_.pilot,
                             options.info};
      // The clock of one node is wrong all the time.
      const absl::Duration clock_error =
          i == 1 ? SomeClockError() : absl::ZeroDuration();
      for (std::string& word : ArgumentsOf(options, clock_error)) {
        pilots.command.push_back(std::move(word));
      }
      keepers_.emplace_back(queue_.get(), std::move(pilots), kKeepersPatience);
      // Slurm must be able to start the first pilots.
      OPTRAIL_RETURN_IF_ERROR(keepers_.back().Look().status());
    }
    return absl::OkStatus();
  }

  void KeepSlurmPilots() {
    for (PilotKeeper& keeper : keepers_) {
      const auto changes = keeper.Look();
      if (!changes.ok()) {
        log_.Note(changes.status().message());
        continue;
      }
      for (const std::string& change : *changes) log_.Note(change);
    }
  }

  // The id of a pilot says which process it is: all are on this machine.
  absl::Status KillASlurmPilot() {
    OPTRAIL_ASSIGN_OR_RETURN(
        const auto rows,
        queue_counts_.Query("SELECT pilot FROM optrail.pilots ORDER BY seen "
                            "DESC LIMIT 2"));
    if (rows.empty()) return absl::OkStatus();
    const std::vector<std::string> parts =
        absl::StrSplit(rows[rng_.UniformInt(rows.size())][0].value_or(""), '-');
    int pid = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &pid) || pid <= 1) {
      return absl::OkStatus();
    }
    // It may have ended, and its number be another process' by now.
    const absl::StatusOr<std::string> command =
        ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (command.ok() && absl::StrContains(*command, server_.folder()) &&
        kill(pid, SIGKILL) == 0) {
      log_.Note(absl::StrCat("killed pilot ", pid));
      ++report_.pilots_killed;
    }
    return absl::OkStatus();
  }

  // A child that may be killed while it submits.
  void KillASubmitter() {
    const int first = next_task_;
    next_task_ += kTasksOfASubmitter;
    const pid_t pid = fork();
    if (pid == 0) _exit(Submit(first, kTasksOfASubmitter).ok() ? 0 : 1);
    absl::SleepFor(absl::Microseconds(rng_.UniformInt(200000)));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    log_.Note("killed a submitter");
    ++report_.submitters_killed;
  }

  absl::Duration SomeLeases() {
    return options_.lease * (.5 + 2 * rng_.UniformReal());
  }

  // Bytes of the first pilot arrive late, perhaps after its lease.
  void Stall() {
    if (proxy_thaws_ != absl::InfiniteFuture()) return;
    log_.Note("the network of a pilot stalls");
    ++report_.stalls;
    proxy_->Hold();
    proxy_thaws_ = absl::Now() + SomeLeases();
  }

  // Nothing can be written for some leases.
  absl::Status FillDisk() {
    log_.Note("the disk is full");
    ++report_.disks_filled;
    const std::string ballast = server_.data() + "/ballast";
    std::ofstream file(ballast, std::ios::binary);
    const std::string block(1 << 16, '\0');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size()))
               .flush()) {
    }
    file.close();
    const absl::StatusOr<std::shared_ptr<Postgres>> db =
        Postgres::Connect(url_);
    report_.refused_writes +=
        !db.ok() || !(*db)
                         ->Execute(
                             "CREATE TABLE optrail.probe AS SELECT "
                             "generate_series(1, 1000000)")
                         .ok();
    has_room_since_ = absl::InfiniteFuture();
    Watch(SomeLeases());
    if (unlink(ballast.c_str()) != 0) {
      return absl::InternalError(absl::StrCat("removing ", ballast));
    }
    log_.Note("the disk has room");
    // It may have ended for want of room for its log.
    if (!Postgres::Connect(url_).ok()) {
      OPTRAIL_RETURN_IF_ERROR(server_.Kill());
      OPTRAIL_RETURN_IF_ERROR(server_.Run());
    }
    has_room_since_ = absl::Now();
    return absl::OkStatus();
  }

  absl::Status OneFault() {
    ++next_fault_;
    const uint64_t kind = rng_.UniformInt(10);
    if (kind == 0) {
      log_.Note("kill the database");
      ++report_.servers_killed;
      OPTRAIL_RETURN_IF_ERROR(server_.Kill());
      return server_.Run();
    }
    if (kind == 1) {
      KillASubmitter();
      return absl::OkStatus();
    }
    if (kind == 2) {
      Stall();
      return absl::OkStatus();
    }
    if (kind == 3 && options_.fill_disk) return FillDisk();
    if (options_.slurm != nullptr) return SlurmFault(kind);
    PilotProcess& victim = pilots_[rng_.UniformInt(pilots_.size())];
    if (kind <= 5 && victim.thaws == absl::InfiniteFuture()) {
      // It wakes up after another one got its task.
      ++report_.pilots_frozen;
      kill(victim.pid, SIGSTOP);
      victim.thaws = absl::Now() + 2 * options_.lease;
    } else {
      ++report_.pilots_killed;
      kill(victim.pid, SIGKILL);
      waitpid(victim.pid, nullptr, 0);
      // A kind of its own draws nothing more: seeds kill whom they killed.
      victim = kind == 9 ? StartPilot(victim.number, SomeClockError())
                         : StartPilot(victim.number);
    }
    return absl::OkStatus();
  }

  absl::Status SlurmFault(uint64_t kind) {
    if (kind <= 5) {
      log_.Note("kill slurmctld");
      ++report_.controllers_killed;
      OPTRAIL_RETURN_IF_ERROR(options_.slurm->KillController());
      // Nobody would answer a question about its jobs.
      has_controller_ = false;
      Watch(SomeLeases());
      has_controller_ = true;
      log_.Note("start slurmctld");
      return options_.slurm->RunController();
    }
    if (kind <= 7) {
      ++report_.nodes_killed;
      const int node = static_cast<int>(rng_.UniformInt(2));
      log_.Note(absl::StrCat("kill slurmd of n", node + 1));
      OPTRAIL_RETURN_IF_ERROR(options_.slurm->KillNode(node));
      Watch(SomeLeases());
      log_.Note(absl::StrCat("start slurmd of n", node + 1));
      return options_.slurm->RunNode(node);
    }
    return KillASlurmPilot();
  }

  // Lets time pass; pilots thaw, and those that met a dead server are started
  // again, as Slurm would.
  void Watch(absl::Duration duration) {
    const absl::Time until = absl::Now() + duration;
    do {
      if (absl::Now() > proxy_thaws_) {
        proxy_->Release();
        proxy_thaws_ = absl::InfiniteFuture();
      }
      if (options_.slurm != nullptr && has_controller_ &&
          absl::Now() > next_look_) {
        KeepSlurmPilots();
        next_look_ = absl::Now() + absl::Seconds(3);
      }
      for (PilotProcess& pilot : pilots_) {
        if (absl::Now() > pilot.thaws) {
          kill(pilot.pid, SIGCONT);
          pilot.thaws = absl::InfiniteFuture();
        }
        if (waitpid(pilot.pid, nullptr, WNOHANG) == pilot.pid) {
          pilot = StartPilot(pilot.number);
        }
      }
      const absl::StatusOr<double> overdue = queue_counts_.Number(
          "SELECT coalesce(max(extract(epoch FROM now() - "
          "greatest(lease_until, pg_postmaster_start_time()))), 0) "
          "FROM optrail.tasks WHERE state = 'leased'");
      const absl::StatusOr<double> silent = queue_counts_.Number(
          "SELECT coalesce(extract(epoch FROM now() - max(greatest(seen, "
          "(SELECT max(lease_until) FROM optrail.tasks t WHERE t.state = "
          "'leased' AND t.pilot = p.pilot)))), 1e9) FROM optrail.pilots p");
      if (overdue.ok() && silent.ok()) {
        NoteOverdue(*overdue / absl::ToDoubleSeconds(options_.lease),
                    absl::Seconds(*silent));
      }
      SayProgress();
      absl::SleepFor(absl::Milliseconds(20));
    } while (absl::Now() < until);
  }

  // `silent`: since when no pilot said that it is there, or that it works.
  void NoteOverdue(double leases, absl::Duration silent) {
    report_.most_overdue = std::max(report_.most_overdue, leases);
    if (silent > options_.lease) pilots_since_ = absl::Now();
    report_.most_overdue_with_pilots = std::max(
        report_.most_overdue_with_pilots,
        std::min(leases, absl::FDivDuration(absl::Now() - pilots_since_,
                                            options_.lease)));
    report_.most_overdue_with_room = std::max(
        report_.most_overdue_with_room,
        std::min(leases,
                 std::max(0., absl::FDivDuration(absl::Now() - has_room_since_,
                                                 options_.lease))));
    if (leases < 1 || absl::Now() < next_note_) return;
    next_note_ = absl::Now() + absl::Seconds(5);
    log_.Note(absl::StrCat(
        "a task stands ", leases, " leases beyond its own; ",
        options_.slurm != nullptr && has_controller_
            ? options_.slurm->Describe()
            : std::string("the controller of Slurm is away, or none is used")));
  }

  void SayProgress() {
    if (options_.progress == nullptr || absl::Now() < next_progress_) return;
    next_progress_ = absl::Now() + absl::Seconds(10);
    const auto done = queue_counts_.Count("optrail.tasks WHERE state = 'done'");
    const auto all = queue_counts_.Count("optrail.tasks");
    if (!done.ok() || !all.ok()) return;
    const std::string state = absl::StrCat(*done, " of ", *all, " tasks done");
    log_.Note(state);
    log_.SayProgress(next_fault_, options_.faults, state);
  }

  absl::StatusOr<FaultReport> Report() {
    OPTRAIL_RETURN_IF_ERROR(
        queue_counts_.AddTo({options_.tasks, kTasksOfASubmitter}, &report_));
    return report_;
  }

  tracker::PostgresServer& server_;
  const std::string url_;
  const FaultOptions options_;
  QueueCounts queue_counts_;
  RunLog log_;
  Rng rng_;
  Rng clock_rng_;  // its own: seeds draw the faults that they drew
  std::vector<std::string> program_;
  std::unique_ptr<HoldingProxy> proxy_;
  absl::Time proxy_thaws_ = absl::InfiniteFuture();
  absl::Time next_look_ = absl::InfinitePast();  // at Slurm's jobs
  absl::Time pilots_since_ = absl::Now();        // one was there all the time
  absl::Time has_room_since_ = absl::InfinitePast();  // the database's disk
  absl::Time next_note_ = absl::InfinitePast();       // of a task that stands
  absl::Time next_progress_ = absl::InfinitePast();
  bool has_controller_ = true;  // of Slurm
  int next_fault_ = 0;
  std::vector<PilotProcess> pilots_;
  std::unique_ptr<JobQueue> queue_;  // of the keepers
  std::vector<PilotKeeper> keepers_;
  int started_ = 0;
  int next_task_ = 0;
  FaultReport report_;
};

}  // namespace

std::string FaultReport::Problem() const {
  std::string problem;
  if (done != tasks) {
    absl::StrAppend(&problem, tasks - done, " of ", tasks,
                    " tasks were not done; ");
  }
  if (runs != done) {
    absl::StrAppend(&problem, runs, " runs of ", done, " tasks; ");
  }
  if (done_twice > 0) absl::StrAppend(&problem, done_twice, " done twice; ");
  if (torn_jobs > 0) {
    absl::StrAppend(&problem, torn_jobs, " jobs have some of their tasks; ");
  }
  return problem;
}

absl::StatusOr<FaultReport> RunWithFaults(tracker::PostgresServer& server,
                                          const std::string& url,
                                          const FaultOptions& options) {
  return FaultRun(server, url, options).Run();
}

}  // namespace optrail::fleet
