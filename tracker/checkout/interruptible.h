#ifndef OPTRAIL_TRACKER_CHECKOUT_INTERRUPTIBLE_H_
#define OPTRAIL_TRACKER_CHECKOUT_INTERRUPTIBLE_H_

// Interruptible lets a long command be stopped by Ctrl-C and still clean up.
//
//   Interruptible interruptible;         // first, so that it goes last
//   OPTRAIL_ASSIGN_OR_RETURN(            // removed before
//       const auto folder, TemporaryFolder::Create("ab"));
//   auto end = interruptible.Run({"bazel", "build", target}, {}, deadline);
//   if (!end.ok()) return end.status();  // Cancelled: the user has had enough
//
// The first SIGINT, SIGTERM or SIGHUP ends the running child (SIGTERM to its
// process group, which is not the terminal's) and makes this and every later
// Run return Cancelled; the second kills the child. When the object goes, the
// signal is raised again and takes its usual course, so that a shell sees a
// command that was interrupted. A signal that was ignored before stays ignored.
// One object at a time per process.

#include <csignal>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"

namespace optrail::tracker {

class Interruptible {
 public:
  Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

  struct End {
    ExitInfo exit;
    std::string stderr_tail;
  };
  // Runs `argv` to its end with empty standard input; its standard output is
  // dropped, the end of its standard error is kept.
  absl::StatusOr<End> Run(const std::vector<std::string>& argv,
                          const std::string& working_directory,
                          absl::Duration timeout);

  // Cancelled after a signal, else OK.
  absl::Status Check() const;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

// The last lines of a child's log, indented, safe for a terminal.
std::string LogTail(absl::string_view log);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_INTERRUPTIBLE_H_
