#ifndef OPTRAIL_SUITES_BENCH_BACKEND_COMPARISON_H_
#define OPTRAIL_SUITES_BENCH_BACKEND_COMPARISON_H_

// Backends side by side: what one interleaved bench of all of them says.
//
//   std::cout << ComparisonText(CompareBackends(run));
//
// Backends are compared round by round: in each round every one of them had a
// fresh process, close together in time, so that the machine's mood cancels.
// Times of different runs or sessions do not compare and are never put here.

#include <string>
#include <vector>

#include "tracker/proto/run.pb.h"
#include "tuning/proto/store.pb.h"

namespace optrail::suites {

struct BackendReading {
  const proto::BenchmarkResult* result = nullptr;  // into the run
  // Of its time to the compared one's: the geometric mean over rounds that
  // both finished, with a 95% interval (Student's t of the logarithms). 0 where
  // there are too few rounds.
  double ratio = 0;
  double ratio_low = 0;
  double ratio_high = 0;
  double median_ns = 0;
};

struct BackendComparison {
  // Without backend.
  proto::BenchmarkKey key;
  // Best first; what has no time comes last.
  std::vector<BackendReading> readings;
};

// One comparison for each benchmark that differs in nothing but the backend and
// has at least two of them. A backend that was measured by default alone, since
// it has nothing to tune, stands beside tuned ones, too. Ratios are over the
// device kind's own backend, or the first where that is not there. `run` must
// outlive the result.
std::vector<BackendComparison> CompareBackends(const proto::Run& run);

// A table of those that have a time, below the name of what they computed, and
// then a line for each reason why others have none. `width` as in Table.
std::string ComparisonText(const std::vector<BackendComparison>& comparisons,
                           int width = 0);

// A line for each comparison of which another backend than the device kind's
// own is faster, as the interval says: what is to be improved. "" if none is.
std::string FasterThanOursText(
    const std::vector<BackendComparison>& comparisons);

// What the store keeps of a comparison: ratios over the best one, and who could
// not take part. Whom only disturbance left without a time is left out. `date`
// as in TunedConfig.
proto::BestBackend BestOf(const BackendComparison& comparison,
                          const proto::Run& run, const std::string& date);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_BENCH_BACKEND_COMPARISON_H_
