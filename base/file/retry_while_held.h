#ifndef OPTRAIL_BASE_FILE_RETRY_WHILE_HELD_H_
#define OPTRAIL_BASE_FILE_RETRY_WHILE_HELD_H_

// Waits while another process writes a journal.
//
//   std::unique_ptr<Journal> journal;
//   const absl::Status opened = RetryWhileHeld(
//       [&](bool waited) {
//         auto mine = Journal::Open(path);
//         if (mine.ok()) journal = *std::move(mine);
//         return mine.status();
//       },
//       [](const std::string& why) { std::cerr << "waits: " << why << "\n"; });
//
// Thread safety: a function without state.

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace optrail {

// Calls `attempt` until it no longer fails because another process has a
// journal (IsHeldByAnother), twice a second, and returns its last status.
// `waited` is false in the first call: in later ones the other process may have
// done the work. `note` gets the reason, once, before the first wait.
absl::Status RetryWhileHeld(
    absl::FunctionRef<absl::Status(bool waited)> attempt,
    absl::FunctionRef<void(const std::string& why)> note);

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_RETRY_WHILE_HELD_H_
