#ifndef OPTRAIL_BASE_TESTING_WRONG_CLOCK_H_
#define OPTRAIL_BASE_TESTING_WRONG_CLOCK_H_

// A machine whose clock is wrong, for tests:
//
//   SetWallClockError(absl::Hours(5));   // absl::Now() is 5 h ahead
//   SetWallClockError(absl::ZeroDuration());
//
// The clock on the wall is wrong in this process and in the children that it
// forks, in all of its libraries: a program with this target has functions of
// its own in place of libc's clock_gettime(), gettimeofday() and time(). The
// steady clock goes on as it was, as it does on such a machine. A program that
// the process executes has the right time.
//
// Thread-safe. No errors: what the kernel refuses is passed on.

#include "absl/time/time.h"

namespace optrail {

void SetWallClockError(absl::Duration error);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TESTING_WRONG_CLOCK_H_
