#include "base/process/interrupt_note.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace optrail {
namespace {

std::atomic<const char*> text_of_note{nullptr};

// The usual course has been restored by SA_RESETHAND, and comes when the
// handler returns.
void PrintNote(int signal) {
  const char* const text = text_of_note.load();
  if (text != nullptr) {
    const iovec parts[] = {{const_cast<char*>("\n"), 1},
                           {const_cast<char*>(text), std::strlen(text)},
                           {const_cast<char*>("\n"), 1}};
    [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 3);
  }
  raise(signal);
}

}  // namespace

InterruptNote::InterruptNote(const char* text) {
  text_of_note.store(text);
  struct sigaction action = {};
  action.sa_handler = PrintNote;
  action.sa_flags = SA_RESETHAND;
  for (int i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) {
      sigaction(kSignals[i], &action, nullptr);
    }
  }
}

InterruptNote::~InterruptNote() {
  for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  text_of_note.store(nullptr);
}

}  // namespace optrail
