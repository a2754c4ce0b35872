#ifndef OPTRAIL_OPS_PEERS_INTERLEAVED_H_
#define OPTRAIL_OPS_PEERS_INTERLEAVED_H_

// Measures competing implementations side by side on a machine that others use
// too: every round takes one short sample of each candidate, in turn, so that
// they see the same disturbances; ratios are taken within rounds, and medians
// over rounds are reported. (Google Benchmark runs one benchmark after the
// other, or shuffles them, and reports no ratios.)
//
//   std::vector<Candidate> candidates = {{"openblas", time_it}, {"ours", ...}};
//   for (const Reading& r : MeasureInterleaved(candidates, {})) ...
//
// It is not the stopwatch: one process, no outcomes, nothing is recorded.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace optrail::ops {

struct Candidate {
  std::string name;
  // Makes that many calls and returns how long they took together.
  std::function<double(int64_t calls)> time_ns;
};

struct InterleavedOptions {
  int rounds = 31;
  // A sample makes as many calls as take about this long.
  double min_sample_ns = 3e6;
};

struct Reading {
  std::string name;
  double median_ns = 0;  // per call
  double lower_quartile_ns = 0;
  double upper_quartile_ns = 0;
  // The fastest round: all that is left to look at when several threads share
  // too few cores with others.
  double fastest_ns = 0;
  // Median over rounds of first candidate's time / this candidate's time: above
  // 1, this one is faster.
  double speedup = 1;
};

std::vector<Reading> MeasureInterleaved(
    const std::vector<Candidate>& candidates,
    const InterleavedOptions& options);

// Time of `calls` calls of `body`, which uses that many threads. With one it is
// the time that this thread spent on a core: on an idle machine the same as
// wall time, and on a busy one without the waiting. With more it is wall time.
double ElapsedNs(int threads, int64_t calls, absl::FunctionRef<void()> body);

// `title` and one line per reading. `unit_per_ns`: work per call in a unit that
// reads well per nanosecond, such as FLOP (GFLOP/s) or bytes (GB/s).
std::string ToTable(const std::string& title,
                    const std::vector<Reading>& readings, double work_per_call,
                    const std::string& rate_unit);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PEERS_INTERLEAVED_H_
