#include "fleet/pilot.h"

#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "tracker/history/copy.h"
#include "tracker/history/history.h"

namespace optrail::fleet {
namespace {

constexpr absl::string_view kCommands[] = {"tune", "bench", "watch", "gate",
                                           "compile"};
// Codes by which commands say what they found (base/exit_code.h); 2 is bad
// input.
constexpr int kResultCodes[] = {0, 1, 3};
constexpr size_t kMostLogBytes = 64 << 10;
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

// Returns whether a task judges the shared history, of which it gets a copy; a
// gate that builds and runs both sides needs none.
bool JudgesHistory(const std::vector<std::string>& words) {
  return words[0] == "gate" &&
         std::none_of(words.begin(), words.end(), [](const std::string& word) {
           return absl::StartsWith(word, "--run") ||
                  absl::StartsWith(word, "--build");
         });
}

// Returns whether the task builds commits of a repository.
bool BuildsCommits(const std::vector<std::string>& words) {
  return words[0] == "watch" || (words[0] == "gate" && !JudgesHistory(words));
}

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
    if (!copy_.empty()) (void)RunCommand({"rm", "-rf", copy_});
    if (options_.folder.empty()) (void)RunCommand({"rm", "-rf", folder_});
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

  absl::Status PrepareFolder() {
    folder_ = options_.folder;
    if (folder_.empty()) {
      const char* const temporary = std::getenv("TMPDIR");
      folder_ = JoinPath(temporary == nullptr ? "/tmp" : temporary,
                         absl::StrCat("optrail-pilot-", options_.info.id));
    }
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder_));
    // Beside it: the user of the tasks owns the folder, and could rename what
    // lies in it.
    copy_ = absl::StrCat(folder_, "-history");
    if (geteuid() != 0) return absl::OkStatus();
    const passwd* const user = getpwnam(options_.run_as.c_str());
    if (user == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          "--run_as=", options_.run_as, ": expected a user of this machine"));
    }
    uid_ = user->pw_uid;
    gid_ = user->pw_gid;
    return Own(folder_);
  }

  absl::Status Own(const std::string& folder) const {
    if (geteuid() != 0 || chown(folder.c_str(), uid_, gid_) == 0) {
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError(
        absl::StrCat(folder, ": it can't be given to ", options_.run_as));
  }

  // The command as another user where that can be, ended with the pilot.
  std::vector<std::string> ArgumentsFor(const std::vector<std::string>& words,
                                        const std::string& history) const {
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
    argv.insert(argv.end(), options_.program.begin(), options_.program.end());
    argv.insert(argv.end(), words.begin(), words.end());
    argv.push_back(absl::StrCat("--history=", history));
    return argv;
  }

  absl::Status RunTask(const Task& task) {
    log_ << "task " << task.task << ", attempt " << task.attempt << ": "
         << task.command << "\n"
         << std::flush;
    const std::string place =
        JoinPath(folder_, absl::StrCat("task-", task.task, "-", task.attempt));
    OPTRAIL_RETURN_IF_ERROR(CreateDirectories(place));
    OPTRAIL_RETURN_IF_ERROR(Own(place));
    Outcome outcome;
    const absl::Status ran = RunCommandOf(task, place, &outcome);
    absl::Status ended = ran;
    if (ran.ok()) ended = Deliver(task, place, outcome);
    (void)RunCommand({"rm", "-rf", place});
    if (ended.ok()) {
      ++(outcome.is_result ? report_.done : report_.failed);
    } else if (absl::IsAborted(ended)) {
      ++report_.lost;
    } else if (absl::IsCancelled(ended)) {
      ended = queue_.Release(task);
    } else {
      return ended;
    }
    log_ << "task " << task.task << ": "
         << (ended.ok() ? absl::StrCat("exit code ", outcome.exit_code)
                        : std::string(ended.message()))
         << "\n"
         << std::flush;
    return absl::OkStatus();
  }

  // A repository of the task's own, with all branches.
  absl::Status Clone(const std::string& to) const {
    if (options_.repository.empty()) {
      return absl::FailedPreconditionError(
          "the task builds commits, and this pilot has no repository; next: "
          "start it with --repository=PATH, or what `git clone` takes");
    }
    OPTRAIL_ASSIGN_OR_RETURN(const CommandResult cloned,
                             RunCommand({"git", "clone", "--quiet", "--shared",
                                         "--", options_.repository, to}));
    if (!cloned.exit.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--repository=", options_.repository,
                       " cannot be cloned: ", cloned.stderr_text));
    }
    if (geteuid() != 0) return absl::OkStatus();
    return RunCommand({"chown", "-R", absl::StrCat(uid_, ":", gid_), to})
        .status();
  }

  // Brings the copy of the shared history up to date. The task reads it and
  // needs no connection, and no credentials, for that.
  absl::Status CopySharedHistory() const {
    OPTRAIL_ASSIGN_OR_RETURN(const tracker::History shared,
                             tracker::History::Open(options_.url));
    // What was replaced or removed since the last time makes the two differ.
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

  // Cancelled if the pilot is to end, Aborted if the task is no longer ours.
  absl::Status RunCommandOf(const Task& task, const std::string& place,
                            Outcome* outcome) {
    const absl::StatusOr<std::vector<std::string>> words =
        WordsOfCommand(task.command);
    if (!words.ok()) {
      *outcome = {false, -1, std::string(words.status().message())};
      return absl::OkStatus();
    }
    std::string history = JoinPath(place, "history");
    if (JudgesHistory(*words)) {
      OPTRAIL_RETURN_IF_ERROR(CopySharedHistory());
      history = copy_;
    }
    SubprocessOptions options;
    options.clear_environment = true;
    options.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                           {"HOME", place},
                           {"TMPDIR", place},
                           {"LANG", "C.UTF-8"}};
    for (const char* const name : kPassedOn) {
      const char* const value = std::getenv(name);
      if (value != nullptr) options.environment.emplace_back(name, value);
    }
    options.working_directory = place;
    if (BuildsCommits(*words)) {
      options.working_directory = JoinPath(place, "repository");
      const absl::Status cloned = Clone(options.working_directory);
      if (!cloned.ok()) {
        *outcome = {false, -1, std::string(cloned.message())};
        return absl::OkStatus();
      }
    }
    options.stderr_mode = StderrMode::kCapture;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::unique_ptr<Subprocess> process,
        Subprocess::Start(ArgumentsFor(*words, history), options));
    const absl::Duration start = Now();
    absl::Duration alive = start;
    while (!HasEnded(process->pid())) {
      TakeLog(*process, outcome);
      if (told_to_end) {
        process->KillAndWait();
        return absl::CancelledError("put back: the pilot was told to end");
      }
      if (Now() - start > task.time_limit) {
        process->KillAndWait();
        absl::StrAppend(&outcome->log, "ended after the task's time, ",
                        absl::FormatDuration(task.time_limit), "\n");
        outcome->exit_code = -1;
        return absl::OkStatus();
      }
      if (Now() - alive > queue_.lease() / 4) {
        const absl::StatusOr<bool> ours = queue_.KeepAlive(task);
        // A database that is away for a while is asked again; the lease counts.
        if (ours.ok()) alive = Now();
        if (ours.ok() && !*ours) {
          process->KillAndWait();
          return absl::AbortedError(
              "it was cancelled, or another pilot has taken it over");
        }
      }
      absl::SleepFor(kLook);
    }
    const ExitInfo exit = process->Wait(absl::InfiniteDuration());
    TakeLog(*process, outcome);
    const bool exited = exit.kind == ExitInfo::Kind::kExited;
    outcome->exit_code = exited ? exit.code : -1;
    outcome->is_result =
        exited && std::find(std::begin(kResultCodes), std::end(kResultCodes),
                            exit.code) != std::end(kResultCodes);
    if (!outcome->is_result) {
      absl::StrAppend(&outcome->log, exit.ToString(), "\n");
    }
    return absl::OkStatus();
  }

  static void TakeLog(Subprocess& process, Outcome* outcome) {
    outcome->log += process.TakeStderr();
    if (outcome->log.size() > kMostLogBytes) {
      outcome->log.erase(0, outcome->log.size() - kMostLogBytes);
    }
  }

  absl::Status Deliver(const Task& task, const std::string& place,
                       const Outcome& outcome) {
    std::vector<tracker::PlacedRecord> records;
    Outcome ended = outcome;
    if (outcome.is_result) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const tracker::History history,
          tracker::History::Open(JoinPath(place, "history")));
      std::vector<tracker::BadFile> bad;
      OPTRAIL_RETURN_IF_ERROR(tracker::ForEachRecord(
          history.store(), &bad,
          [&](absl::string_view folder, const std::string& id,
              const std::string& bytes) {
            records.push_back({std::string(folder), id, bytes});
            return absl::OkStatus();
          }));
      for (const tracker::BadFile& file : bad) {
        absl::StrAppend(&ended.log, "not kept: ", file.path, ": ", file.reason,
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
  std::string folder_;
  std::string copy_;  // of the shared history, for tasks that judge it
  absl::optional<absl::Duration> said_;  // when, of Now()
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  PilotReport report_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> WordsOfCommand(
    const std::string& command) {
  std::vector<std::string> words;
  bool in_word = false, in_quotes = false;
  for (const char c : command) {
    const bool is_control = static_cast<unsigned char>(c) < ' ';
    if (is_control || (!in_quotes && absl::string_view("\"\\`$").find(c) !=
                                         absl::string_view::npos)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': expected words and flags of optrail, with no quotes but '...' "
          "around words that belong together"));
    }
    if (c == '\'') {
      in_quotes = !in_quotes;
    } else if (c == ' ' && !in_quotes) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c != '\'') words.back() += c;
  }
  if (in_quotes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", command, "': a quote that is opened and not closed"));
  }
  if (words.empty() || std::find(std::begin(kCommands), std::end(kCommands),
                                 words[0]) == std::end(kCommands)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", command, "': expected a command that pilots run: ",
                     absl::StrJoin(kCommands, ", ")));
  }
  for (const std::string& word : words) {
    if (words[0] == "gate" && absl::StartsWith(word, "--wait")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': the task judges a copy of the history, to which nothing comes; "
          "leave out --wait, and submit it once all is measured"));
    }
    if (!absl::StartsWith(word, "--history")) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", command, "': the pilot chooses --history; leave it out"));
  }
  return words;
}

absl::StatusOr<std::vector<std::string>> PerCommit(
    const std::vector<std::string>& commands,
    const std::vector<std::string>& commits) {
  std::vector<std::string> tasks;
  for (const std::string& command : commands) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                             WordsOfCommand(command));
    const bool has_range =
        std::any_of(words.begin() + 1, words.end(), [](const auto& word) {
          return !absl::StartsWith(word, "-") ||
                 absl::StartsWith(word, "--limit");
        });
    if (words[0] != "watch" || has_range) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", command,
          "': with --each_commit, expected watch and flags like --run=COMMAND, "
          "without a range and --limit"));
    }
    const absl::string_view flags =
        absl::StripLeadingAsciiWhitespace(command).substr(words[0].size());
    for (const std::string& commit : commits) {
      tasks.push_back(absl::StrCat("watch ", commit, " --limit=1", flags));
    }
  }
  return tasks;
}

absl::StatusOr<PilotReport> RunPilot(const PilotOptions& options,
                                     std::ostream& log) {
  PilotOptions filled = options;
  filled.info.id = NewPilotId(options.info.host);
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
