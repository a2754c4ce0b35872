#include "tracker/bisect/measure.h"

#include "base/check.h"
#include "base/distributions.h"

namespace optrail::tracker {

double WidenedStandardError(double standard_error, int rounds) {
  OPTRAIL_CHECK(rounds >= 2) << "rounds is " << rounds;
  constexpr double kTail = .975;
  return standard_error * StudentTQuantile(kTail, rounds - 1) /
         NormalQuantile(kTail);
}

}  // namespace optrail::tracker
