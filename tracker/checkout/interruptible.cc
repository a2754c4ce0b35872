#include "tracker/checkout/interruptible.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"

namespace optrail::tracker {
namespace {

// What the signal handler sees: lock-free, as a handler needs it.
std::atomic<bool> in_use{false};
std::atomic<int> received_signal{0};
std::atomic<int> received_count{0};
std::atomic<pid_t> child_group{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

// Asks politely once.
void EndChild() {
  const pid_t group = child_group;
  if (group > 0) kill(-group, received_count > 1 ? SIGKILL : SIGTERM);
}

extern "C" void OnSignal(int number) {
  const int saved_errno = errno;
  received_signal = number;
  ++received_count;
  EndChild();
  errno = saved_errno;
}

}  // namespace

Interruptible::Interruptible() {
  OPTRAIL_CHECK(!in_use.exchange(true)) << "one Interruptible at a time";
  received_signal = 0;
  received_count = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Whoever started us with a signal ignored (nohup, a shell's background
    // job) wants it ignored.
    if (before_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

Interruptible::~Interruptible() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  in_use = false;
  const int number = received_signal.exchange(0);
  if (number != 0) raise(number);
}

absl::Status Interruptible::Check() const {
  const int number = received_signal.load();
  if (number == 0) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("interrupted (", strsignal(number), ")"));
}

absl::StatusOr<Interruptible::End> Interruptible::Run(
    const std::vector<std::string>& argv, const std::string& working_directory,
    absl::Duration timeout) {
  OPTRAIL_RETURN_IF_ERROR(Check());
  SubprocessOptions options;
  options.working_directory = working_directory;
  options.stderr_mode = StderrMode::kCapture;
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> process,
                           Subprocess::Start(argv, options));
  child_group = process->pid();
  // A signal between the start and the line above has missed the child.
  if (received_count > 0) EndChild();
  process->CloseInput();
  End end;
  end.exit = process->Wait(timeout);
  child_group = 0;
  OPTRAIL_RETURN_IF_ERROR(Check());
  end.stderr_tail = process->TakeStderr();
  return end;
}

std::string LogTail(absl::string_view log) {
  constexpr size_t kLines = 16;
  std::vector<absl::string_view> lines =
      absl::StrSplit(log, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  if (lines.size() > kLines) {
    lines.erase(lines.begin(), lines.end() - kLines);
  }
  std::string tail;
  for (const absl::string_view line : lines) {
    absl::StrAppend(&tail, "\n  ", EscapeForTerminal(line));
  }
  return tail;
}

}  // namespace optrail::tracker
