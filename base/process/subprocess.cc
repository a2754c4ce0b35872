#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/base/config.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process/process_guard.h"
#include "base/status_macros.h"
#include "base/text/units.h"

namespace optrail {
namespace {

constexpr char kParentPidVariable[] = "OPTRAIL_PARENT_PID";
constexpr int kFrameHeaderBytes = 4;

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr bool kShadowMemoryIsData = true;
#else
constexpr bool kShadowMemoryIsData = false;
#endif

void CloseDescriptor(int* fd) {
  if (*fd >= 0) close(std::exchange(*fd, -1));
}

void EncodeLength(uint32_t length, char* out) {
  for (int i = 0; i < kFrameHeaderBytes; ++i) {
    out[i] = static_cast<char>(length >> (8 * i));
  }
}

uint32_t DecodeLength(const char* bytes) {
  uint32_t length = 0;
  for (int i = kFrameHeaderBytes - 1; i >= 0; --i) {
    length = (length << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

absl::Status CheckFrameSize(size_t size_bytes) {
  if (static_cast<int64_t>(size_bytes) <= kMaxFrameBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("sending a message of ", size_bytes, " bytes; the most is ",
                   kMaxFrameBytes));
}

// write(2) that answers EPIPE without the signal: SIGPIPE goes to the thread
// that writes, so it is enough to block it here and to take it back.
ssize_t WriteWithoutSignal(int fd, const char* data, size_t size_bytes) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = write(fd, data, size_bytes);
  const int error_number = errno;
  if (written < 0 && error_number == EPIPE && !was_pending) {
    const timespec no_wait = {0, 0};
    while (sigtimedwait(&pipe_signal, nullptr, &no_wait) < 0 &&
           errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return written;
}

void AppendTail(absl::string_view text, int64_t max_bytes, std::string* tail) {
  tail->append(text.data(), text.size());
  if (static_cast<int64_t>(tail->size()) > max_bytes) {
    tail->erase(0, tail->size() - static_cast<size_t>(max_bytes));
  }
}

int PollTimeoutMs(absl::Duration duration) {
  if (duration <= absl::ZeroDuration()) return 0;
  const int64_t ms =
      absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
  return static_cast<int>(std::min<int64_t>(ms, 3600 * 1000));
}

// How long a guard may take to kill its tree.
constexpr int kGuardPatienceMs = 1500;

// A wait that takes long is interrupted by looks at the child's memory this
// many times more rarely than in the beginning: each takes its core away where
// both share one.
constexpr int kRarestLooks = 5;

// Of a deadline, before it is looked at whether the child waits for a core.
constexpr double kUnwatchedShare = .1;

// A pipe none of whose ends a concurrently started child inherits.
struct Pipe {
  int read_fd = -1;
  int write_fd = -1;
  ~Pipe() {
    CloseDescriptor(&read_fd);
    CloseDescriptor(&write_fd);
  }
  absl::Status Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
      return absl::ErrnoToStatus(errno, "creating a pipe");
    }
    read_fd = fds[0];
    write_fd = fds[1];
    return absl::OkStatus();
  }
};

std::vector<std::string> EnvironmentFor(const SubprocessOptions& options) {
  std::vector<std::string> result;
  auto is_overridden = [&](absl::string_view name) {
    if (name == kParentPidVariable) return true;
    for (const auto& [key, unused] : options.environment) {
      if (key == name) return true;
    }
    return false;
  };
  if (!options.clear_environment) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const absl::string_view text = *entry;
      if (!is_overridden(text.substr(0, text.find('=')))) {
        result.emplace_back(text);
      }
    }
  }
  for (const auto& [key, value] : options.environment) {
    result.push_back(absl::StrCat(key, "=", value));
  }
  result.push_back(absl::StrCat(kParentPidVariable, "=", getpid()));
  return result;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) {
    pointers.push_back(const_cast<char*>(s.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

absl::Duration ToDuration(const timeval& time) {
  return absl::Seconds(time.tv_sec) + absl::Microseconds(time.tv_usec);
}

// How many processes the kernel has killed for want of memory.
absl::optional<int64_t> KernelKills(const std::string& counts) {
  std::ifstream file(counts);
  std::string name;
  int64_t count = 0;
  while (file >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return absl::nullopt;
}

}  // namespace

std::string ExitInfo::ToString() const {
  switch (kind) {
    case Kind::kExited:
      return absl::StrCat("exited with code ", code);
    case Kind::kSignaled:
      return absl::StrCat("killed by signal ", signal, " (", strsignal(signal),
                          ")");
    case Kind::kTimedOut:
      return "timed out and was killed";
    case Kind::kOutOfMemory:
      return absl::StrCat("exceeded its memory limit of ",
                          FormatBytes(static_cast<double>(memory_limit_bytes)),
                          " and was killed");
    case Kind::kMachineOutOfMemory:
      return absl::StrCat(
          "was killed by the kernel, which had no memory left for it or for "
          "others; it held ",
          FormatBytes(static_cast<double>(max_resident_bytes)));
    case Kind::kKilled:
      return "was killed";
  }
  return "ended";
}

namespace {

// Starts `argv` with these ends of pipes as its standard streams.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv,
                            const SubprocessOptions& options, const Pipe& in,
                            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write_fd, STDOUT_FILENO);
  if (options.stderr_mode == StderrMode::kCapture) {
    posix_spawn_file_actions_adddup2(&actions, err.write_fd, STDERR_FILENO);
  } else if (options.stderr_mode == StderrMode::kDiscard) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  }
  // Descriptors that some library opened without CLOEXEC stay behind.
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
  if (!options.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions,
                                         options.working_directory.c_str());
  }

  // A group of its own, to be killed as a whole, and the signal dispositions of
  // a fresh process whatever the parent ignores or blocks.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number :
       {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ}) {
    sigaddset(&defaults, number);
  }
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);

  const std::vector<std::string> environment = EnvironmentFor(options);
  pid_t pid = -1;
  const int error_number =
      posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes,
                   Pointers(argv).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error_number == 0) return pid;
  std::string what = absl::StrCat("starting ", argv[0]);
  if (!options.working_directory.empty()) {
    absl::StrAppend(&what, " in ", options.working_directory);
  }
  return absl::ErrnoToStatus(error_number, what);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Start(
    const std::vector<std::string>& command, const SubprocessOptions& options) {
  if (command.empty() || command[0].empty()) {
    return absl::InvalidArgumentError("starting a process: no command");
  }
  const std::vector<std::string> argv =
      options.guard.empty()
          ? command
          : GuardedArguments(options.guard, options.max_resident_bytes,
                             command);
  Pipe in, out, err;
  OPTRAIL_RETURN_IF_ERROR(in.Open());
  OPTRAIL_RETURN_IF_ERROR(out.Open());
  if (options.stderr_mode == StderrMode::kCapture) {
    OPTRAIL_RETURN_IF_ERROR(err.Open());
  }

  std::unique_ptr<Subprocess> process(new Subprocess);
  process->options_ = options;
  process->start_ = process->Now();
  process->kernel_kills_at_start_ = KernelKills(options.kernel_counts);
  process->reaped_ = true;  // until there is one
  OPTRAIL_ASSIGN_OR_RETURN(const pid_t pid, Spawn(argv, options, in, out, err));
  process->reaped_ = false;
  process->pid_ = pid;
  if (options.max_data_bytes > 0 && !kShadowMemoryIsData) {
    const rlimit limit = {static_cast<rlim_t>(options.max_data_bytes),
                          static_cast<rlim_t>(options.max_data_bytes)};
    if (prlimit(pid, RLIMIT_DATA, &limit, nullptr) != 0 && errno != ESRCH) {
      return absl::ErrnoToStatus(errno, "limiting the memory of a process");
    }
  }
  process->pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process->pid_fd_ < 0) {
    return absl::ErrnoToStatus(errno, "watching a process (pidfd_open)");
  }
  process->stdin_fd_ = std::exchange(in.write_fd, -1);
  process->stdout_fd_ = std::exchange(out.read_fd, -1);
  process->stderr_fd_ = std::exchange(err.read_fd, -1);
  // Our ends never block, so that deadlines hold; the child's ends are its own.
  for (const int fd :
       {process->stdin_fd_, process->stdout_fd_, process->stderr_fd_}) {
    if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return process;
}

Subprocess::~Subprocess() {
  if (!reaped_) KillAndWait();
  CloseDescriptor(&pid_fd_);
  CloseDescriptor(&stdin_fd_);
  CloseDescriptor(&stdout_fd_);
  CloseDescriptor(&stderr_fd_);
}

absl::Duration Subprocess::Now() const {
  const Clock* clock =
      options_.clock != nullptr ? options_.clock : Clock::Real();
  return absl::Nanoseconds(clock->NowNs());
}

bool Subprocess::IsAboveMemoryCap() const {
  // A guard watches the whole tree.
  if (options_.max_resident_bytes <= 0 || !options_.guard.empty()) return false;
  std::FILE* file =
      std::fopen(absl::StrCat("/proc/", pid_, "/statm").c_str(), "re");
  if (file == nullptr) return false;
  long long total_pages = 0, resident_pages = 0;
  const int fields =
      std::fscanf(file, "%lld %lld", &total_pages, &resident_pages);
  std::fclose(file);
  return fields == 2 &&
         resident_pages * sysconf(_SC_PAGESIZE) > options_.max_resident_bytes;
}

void Subprocess::DrainStderr() {
  char buffer[4096];
  while (stderr_fd_ >= 0) {
    const ssize_t n = read(stderr_fd_, buffer, sizeof(buffer));
    if (n > 0) {
      AppendTail(absl::string_view(buffer, static_cast<size_t>(n)),
                 options_.max_stderr_bytes, &stderr_tail_);
    } else if (n == 0) {
      CloseDescriptor(&stderr_fd_);
    } else if (errno != EINTR) {
      return;
    }
  }
}

Subprocess::Wakeup Subprocess::WaitForDescriptor(int fd, short events,
                                                 absl::Duration deadline) {
  absl::Duration interval = options_.watchdog_interval;
  while (true) {
    absl::Duration patience = deadline - Now();
    if (options_.max_resident_bytes > 0) {
      patience = std::min(patience, interval);
      interval =
          std::min(2 * interval, kRarestLooks * options_.watchdog_interval);
    }
    // poll ignores negative descriptors.
    pollfd polled[3] = {
        {fd, events, 0}, {pid_fd_, POLLIN, 0}, {stderr_fd_, POLLIN, 0}};
    const int ready = poll(polled, 3, PollTimeoutMs(patience));
    if (ready < 0 && errno != EINTR) return Wakeup::kExited;
    if (ready > 0) {
      if (polled[2].revents != 0) DrainStderr();
      if (polled[0].revents != 0) return Wakeup::kReady;
      if (polled[1].revents != 0) return Wakeup::kExited;
    }
    if (IsAboveMemoryCap()) {
      KillGroup(ExitInfo::Kind::kOutOfMemory);
      return Wakeup::kOutOfMemory;
    }
    if (Now() >= deadline) return Wakeup::kTimeout;
  }
}

Subprocess::Wakeup Subprocess::WaitForDescriptor(int fd, short events,
                                                 Deadline& deadline) {
  while (true) {
    const Wakeup wakeup = WaitForDescriptor(fd, events, deadline.next());
    if (wakeup != Wakeup::kTimeout || deadline.IsOver()) return wakeup;
  }
}

Subprocess::Deadline::Deadline(const Subprocess& process,
                               absl::Duration timeout)
    : process_(process),
      timeout_(timeout),
      start_(process.Now()),
      next_(start_ +
            (process.options_.deadline_stretch > 1 ? kUnwatchedShare : 1) *
                timeout) {}

bool Subprocess::Deadline::IsOver() {
  const absl::Duration now = process_.Now();
  if (now < next_) return false;
  const double stretch = process_.options_.deadline_stretch;
  if (stretch <= 1) return true;
  if (waits_.has_value()) {
    next_ = start_ + std::min(timeout_ + waits_->Longest(), stretch * timeout_);
  } else {
    waits_.emplace(process_.pid_);
    next_ = start_ + timeout_;
  }
  return now >= next_;
}

absl::Status Subprocess::WriteFrame(absl::string_view payload,
                                    absl::Duration timeout) {
  OPTRAIL_RETURN_IF_ERROR(CheckFrameSize(payload.size()));
  Deadline deadline(*this, timeout);
  std::string frame(kFrameHeaderBytes, '\0');
  EncodeLength(static_cast<uint32_t>(payload.size()), &frame[0]);
  frame.append(payload.data(), payload.size());
  absl::string_view rest = frame;
  while (!rest.empty()) {
    if (stdin_fd_ < 0) return absl::UnavailableError("the input is closed");
    const ssize_t n = WriteWithoutSignal(stdin_fd_, rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      return absl::UnavailableError(absl::StrCat("sending to process ", pid_,
                                                 ": ", std::strerror(errno)));
    }
    switch (WaitForDescriptor(stdin_fd_, POLLOUT, deadline)) {
      case Wakeup::kReady:
        break;
      case Wakeup::kTimeout:
        return absl::DeadlineExceededError(absl::StrCat(
            "process ", pid_, " did not take a message of ", payload.size(),
            " bytes within ", absl::FormatDuration(timeout)));
      case Wakeup::kOutOfMemory:
        return absl::ResourceExhaustedError(
            absl::StrCat("process ", pid_, " exceeded its memory limit of ",
                         options_.max_resident_bytes, " bytes"));
      case Wakeup::kExited:
        return absl::UnavailableError(
            absl::StrCat("process ", pid_, " has ended"));
    }
  }
  return absl::OkStatus();
}

bool Subprocess::HasOutput() const {
  pollfd ready = {stdout_fd_, POLLIN, 0};
  return poll(&ready, 1, /*timeout=*/0) != 0;
}

absl::StatusOr<std::string> Subprocess::ReadFrame(absl::Duration timeout) {
  Deadline deadline(*this, timeout);
  char header[kFrameHeaderBytes];
  std::string payload;
  size_t received = 0;  // of header and payload together
  while (received < kFrameHeaderBytes + payload.size() ||
         received < kFrameHeaderBytes) {
    char* target = received < kFrameHeaderBytes
                       ? header + received
                       : &payload[received - kFrameHeaderBytes];
    const size_t wanted = received < kFrameHeaderBytes
                              ? kFrameHeaderBytes - received
                              : kFrameHeaderBytes + payload.size() - received;
    const ssize_t n = read(stdout_fd_, target, wanted);
    if (n > 0) {
      received += static_cast<size_t>(n);
      if (received == kFrameHeaderBytes) {
        const uint32_t length = DecodeLength(header);
        if (length > kMaxFrameBytes) {
          return absl::DataLossError(
              absl::StrCat("process ", pid_, " announced a message of ", length,
                           " bytes; the most is ", kMaxFrameBytes));
        }
        payload.resize(length);
      }
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      const Wakeup wakeup = WaitForDescriptor(stdout_fd_, POLLIN, deadline);
      if (wakeup == Wakeup::kReady) continue;
      if (wakeup == Wakeup::kTimeout) {
        return absl::DeadlineExceededError(
            absl::StrCat("no message from process ", pid_, " within ",
                         absl::FormatDuration(timeout)));
      }
      if (wakeup == Wakeup::kOutOfMemory) {
        return absl::ResourceExhaustedError(
            absl::StrCat("process ", pid_, " exceeded its memory limit of ",
                         options_.max_resident_bytes, " bytes"));
      }
    }
    const std::string what = absl::StrCat("process ", pid_, " has ended");
    if (received > 0) {
      return absl::DataLossError(absl::StrCat(what, " within a message"));
    }
    return absl::UnavailableError(what);
  }
  return payload;
}

void Subprocess::CloseInput() { CloseDescriptor(&stdin_fd_); }

void Subprocess::KillGroup(ExitInfo::Kind why) {
  if (reaped_ || killed_) return;
  // One that ended by itself just before is reported as such.
  if (TryReap()) return;
  killed_ = true;
  kill_reason_ = why;
  if (!options_.guard.empty()) {
    // It knows the tree; a killed one would leave what it guards.
    kill(pid_, SIGTERM);
    pollfd ended = {pid_fd_, POLLIN, 0};
    if (poll(&ended, 1, kGuardPatienceMs) > 0) return;
  }
  kill(-pid_, SIGKILL);
}

bool Subprocess::KernelRanOutOfMemory() const {
  const absl::optional<int64_t> kills = KernelKills(options_.kernel_counts);
  return kills.has_value() && kernel_kills_at_start_.has_value() &&
         *kills > *kernel_kills_at_start_;
}

bool Subprocess::TryReap() {
  if (reaped_) return true;
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info,
             WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return false;
  }
  Reap();
  return true;
}

void Subprocess::Reap() {
  if (reaped_) return;
  // While the leader is a zombie its group id can't be taken by another.
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) < 0 &&
         errno == EINTR) {
  }
  kill(-pid_, SIGKILL);
  int status = 0;
  rusage usage = {};
  while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  FinishReaping(status, &usage);
  DrainStderr();
}

void Subprocess::FinishReaping(int wait_status, const void* usage) {
  const rusage& used = *static_cast<const rusage*>(usage);
  reaped_ = true;
  exit_.wall_time = Now() - start_;
  exit_.cpu_time = ToDuration(used.ru_utime) + ToDuration(used.ru_stime);
  exit_.max_resident_bytes = int64_t{used.ru_maxrss} * 1024;
  exit_.memory_limit_bytes = options_.max_resident_bytes;
  if (WIFEXITED(wait_status)) {
    exit_.kind = ExitInfo::Kind::kExited;
    exit_.code = WEXITSTATUS(wait_status);
    if (options_.guard.empty()) return;
    // Also if it was killed while it did that.
    if (exit_.code == kGuardOutOfMemoryCode) {
      exit_.kind = ExitInfo::Kind::kOutOfMemory;
    } else if (killed_) {
      exit_.kind = kill_reason_;
    }
    return;
  }
  exit_.signal = WTERMSIG(wait_status);
  exit_.kind = ExitInfo::Kind::kSignaled;
  if (exit_.signal != SIGKILL) return;
  if (killed_) {
    exit_.kind = kill_reason_;
  } else if (KernelRanOutOfMemory()) {
    exit_.kind = ExitInfo::Kind::kMachineOutOfMemory;
  }
}

ExitInfo Subprocess::Wait(absl::Duration timeout) {
  const absl::Duration deadline = Now() + timeout;
  char dropped[4096];
  while (!reaped_) {
    switch (WaitForDescriptor(stdout_fd_, POLLIN, deadline)) {
      case Wakeup::kReady: {
        const ssize_t n = read(stdout_fd_, dropped, sizeof(dropped));
        if (n == 0) CloseDescriptor(&stdout_fd_);
        break;
      }
      case Wakeup::kTimeout:
        KillGroup(ExitInfo::Kind::kTimedOut);
        Reap();
        break;
      case Wakeup::kOutOfMemory:
      case Wakeup::kExited:
        Reap();
        break;
    }
  }
  return exit_;
}

ExitInfo Subprocess::KillAndWait() {
  KillGroup(ExitInfo::Kind::kKilled);
  Reap();
  return exit_;
}

std::string Subprocess::TakeStderr() {
  DrainStderr();
  return std::exchange(stderr_tail_, std::string());
}

absl::StatusOr<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                         const CommandOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> process,
                           Subprocess::Start(argv, options));
  const absl::Duration deadline = process->Now() + options.timeout;
  CommandResult result;
  absl::string_view input = options.stdin_text;
  if (input.empty()) process->CloseInput();
  // False at the end of the output, or where there is none right now.
  auto read_some = [&] {
    char buffer[65536];
    const ssize_t n = read(process->stdout_fd_, buffer, sizeof(buffer));
    if (n == 0) CloseDescriptor(&process->stdout_fd_);
    if (n <= 0) return n < 0 && errno == EINTR;
    const int64_t room = options.max_stdout_bytes -
                         static_cast<int64_t>(result.stdout_text.size());
    const int64_t kept = std::clamp<int64_t>(room, 0, n);
    result.stdout_text.append(buffer, static_cast<size_t>(kept));
    if (kept < n) result.stdout_truncated = true;
    return true;
  };
  while (process->running()) {
    // Feeds as much as the pipe takes; while it is full, looks again soon, so
    // that one descriptor at a time is enough to wait for.
    while (!input.empty() && process->stdin_fd_ >= 0) {
      const ssize_t n =
          WriteWithoutSignal(process->stdin_fd_, input.data(), input.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0) input = {};  // the child reads no more: its right
      if (n >= 0) input.remove_prefix(static_cast<size_t>(n));
      if (input.empty()) process->CloseInput();
    }
    const absl::Duration until =
        input.empty()
            ? deadline
            : std::min(deadline, process->Now() + absl::Milliseconds(2));
    switch (process->WaitForDescriptor(process->stdout_fd_, POLLIN, until)) {
      case Subprocess::Wakeup::kReady:
        read_some();
        break;
      case Subprocess::Wakeup::kTimeout:
        if (process->Now() < deadline) break;
        process->KillGroup(ExitInfo::Kind::kTimedOut);
        process->Reap();
        break;
      case Subprocess::Wakeup::kOutOfMemory:
      case Subprocess::Wakeup::kExited:
        process->Reap();
        break;
    }
  }
  // Reads what the child wrote before it ended, without waiting for
  // grandchildren.
  while (process->stdout_fd_ >= 0 && read_some()) {
  }
  result.exit = process->exit_;
  result.stderr_text = process->TakeStderr();
  return result;
}

void DieWithParent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  const char* parent = std::getenv(kParentPidVariable);
  int pid;
  if (parent != nullptr && absl::SimpleAtoi(parent, &pid) && getppid() != pid) {
    _exit(1);
  }
}

absl::StatusOr<std::unique_ptr<FrameChannel>>
FrameChannel::TakeStandardStreams() {
  const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
      dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return absl::ErrnoToStatus(errno, "taking over the standard streams");
  }
  close(null);
  return std::make_unique<FrameChannel>(in, out);
}

FrameChannel::~FrameChannel() {
  close(read_fd_);
  if (write_fd_ != read_fd_) close(write_fd_);
}

bool FrameChannel::WaitReadable(absl::Duration wait) {
  const absl::Duration deadline =
      absl::Nanoseconds(Clock::Real()->NowNs()) + wait;
  while (true) {
    const absl::Duration left =
        deadline - absl::Nanoseconds(Clock::Real()->NowNs());
    pollfd polled = {read_fd_, POLLIN, 0};
    const int ready = poll(&polled, 1, PollTimeoutMs(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // Read says what it is
    if (left <= absl::ZeroDuration()) return false;
  }
}

absl::StatusOr<std::string> FrameChannel::Read() {
  // Reads exactly `size_bytes` unless the input ends.
  auto read_exactly = [this](char* data, size_t size_bytes) -> ssize_t {
    size_t received = 0;
    while (received < size_bytes) {
      const ssize_t n = read(read_fd_, data + received, size_bytes - received);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return -1;
      if (n == 0) break;
      received += static_cast<size_t>(n);
    }
    return static_cast<ssize_t>(received);
  };
  char header[kFrameHeaderBytes];
  const ssize_t n = read_exactly(header, kFrameHeaderBytes);
  if (n < 0) return absl::ErrnoToStatus(errno, "reading a message");
  if (n == 0) return absl::OutOfRangeError("the other side has closed");
  const uint32_t length = n == kFrameHeaderBytes ? DecodeLength(header) : 0;
  std::string payload;
  if (n < kFrameHeaderBytes || length > kMaxFrameBytes) {
    return absl::DataLossError("reading a message: its header is broken");
  }
  payload.resize(length);
  if (read_exactly(&payload[0], length) != static_cast<ssize_t>(length)) {
    return absl::DataLossError("the other side closed within a message");
  }
  return payload;
}

absl::Status FrameChannel::Write(absl::string_view payload) {
  OPTRAIL_RETURN_IF_ERROR(CheckFrameSize(payload.size()));
  std::string frame(kFrameHeaderBytes, '\0');
  EncodeLength(static_cast<uint32_t>(payload.size()), &frame[0]);
  frame.append(payload.data(), payload.size());
  absl::string_view rest = frame;
  while (!rest.empty()) {
    const ssize_t n = WriteWithoutSignal(write_fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "writing a message");
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace optrail
