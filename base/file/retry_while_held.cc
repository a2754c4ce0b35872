#include "base/file/retry_while_held.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/journal.h"

namespace optrail {

absl::Status RetryWhileHeld(
    absl::FunctionRef<absl::Status(bool waited)> attempt,
    absl::FunctionRef<void(const std::string& why)> note) {
  constexpr absl::Duration kLookAgain = absl::Milliseconds(500);
  absl::Status status = attempt(/*waited=*/false);
  if (IsHeldByAnother(status)) note(std::string(status.message()));
  while (IsHeldByAnother(status)) {
    absl::SleepFor(kLookAgain);
    status = attempt(/*waited=*/true);
  }
  return status;
}

}  // namespace optrail
