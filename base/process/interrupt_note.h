#ifndef OPTRAIL_BASE_PROCESS_INTERRUPT_NOTE_H_
#define OPTRAIL_BASE_PROCESS_INTERRUPT_NOTE_H_

// InterruptNote says what becomes of the work of a long job when a signal ends
// the process:
//
//   const InterruptNote note("interrupted: the same command goes on");
//
// While it lives the first SIGINT, SIGTERM or SIGHUP prints the text to
// standard error, on a line of its own, and then takes its usual course, so
// that a shell sees a command that was interrupted. A signal that was ignored
// before stays ignored. One object at a time per process.

#include <csignal>

namespace optrail {

class InterruptNote {
 public:
  // `text` outlives the object.
  explicit InterruptNote(const char* text);
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;
  ~InterruptNote();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3];
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_INTERRUPT_NOTE_H_
