#include "fleet/pilot.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "fleet/task_command.h"
#include "tracker/history/copy.h"
#include "tracker/history/history.h"

namespace optrail::fleet {
namespace {

// Codes by which commands say what they found (base/exit_code.h); 2 is bad
// input.
constexpr int kResultCodes[] = {0, 1, 3};
constexpr size_t kMostLogBytes = 64 << 10;
constexpr char kRepository[] = "repository";  // in the place of a task
constexpr absl::Duration kLook = absl::Milliseconds(100);
// How long a database may be away before a pilot gives up.
constexpr absl::Duration kPatience = absl::Minutes(10);

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

// Since some time; the clock on the wall may jump.
absl::Duration Now() { return absl::Nanoseconds(Clock::Real()->NowNs()); }

// Returns whether the child has ended; it stays to be waited for.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

class Pilot {
 public:
  Pilot(const PilotOptions& options, JobQueue queue, std::ostream& log)
      : options_(options), queue_(std::move(queue)), log_(log) {}

  ~Pilot() {
    if (!folder_.empty()) (void)RunCommand({"rm", "-rf", folder_});
  }
  Pilot(const Pilot&) = delete;
  Pilot& operator=(const Pilot&) = delete;

  absl::StatusOr<PilotReport> Run() {
    OPTRAIL_RETURN_IF_ERROR(PrepareFolder());
    const absl::Duration start = Now();
    absl::Duration reached = start;
    while (!told_to_end && Now() - start < options_.time) {
      const absl::StatusOr<Next> next = TakeAndRun();
      if (next.ok()) {
        reached = Now();
        if (*next == Next::kEnd) break;
        if (*next == Next::kTask) continue;
      } else if (!absl::IsUnavailable(next.status()) ||
                 Now() - reached > kPatience) {
        return next.status();
      } else {
        log_ << next.status().message() << "\n" << std::flush;
      }
      absl::SleepFor(options_.poll);
    }
    return report_;
  }

 private:
  enum class Next { kTask, kWait, kEnd };

  absl::StatusOr<Next> TakeAndRun() {
    if (!said_.has_value() || Now() - *said_ > queue_.lease() / 4) {
      OPTRAIL_RETURN_IF_ERROR(SayThatWeAreHere().status());
    }
    OPTRAIL_ASSIGN_OR_RETURN(const absl::optional<Task> task,
                             queue_.Claim(options_.info));
    if (!task.has_value()) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool draining, SayThatWeAreHere());
      return draining || options_.until_idle ? Next::kEnd : Next::kWait;
    }
    OPTRAIL_RETURN_IF_ERROR(RunTask(*task));
    return Next::kTask;
  }

  // Returns whether we were told to end.
  absl::StatusOr<bool> SayThatWeAreHere() {
    said_ = Now();
    return queue_.IsDraining(options_.info);
  }

  // The folder stays ours: the user of the tasks may pass through it, and can
  // neither put anything into it nor rename what it holds.
  absl::Status PrepareFolder() {
    std::string parent = options_.folder;
    if (parent.empty()) {
      const char* const temporary = std::getenv("TMPDIR");
      parent = temporary == nullptr ? "/tmp" : temporary;
    }
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(parent));
    std::string folder = JoinPath(parent, "optrail-pilot-XXXXXX");
    if (mkdtemp(folder.data()) == nullptr) {
      return FileError("creating", folder, errno);
    }
    folder_ = folder;
    if (chmod(folder_.c_str(), 0711) != 0) {
      return FileError("opening to the tasks", folder_, errno);
    }
    copy_ = JoinPath(folder_, "history");
    if (geteuid() != 0) return absl::OkStatus();
    const passwd* const user = getpwnam(options_.run_as.c_str());
    if (user == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          "--run_as=", options_.run_as, ": expected a user of this machine"));
    }
    uid_ = user->pw_uid;
    gid_ = user->pw_gid;
    return absl::OkStatus();
  }

  // A new folder that belongs to the user of the tasks.
  absl::Status CreatePlace(const std::string& place) const {
    if (mkdir(place.c_str(), 0755) != 0) {
      return FileError("creating", place, errno);
    }
    if (geteuid() == 0 && lchown(place.c_str(), uid_, gid_) != 0) {
      return FileError(absl::StrCat("giving to ", options_.run_as), place,
                       errno);
    }
    return absl::OkStatus();
  }

  // The command as another user where that can be, ended with the pilot.
  std::vector<std::string> AsUserOfTasks(
      const std::vector<std::string>& command) const {
    std::vector<std::string> argv = {"setpriv", "--pdeathsig=KILL"};
    if (geteuid() == 0) {
      for (std::string option :
           {absl::StrCat("--reuid=", uid_), absl::StrCat("--regid=", gid_),
            std::string("--clear-groups"), std::string("--inh-caps=-all"),
            std::string("--no-new-privs")}) {
        argv.push_back(std::move(option));
      }
    }
    // Everything that it says is its log.
    for (const char* word : {"sh", "-c", "exec \"$@\" 1>&2", "sh"}) {
      argv.push_back(word);
    }
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
  }

  absl::Status RunTask(const Task& task) {
    log_ << "task " << task.task << ", attempt " << task.attempt << ": "
         << task.command << "\n"
         << std::flush;
    const std::string place =
        JoinPath(folder_, absl::StrCat("task-", task.task, "-", task.attempt));
    Outcome outcome;
    absl::Status ended = CreatePlace(place);
    if (ended.ok()) ended = RunCommandOf(task, place, &outcome);
    const bool ran = ended.ok();
    if (ran) ended = Deliver(task, place, outcome);
    (void)RunCommand({"rm", "-rf", place});
    if (ended.ok()) {
      ++(outcome.is_result ? report_.done : report_.failed);
    } else if (absl::IsAborted(ended)) {
      ++report_.lost;
    } else if (absl::IsCancelled(ended)) {
      ended = queue_.Release(task);
    } else {
      // The machine failed and not the task, which another may run.
      if (!ran) (void)queue_.Release(task);
      return ended;
    }
    log_ << "task " << task.task << ": "
         << (ended.ok() ? absl::StrCat("exit code ", outcome.exit_code)
                        : std::string(ended.message()))
         << "\n"
         << std::flush;
    return absl::OkStatus();
  }

  // Keeps the task ours until the child has ended. Else it still runs, and the
  // status is Cancelled if the pilot is to end, Aborted if the task is no
  // longer ours, and DeadlineExceeded after the task's time.
  absl::Status KeepWhileRunning(const Task& task, pid_t child,
                                const std::function<void()>& look) {
    while (!HasEnded(child)) {
      look();
      if (told_to_end) {
        return absl::CancelledError("put back: the pilot was told to end");
      }
      if (Now() - began_ > task.time_limit) {
        return absl::DeadlineExceededError(
            absl::StrCat("ended after the task's time, ",
                         absl::FormatDuration(task.time_limit), "\n"));
      }
      if (Now() - renewed_ > queue_.lease() / 4) {
        const absl::StatusOr<bool> ours = queue_.KeepAlive(task);
        // A database that is away for a while is asked again; the lease counts.
        if (ours.ok()) renewed_ = Now();
        if (ours.ok() && !*ours) {
          return absl::AbortedError(
              "it was cancelled, or another pilot has taken it over");
        }
      }
      absl::SleepFor(kLook);
    }
    return absl::OkStatus();
  }

  // Runs a command as the user of the tasks; all that it says is the task's
  // log.
  absl::StatusOr<ExitInfo> RunAsUser(const Task& task,
                                     const std::vector<std::string>& command,
                                     const SubprocessOptions& options,
                                     Outcome* outcome) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<Subprocess> process,
        Subprocess::Start(AsUserOfTasks(command), options));
    const absl::Status kept = KeepWhileRunning(
        task, process->pid(), [&] { TakeLog(*process, outcome); });
    const ExitInfo exit = kept.ok() ? process->Wait(absl::InfiniteDuration())
                                    : process->KillAndWait();
    TakeLog(*process, outcome);
    if (!kept.ok()) return kept;
    return exit;
  }

  // A repository of the task's own, with all branches. Its user clones it: root
  // would follow what that user puts in the way.
  absl::Status Clone(const Task& task, SubprocessOptions options,
                     Outcome* outcome) {
    if (options_.repository.empty()) {
      return absl::FailedPreconditionError(
          "the task builds commits, and this pilot has no repository; next: "
          "start it with --repository=PATH, or what `git clone` takes");
    }
    // Without root it is the user's own environment, with keys for git.
    if (geteuid() != 0) {
      options.clear_environment = false;
      options.environment.clear();
    }
    options.environment.emplace_back("GIT_TERMINAL_PROMPT", "0");
    std::vector<std::string> clone = {"git", "clone", "--quiet", "--shared"};
    std::string from = options_.repository;
    char path[PATH_MAX];
    if (realpath(from.c_str(), path) != nullptr) {
      from = path;
      // Git mistrusts the repository of another user, which we were given.
      clone.insert(clone.begin() + 1, {"-c", "safe.directory=*"});
      clone.push_back("--upload-pack=git -c 'safe.directory=*' upload-pack");
    }
    clone.insert(clone.end(), {"--", from, kRepository});
    OPTRAIL_ASSIGN_OR_RETURN(const ExitInfo exit,
                             RunAsUser(task, clone, options, outcome));
    if (exit.ok()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "--repository=", options_.repository, " cannot be cloned by the user ",
        "of the tasks: ", exit.ToString()));
  }

  // Brings the copy of the shared history up to date. The task reads it and
  // needs no connection, and no credentials, for that.
  absl::Status CopySharedHistory() const {
    OPTRAIL_ASSIGN_OR_RETURN(const tracker::History shared,
                             tracker::History::Open(options_.url));
    // The two differ if a record was replaced or removed since the last time.
    for (const bool again : {false, true}) {
      if (again) (void)RunCommand({"rm", "-rf", copy_});
      OPTRAIL_ASSIGN_OR_RETURN(const tracker::History copy,
                               tracker::History::Open(copy_));
      OPTRAIL_ASSIGN_OR_RETURN(const tracker::CopyReport report,
                               tracker::CopyHistory(shared, copy));
      if (report.unequal.empty()) return absl::OkStatus();
    }
    return absl::UnavailableError(
        "the shared history changed while it was copied");
  }

  // Does that in a child, which can be stopped at any moment; the pilot has no
  // threads.
  absl::Status CopyInAChild(const Task& task) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      return FileError("opening", "a pipe", errno);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      const absl::Status status = CopySharedHistory();
      const std::string message =
          std::string(status.message()).substr(0, PIPE_BUF);
      const bool said = write(ends[1], message.data(), message.size()) ==
                        static_cast<ssize_t>(message.size());
      _exit(said ? static_cast<int>(status.code()) : 1);
    }
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      return FileError("starting", "a process", errno);
    }
    const absl::Status kept = KeepWhileRunning(task, child, [] {});
    if (!kept.ok()) kill(child, SIGKILL);
    int how = 0;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    char text[PIPE_BUF];
    const ssize_t length = read(ends[0], text, sizeof(text));
    close(ends[0]);
    if (!kept.ok()) return kept;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return absl::OkStatus();
    const absl::Status why(
        WIFEXITED(how) ? static_cast<absl::StatusCode>(WEXITSTATUS(how))
                       : absl::StatusCode::kInternal,
        absl::string_view(text,
                          static_cast<size_t>(std::max<ssize_t>(0, length))));
    // The queue tells a database that is away from what the task has met.
    if (absl::IsUnavailable(why)) return why;
    return absl::FailedPreconditionError(
        absl::StrCat("the shared history cannot be copied: ", why.message()));
  }

  // Errors are those of KeepWhileRunning, Unavailable, and what keeps this
  // machine from running any task.
  absl::Status RunCommandOf(const Task& task, const std::string& place,
                            Outcome* outcome) {
    began_ = renewed_ = Now();
    outcome->exit_code = -1;
    const absl::StatusOr<ExitInfo> exit = RunSteps(task, place, outcome);
    if (absl::IsDeadlineExceeded(exit.status()) ||
        absl::IsFailedPrecondition(exit.status()) ||
        absl::IsInvalidArgument(exit.status())) {
      absl::StrAppend(&outcome->log, exit.status().message());
      return absl::OkStatus();
    }
    if (!exit.ok()) return exit.status();
    const bool exited = exit->kind == ExitInfo::Kind::kExited;
    outcome->exit_code = exited ? exit->code : -1;
    outcome->is_result =
        exited && std::find(std::begin(kResultCodes), std::end(kResultCodes),
                            exit->code) != std::end(kResultCodes);
    if (!outcome->is_result) {
      absl::StrAppend(&outcome->log, exit->ToString(), "\n");
    }
    return absl::OkStatus();
  }

  // FailedPrecondition and InvalidArgument are failures of the task.
  absl::StatusOr<ExitInfo> RunSteps(const Task& task, const std::string& place,
                                    Outcome* outcome) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                             WordsOfCommand(task.command));
    SubprocessOptions options;
    options.clear_environment = true;
    options.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                           {"HOME", place},
                           {"TMPDIR", place},
                           {"LANG", "C.UTF-8"}};
    options.working_directory = place;
    options.stderr_mode = StderrMode::kCapture;
    std::string history = JoinPath(place, "history");
    if (JudgesHistory(words)) {
      OPTRAIL_RETURN_IF_ERROR(CopyInAChild(task));
      history = copy_;
    }
    if (BuildsCommits(words)) {
      OPTRAIL_RETURN_IF_ERROR(Clone(task, options, outcome));
      options.working_directory = JoinPath(place, kRepository);
    } else {
      // Code of those commits must not fill a cache that others trust.
      for (const char* const name : kPassedOn) {
        const char* const value = std::getenv(name);
        if (value != nullptr) options.environment.emplace_back(name, value);
      }
    }
    std::vector<std::string> command = options_.program;
    command.insert(command.end(), words.begin(), words.end());
    command.push_back(absl::StrCat("--history=", history));
    return RunAsUser(task, command, options, outcome);
  }

  static void TakeLog(Subprocess& process, Outcome* outcome) {
    outcome->log += process.TakeStderr();
    if (outcome->log.size() > kMostLogBytes) {
      outcome->log.erase(0, outcome->log.size() - kMostLogBytes);
    }
  }

  static absl::Status Collect(const std::string& place,
                              std::vector<tracker::PlacedRecord>* records,
                              std::string* log) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const tracker::History history,
        tracker::History::Open(JoinPath(place, "history")));
    std::vector<tracker::BadFile> bad;
    OPTRAIL_RETURN_IF_ERROR(tracker::ForEachRecord(
        history.store(), &bad,
        [&](absl::string_view folder, const std::string& id,
            const std::string& bytes) {
          records->push_back({std::string(folder), id, bytes});
          return absl::OkStatus();
        }));
    for (const tracker::BadFile& file : bad) {
      absl::StrAppend(log, "not kept: ", file.path, ": ", file.reason, "\n");
    }
    return absl::OkStatus();
  }

  absl::Status Deliver(const Task& task, const std::string& place,
                       const Outcome& outcome) {
    std::vector<tracker::PlacedRecord> records;
    Outcome ended = outcome;
    if (outcome.is_result) {
      const absl::Status collected = Collect(place, &records, &ended.log);
      if (!collected.ok()) {
        records.clear();
        ended.is_result = false;
        absl::StrAppend(&ended.log,
                        "its history cannot be read: ", collected.message(),
                        "\n");
      }
    }
    // The queue may still answer until the lease ends.
    const absl::Duration until = Now() + queue_.lease();
    while (true) {
      const absl::Status finished = queue_.Finish(task, ended, records);
      if (!absl::IsUnavailable(finished) || Now() > until) {
        return finished;
      }
      absl::SleepFor(absl::Seconds(1));
    }
  }

  const PilotOptions& options_;
  JobQueue queue_;
  std::ostream& log_;
  std::string folder_;  // holds the copy and the places of the tasks
  std::string copy_;    // the shared history, for tasks that judge it
  // Times of Now(): when we said that we are here, and when the task that runs
  // began and was renewed.
  absl::optional<absl::Duration> said_;
  absl::Duration began_, renewed_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
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
  OPTRAIL_ASSIGN_OR_RETURN(JobQueue queue,
                           JobQueue::Open(options.url, options.lease));
  const EndSignals signals;
  log << "pilot " << filled.info.id << " on " << filled.info.hardware_id
      << "\n";
  return Pilot(filled, std::move(queue), log).Run();
}

}  // namespace optrail::fleet
