#include "fleet/pilot.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"
#include "fleet/steady_now.h"
#include "fleet/task_runner.h"

namespace optrail::fleet {
namespace {

// How long a database may be away before a pilot gives up.
constexpr absl::Duration kPatience = absl::Minutes(10);
// Before the pilot has ever reached it, its address may be wrong.
constexpr absl::Duration kPatienceAtStart = absl::Minutes(1);

std::atomic<bool> told_to_end{false};

// The signals of Slurm and of a person, for as long as it lives.
class EndSignals {
 public:
  EndSignals() {
    told_to_end = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { told_to_end = true; };
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }
  ~EndSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_;
};

std::string NewPilotId(const std::string& host) {
  std::random_device random;
  return absl::StrCat(host, "-", getpid(), "-", absl::Hex(random()));
}

absl::StatusOr<JobQueue> OpenQueue(const PilotOptions& options,
                                   std::ostream& log) {
  const absl::Duration until = SteadyNow() + kPatienceAtStart;
  std::string said;
  while (true) {
    absl::StatusOr<JobQueue> queue = JobQueue::Open(options.url, options.lease);
    if (!MayPass(queue.status()) || told_to_end || SteadyNow() > until) {
      return queue;
    }
    if (said != queue.status().message()) {
      said = std::string(queue.status().message());
      log << said << "; trying again\n" << std::flush;
    }
    absl::SleepFor(options.poll);
  }
}

class Pilot {
 public:
  Pilot(const PilotOptions& options, JobQueue queue, TaskRunner& runner,
        std::ostream& log)
      : options_(options),
        queue_(std::move(queue)),
        runner_(runner),
        log_(log) {}

  absl::StatusOr<PilotReport> Run() {
    while (!told_to_end && SteadyNow() - begun_ < options_.time) {
      const absl::StatusOr<Next> next = TakeAndRun();
      if (next.ok()) {
        reached_ = SteadyNow();
        said_error_.clear();  // the same error later is news
        if (*next == Next::kEnd) break;
        if (*next == Next::kTask) continue;
      } else if (!MayPass(next.status()) ||
                 SteadyNow() - reached_ > kPatience) {
        return next.status();
      } else if (said_error_ != next.status().message()) {
        said_error_ = std::string(next.status().message());
        log_ << said_error_ << "; trying again\n" << std::flush;
      }
      absl::SleepFor(options_.poll);
    }
    return report_;
  }

 private:
  enum class Next { kTask, kWait, kEnd };

  absl::StatusOr<Next> TakeAndRun() {
    if (!said_.has_value() || SteadyNow() - *said_ > queue_.lease() / 4) {
      OPTRAIL_RETURN_IF_ERROR(SayThatWeAreHere().status());
    }
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<Task> task,
                             queue_.Claim(options_.info));
    reached_ = SteadyNow();
    if (!task.has_value()) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool draining, SayThatWeAreHere());
      if (draining) return Next::kEnd;
      if (!options_.until_idle) return Next::kWait;
      OPTRAIL_ASSIGN_OR_RETURN(
          const bool waits,
          queue_.MayGetTasks(options_.info,
                             SteadyNow() - begun_ < 2 * queue_.lease()));
      return waits ? Next::kWait : Next::kEnd;
    }
    OPTRAIL_RETURN_IF_ERROR(RunTask(*task));
    return Next::kTask;
  }

  // Returns whether we were told to end.
  absl::StatusOr<bool> SayThatWeAreHere() {
    OPTRAIL_ASSIGN_OR_RETURN(const bool draining,
                             queue_.IsDraining(options_.info));
    said_ = SteadyNow();
    return draining;
  }

  absl::Status RunTask(const Task& task) {
    log_ << "task " << task.task << ", attempt " << task.attempt << ": "
         << EscapeForTerminal(task.command) << "\n"
         << std::flush;
    Outcome outcome;
    const absl::StatusOr<std::string> place = runner_.CreatePlace(task);
    absl::Status ended = place.status();
    if (ended.ok()) {
      began_ = renewed_ = SteadyNow();
      ended = runner_.Run(
          task, *place, [&] { return MayGoOn(task); }, &outcome);
    }
    const bool ran = ended.ok();
    if (ran) ended = Deliver(task, *place, outcome);
    if (place.ok()) runner_.RemovePlace(*place);
    if (ended.ok()) {
      ++(outcome.is_result ? report_.done : report_.failed);
    } else if (absl::IsAborted(ended)) {
      ++report_.lost;
    } else if (absl::IsCancelled(ended)) {
      ended = queue_.Release(task);
    } else {
      if (ran) return ended;
      // The machine failed and not the task, which another may run. A disk of
      // its own that is full is no full disk of the database.
      (void)queue_.Release(task);
      return absl::IsResourceExhausted(ended)
                 ? absl::FailedPreconditionError(ended.message())
                 : ended;
    }
    log_ << "task " << task.task << ": "
         << (ended.ok() ? absl::StrCat("exit code ", outcome.exit_code)
                        : std::string(ended.message()))
         << "\n"
         << std::flush;
    return absl::OkStatus();
  }

  // Keeps the task ours while it runs. Cancelled if the pilot is to end,
  // Aborted if the task is no longer ours, DeadlineExceeded after its time.
  absl::Status MayGoOn(const Task& task) {
    if (told_to_end) {
      return absl::CancelledError("put back: the pilot was told to end");
    }
    if (SteadyNow() - began_ > task.time_limit) {
      return absl::DeadlineExceededError(
          absl::StrCat("ended after the task's time, ",
                       absl::FormatDuration(task.time_limit), "\n"));
    }
    if (SteadyNow() - renewed_ > queue_.lease() / 4) {
      const absl::StatusOr<bool> ours = queue_.KeepAlive(task);
      // A database that is away for a while is asked again; the lease counts.
      if (ours.ok()) renewed_ = reached_ = SteadyNow();
      if (ours.ok() && !*ours) {
        return absl::AbortedError(
            "it was cancelled, or another pilot has taken it over");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Deliver(const Task& task, const std::string& place,
                       const Outcome& outcome) {
    std::vector<tracker::PlacedRecord> records;
    Outcome ended = outcome;
    if (outcome.is_result) {
      auto recorded = TaskRunner::Records(place, &ended.log);
      if (recorded.ok()) {
        records = *std::move(recorded);
      } else {
        ended.is_result = false;
        absl::StrAppend(&ended.log, "its history cannot be read: ",
                        recorded.status().message(), "\n");
      }
    }
    // While the database takes nothing, nobody else can get the task: the
    // result may count after the lease's end, too.
    const absl::Duration lease_ends = SteadyNow() + queue_.lease();
    const absl::Duration until = std::max(reached_ + kPatience, lease_ends);
    while (true) {
      const absl::Status finished = queue_.Finish(task, ended, records);
      if (!MayPass(finished) || SteadyNow() > until ||
          (told_to_end && SteadyNow() > lease_ends)) {
        return finished;
      }
      absl::SleepFor(std::min(options_.poll, absl::Seconds(1)));
    }
  }

  const PilotOptions& options_;
  JobQueue queue_;
  TaskRunner& runner_;
  std::ostream& log_;
  const absl::Duration begun_ = SteadyNow();
  // Times of SteadyNow(): when we said that we are here, and when the task that
  // runs began and was renewed.
  absl::optional<absl::Duration> said_;
  absl::Duration began_, renewed_;
  absl::Duration reached_ = begun_;  // when the database last answered
  std::string said_error_;
  PilotReport report_;
};

}  // namespace

absl::StatusOr<PilotReport> RunPilot(const PilotOptions& options,
                                     std::ostream& log) {
  PilotOptions filled = options;
  filled.info.id = NewPilotId(options.info.host);
  filled.info.has_repository = !options.repository.empty();
  // Another process of this user could read them otherwise.
  prctl(PR_SET_DUMPABLE, 0);
  const EndSignals signals;
  OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue, OpenQueue(options, log));
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<TaskRunner> runner,
                           TaskRunner::Create(filled));
  log << "pilot " << filled.info.id << " on " << filled.info.hardware_id
      << "\n";
  return Pilot(filled, std::move(queue), *runner, log).Run();
}

}  // namespace optrail::fleet
