#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "base/process/frames.h"
#include "base/process/process_guard.h"
#include "base/process/spawn.h"
#include "base/status_macros.h"
#include "base/text/units.h"

namespace optrail {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr bool kShadowMemoryIsData = true;
#else
constexpr bool kShadowMemoryIsData = false;
#endif

void AppendTail(absl::string_view text, int64_t max_bytes, std::string* tail) {
  tail->append(text.data(), text.size());
  if (static_cast<int64_t>(tail->size()) > max_bytes) {
    tail->erase(0, tail->size() - static_cast<size_t>(max_bytes));
  }
}

// How long a guard may take to kill its tree.
constexpr int kGuardPatienceMs = 1500;

// A wait that takes long is interrupted by looks at the child's memory this
// many times more rarely than in the beginning: each takes its core away where
// both share one.
constexpr int kRarestLooks = 5;

// Of a deadline, before it is looked at whether the child waits for a core.
constexpr double kUnwatchedShare = .1;

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

absl::Status MemoryError(pid_t pid, int64_t limit_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("process ", pid, " exceeded its memory limit of ",
                   limit_bytes, " bytes"));
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
  OPTRAIL_ASSIGN_OR_RETURN(const std::string frame, FrameOf(payload));
  Deadline deadline(*this, timeout);
  absl::string_view rest = frame;
  while (!rest.empty()) {
    if (stdin_fd_ < 0) return absl::UnavailableError("the input is closed");
    const ssize_t n = WriteWithoutSignal(stdin_fd_, rest);
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
        return MemoryError(pid_, options_.max_resident_bytes);
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
        return MemoryError(pid_, options_.max_resident_bytes);
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
      const ssize_t n = WriteWithoutSignal(process->stdin_fd_, input);
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

}  // namespace optrail
