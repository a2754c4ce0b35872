#ifndef OPTRAIL_TRACKER_SERIES_SAMPLES_H_
#define OPTRAIL_TRACKER_SERIES_SAMPLES_H_

// Which samples of a process count, in ns per call.
//
//   const std::vector<double> samples = UsableSamplesNs(measurement);
//   const double fastest_ns = FastestSampleNs(measurement);
//
// ReadingOf() (series.h) makes the reading of a process from them.

#include <vector>

#include "tuning/proto/trial.pb.h"

namespace optrail::tracker {

// The fastest of fewer samples is fast by luck.
inline constexpr int kFewestForFastest = 5;

// The clean samples; where these are few, also those that only waited for a
// core, without the waiting.
std::vector<double> UsableSamplesNs(const proto::Measurement& measurement);

// The fastest of all samples, of which there is one at least: whatever
// disturbed one made it no faster.
double FastestSampleNs(const proto::Measurement& measurement);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SAMPLES_H_
