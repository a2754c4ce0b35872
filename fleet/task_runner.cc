#include "fleet/task_runner.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"
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

// Returns whether the child has ended; it stays to be waited for.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// Waits until the child has ended. Else it still runs, and the error is that of
// `may_go_on`.
absl::Status WaitWhile(const TaskRunner::MayGoOn& may_go_on, pid_t child,
                       const std::function<void()>& look) {
  while (!HasEnded(child)) {
    look();
    OPTRAIL_RETURN_IF_ERROR(may_go_on());
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

void TakeLog(Subprocess& process, Outcome* outcome) {
  outcome->log += process.TakeStderr();
  if (outcome->log.size() > kMostLogBytes) {
    outcome->log.erase(0, outcome->log.size() - kMostLogBytes);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TaskRunner>> TaskRunner::Create(
    const PilotOptions& options) {
  std::unique_ptr<TaskRunner> runner(new TaskRunner(options));
  OPTRAIL_RETURN_IF_ERROR(runner->Prepare());
  return runner;
}

TaskRunner::~TaskRunner() {
  if (!folder_.empty()) RemovePlace(folder_);
}

void TaskRunner::RemovePlace(const std::string& place) const {
  (void)RunCommand({"rm", "-rf", place});
}

// The folder stays ours: the user of the tasks may pass through it, and can
// neither put anything into it nor rename what it holds.
absl::Status TaskRunner::Prepare() {
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

absl::StatusOr<std::string> TaskRunner::CreatePlace(const Task& task) const {
  const std::string place =
      JoinPath(folder_, absl::StrCat("task-", task.task, "-", task.attempt));
  if (mkdir(place.c_str(), 0755) != 0) {
    return FileError("creating", place, errno);
  }
  if (geteuid() == 0 && lchown(place.c_str(), uid_, gid_) != 0) {
    return FileError(absl::StrCat("giving to ", options_.run_as), place, errno);
  }
  return place;
}

// The command as another user where that can be, ended with the pilot.
std::vector<std::string> TaskRunner::AsUserOfTasks(
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

// Runs a command as the user of the tasks; all that it says is the task's
// log. What it leaves behind would disturb the next task, and could change its
// folder.
absl::StatusOr<ExitInfo> TaskRunner::RunAsUser(
    const std::vector<std::string>& command, SubprocessOptions options,
    const MayGoOn& may_go_on, Outcome* outcome) const {
  options.guard = options_.guard;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process,
                           Subprocess::Start(AsUserOfTasks(command), options));
  const absl::Status kept =
      WaitWhile(may_go_on, process->pid(), [&] { TakeLog(*process, outcome); });
  const ExitInfo exit = kept.ok() ? process->Wait(absl::InfiniteDuration())
                                  : process->KillAndWait();
  TakeLog(*process, outcome);
  if (!kept.ok()) return kept;
  return exit;
}

// A repository of the task's own, with all branches. Its user clones it: root
// would follow what that user puts in the way.
absl::Status TaskRunner::Clone(SubprocessOptions options,
                               const MayGoOn& may_go_on,
                               Outcome* outcome) const {
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
                           RunAsUser(clone, options, may_go_on, outcome));
  if (exit.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--repository=", options_.repository, " cannot be cloned by the user ",
      "of the tasks: ", exit.ToString()));
}

// Brings the copy of the shared history up to date. The task reads it and
// needs no connection, and no credentials, for that.
absl::Status TaskRunner::CopySharedHistory() const {
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
absl::Status TaskRunner::CopyInAChild(const MayGoOn& may_go_on) const {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FileError("opening", "a pipe", errno);
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
  const absl::Status kept = WaitWhile(may_go_on, child, [] {});
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
  if (MayPass(why)) return why;
  return absl::FailedPreconditionError(
      absl::StrCat("the shared history cannot be copied: ", why.message()));
}

absl::Status TaskRunner::Run(const Task& task, const std::string& place,
                             const MayGoOn& may_go_on, Outcome* outcome) {
  outcome->exit_code = -1;
  const absl::StatusOr<ExitInfo> exit =
      RunSteps(task, place, may_go_on, outcome);
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
absl::StatusOr<ExitInfo> TaskRunner::RunSteps(const Task& task,
                                              const std::string& place,
                                              const MayGoOn& may_go_on,
                                              Outcome* outcome) const {
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
    OPTRAIL_RETURN_IF_ERROR(CopyInAChild(may_go_on));
    history = copy_;
  }
  if (BuildsCommits(words)) {
    OPTRAIL_RETURN_IF_ERROR(Clone(options, may_go_on, outcome));
    options.working_directory = JoinPath(place, kRepository);
  } else {
    // Code of those commits must not fill a cache that others trust.
    for (const char* const name : kPassedOn) {
      const char* const value = std::getenv(name);
      if (value != nullptr) options.environment.emplace_back(name, value);
    }
  }
  std::vector<std::string> command = options_.program;
  // The words behind "--" are for another program.
  const auto end = std::find(words.begin(), words.end(), "--");
  command.insert(command.end(), words.begin(), end);
  command.push_back(absl::StrCat("--history=", history));
  command.insert(command.end(), end, words.end());
  return RunAsUser(command, options, may_go_on, outcome);
}

absl::StatusOr<std::vector<tracker::PlacedRecord>> TaskRunner::Records(
    const std::string& place, std::string* log) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(JoinPath(place, "history")));
  std::vector<tracker::PlacedRecord> records;
  std::vector<tracker::BadFile> bad;
  OPTRAIL_RETURN_IF_ERROR(tracker::ForEachRecord(
      history.store(), &bad,
      [&](absl::string_view folder, const std::string& id,
          const std::string& bytes) {
        records.push_back({std::string(folder), id, bytes});
        return absl::OkStatus();
      }));
  for (const tracker::BadFile& file : bad) {
    absl::StrAppend(log, "not kept: ", file.path, ": ", file.reason, "\n");
  }
  return records;
}

}  // namespace optrail::fleet
