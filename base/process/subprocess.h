#ifndef OPTRAIL_BASE_PROCESS_SUBPROCESS_H_
#define OPTRAIL_BASE_PROCESS_SUBPROCESS_H_

// Child processes with limits: a deadline, a memory cap, and no way to hang,
// crash or outlive the parent unnoticed.
//
// A command, run to its end:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const CommandResult result,
//                            RunCommand({"git", "rev-parse", "HEAD"}, {}));
//   if (!result.exit.ok()) return absl::UnknownError(result.exit.ToString());
//
// A worker that answers messages (the other side is below, "In the child"):
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Subprocess> worker,
//                            Subprocess::Start({binary, "--worker"}, {}));
//   OPTRAIL_RETURN_IF_ERROR(worker->WriteFrame(request, absl::Seconds(1)));
//   absl::StatusOr<std::string> reply = worker->ReadFrame(absl::Seconds(10));
//   if (!reply.ok()) const ExitInfo why = worker->KillAndWait();
//
// Children are started by posix_spawn, never by a bare fork of a process that
// has threads, in a process group of their own, which is killed as a whole.
// They inherit no descriptor but 0, 1 and 2. It is not a shell: no globbing, no
// pipelines. An object is used by one thread at a time.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "base/process/core_waits.h"

namespace optrail {

enum class StderrMode {
  kInherit,  // goes where the parent's goes
  kCapture,  // kept, its last max_stderr_bytes
  kDiscard,
};

struct SubprocessOptions {
  // The folder in which the child starts; empty: that of the parent.
  std::string working_directory;
  // NAME=VALUE pairs on top of the parent's environment (or, with
  // clear_environment, instead of it). The child also gets OPTRAIL_PARENT_PID,
  // for DieWithParent.
  std::vector<std::pair<std::string, std::string>> environment;
  bool clear_environment = false;

  StderrMode stderr_mode = StderrMode::kInherit;
  int64_t max_stderr_bytes = int64_t{64} << 10;

  // The child is killed once more than this is resident in memory, as seen in
  // /proc every watchdog_interval (five times more rarely in the course of a
  // long wait) while the parent waits for it; 0: no cap.
  // What it had beyond the cap by then depends on how fast it allocates.
  int64_t max_resident_bytes = 0;
  absl::Duration watchdog_interval = absl::Milliseconds(10);
  // RLIMIT_DATA, set just after the start; 0: none. Allocations beyond it fail
  // in the child, which then usually aborts. (RLIMIT_AS would break CUDA, which
  // reserves address space that it never uses.) Not set in a build with the
  // address or thread sanitizer, whose terabytes of shadow count as data.
  int64_t max_data_bytes = 0;

  // A binary whose main is a process guard for the right arguments
  // (process_guard.h), "/proc/self/exe" for one: the child's whole tree ends
  // with it, with its deadline and with us, and max_resident_bytes is of the
  // tree. Empty: no guard; then what leaves the process group is on its own.
  std::string guard;

  // What deadlines are measured by: its steady time, so that setting the clock
  // of the machine neither kills a child nor keeps it alive. nullptr: the
  // machine's own. Must outlive the child.
  const Clock* clock = nullptr;
  // Deadlines of frames are put off by what the child waited for a core
  // (core_waits.h), to as many times themselves at most: neighbours on its core
  // are no reason to kill a child that works, and one that hangs still ends. A
  // tenth of a deadline passes before that is looked at, so that short
  // exchanges cost nothing.
  double deadline_stretch = 1;
  // The file in which the kernel counts the processes that it killed for want
  // of memory, the machine's or a control group's ("oom_kill" in proc(5)).
  // Without such a count a child that it kills is one that somebody killed.
  std::string kernel_counts = "/proc/vmstat";
};

// How a child ended.
struct ExitInfo {
  enum class Kind {
    kExited,       // by itself, with `code`
    kSignaled,     // killed by `signal`, not by us for one of the reasons below
    kTimedOut,     // killed by us: past its deadline
    kOutOfMemory,  // killed by us: above max_resident_bytes
    kMachineOutOfMemory,  // killed by the kernel, which had none left
    kKilled,              // killed by us: KillAndWait or the destructor
  };
  Kind kind = Kind::kExited;
  int code = 0;
  int signal = 0;
  int64_t memory_limit_bytes = 0;  // max_resident_bytes
  absl::Duration cpu_time;  // user and system, with its waited-for children
  absl::Duration wall_time;
  int64_t max_resident_bytes = 0;

  bool ok() const { return kind == Kind::kExited && code == 0; }
  // "exited with code 3", "killed by signal 11 (Segmentation fault)", "timed
  // out and was killed", ...
  std::string ToString() const;
};

struct CommandOptions : SubprocessOptions {
  CommandOptions() { stderr_mode = StderrMode::kCapture; }
  std::string stdin_text;
  absl::Duration timeout = absl::InfiniteDuration();
  // Output beyond this is read and dropped; CommandResult says so.
  int64_t max_stdout_bytes = int64_t{16} << 20;
};

struct CommandResult {
  ExitInfo exit;
  std::string stdout_text;
  std::string stderr_text;  // only its end, if it was long
  bool stdout_truncated = false;
};

// Runs `argv` (argv[0] is looked up in PATH) to its end. A child that fails,
// crashes or is killed for its limits is a result, not an error; errors are
// NotFound (no such program), PermissionDenied, and what else keeps a process
// from starting.
absl::StatusOr<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                         const CommandOptions& options = {});

// Frames larger than this are refused by both sides.
inline constexpr int64_t kMaxFrameBytes = int64_t{256} << 20;

class Subprocess {
 public:
  // Starts `command` with pipes on its standard input and output. Errors as
  // RunCommand.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Start(
      const std::vector<std::string>& command,
      const SubprocessOptions& options = {});

  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;
  // Kills what still runs and leaves no zombie.
  ~Subprocess();

  pid_t pid() const { return pid_; }

  // Sends one message: its length in 4 bytes, little-endian, and its bytes.
  //   DeadlineExceeded   the child did not take it in time
  //   Unavailable        the child has closed its input, so usually has ended
  //   ResourceExhausted  the child grew beyond its memory cap and was killed
  // After any of these no further frame can be exchanged.
  absl::Status WriteFrame(absl::string_view payload, absl::Duration timeout);

  // Receives one message. Errors as WriteFrame, and DataLoss where the child
  // ended in the middle of one or announced more than kMaxFrameBytes.
  absl::StatusOr<std::string> ReadFrame(absl::Duration timeout);

  // Whether ReadFrame() would find something: a message, at least its
  // beginning, or the child's end.
  bool HasOutput() const;

  // Tells the child by an end of file that no message will come.
  void CloseInput();

  // Waits for the end; past `timeout`, kills (kTimedOut). Standard output is
  // read and dropped meanwhile.
  ExitInfo Wait(absl::Duration timeout);
  // Kills the child's process group and waits. A child that ended before is
  // reported as it ended.
  ExitInfo KillAndWait();

  // True until the child has been waited for.
  bool running() const { return !reaped_; }

  // With StderrMode::kCapture: the end of what came so far.
  std::string TakeStderr();

 private:
  friend absl::StatusOr<CommandResult> RunCommand(
      const std::vector<std::string>& argv, const CommandOptions& options);
  enum class Wakeup { kReady, kTimeout, kOutOfMemory, kExited };
  // The deadline of a frame: see SubprocessOptions::deadline_stretch.
  class Deadline {
   public:
    Deadline(const Subprocess& process, absl::Duration timeout);
    // Not before then, by process.Now(), is it over.
    absl::Duration next() const { return next_; }
    // If it returns false, next() is later than before.
    bool IsOver();

   private:
    const Subprocess& process_;
    const absl::Duration timeout_;
    const absl::Duration start_;
    absl::Duration next_;
    absl::optional<CoreWaits> waits_;
  };

  Subprocess() = default;
  // Steady, since the clock's arbitrary start; deadlines are such times.
  absl::Duration Now() const;
  // Waits until `fd` is ready for `events`, draining stderr and watching the
  // child's memory meanwhile. fd -1: waits for the child's end only.
  Wakeup WaitForDescriptor(int fd, short events, absl::Duration deadline);
  Wakeup WaitForDescriptor(int fd, short events, Deadline& deadline);
  bool IsAboveMemoryCap() const;
  void DrainStderr();
  void KillGroup(ExitInfo::Kind why);
  bool KernelRanOutOfMemory() const;
  bool TryReap();
  void Reap();
  void FinishReaping(int wait_status, const void* usage);

  SubprocessOptions options_;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int stdin_fd_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
  std::string stderr_tail_;
  absl::Duration start_;
  absl::optional<int64_t> kernel_kills_at_start_;
  bool reaped_ = false;
  bool killed_ = false;
  ExitInfo::Kind kill_reason_ = ExitInfo::Kind::kKilled;
  ExitInfo exit_;
};

// In the child ----------------------------------------------------------------

// Makes this process die (SIGKILL) when the parent does; call it first in the
// main function of a worker. The kernel watches the parent's *thread* that
// started the worker: that thread must live as long as the worker is wanted.
void DieWithParent();

// The worker's end of the frames: takes over descriptors 0 and 1 and gives the
// program harmless ones instead (empty input; standard output goes to standard
// error), so that a stray printf does not garble a message.
class FrameChannel {
 public:
  static absl::StatusOr<std::unique_ptr<FrameChannel>> TakeStandardStreams();
  // Takes over the descriptors, which may be one (a socket).
  FrameChannel(int read_fd, int write_fd)
      : read_fd_(read_fd), write_fd_(write_fd) {}
  FrameChannel(const FrameChannel&) = delete;
  FrameChannel& operator=(const FrameChannel&) = delete;
  ~FrameChannel();

  // Whether something (a message, or the end) comes within `wait`.
  bool WaitReadable(absl::Duration wait);
  // Waits for a message. OutOfRange: the other side closed, there will be no
  // more.
  absl::StatusOr<std::string> Read();
  absl::Status Write(absl::string_view payload);
  // For those who wait for several channels at once.
  int read_fd() const { return read_fd_; }

 private:
  const int read_fd_;
  const int write_fd_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_SUBPROCESS_H_
