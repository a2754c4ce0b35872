#include "ops/peers/interleaved.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace optrail::ops {
namespace {

double Quantile(std::vector<double> values, double q) {
  OPTRAIL_CHECK(!values.empty());
  const auto rank =
      values.begin() +
      static_cast<int64_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), rank, values.end());
  return *rank;
}

// How many calls take about `min_sample_ns`; the calls also warm up.
int64_t CallsPerSample(const Candidate& candidate, double min_sample_ns) {
  int64_t calls = 1;
  while (true) {
    const double elapsed_ns = candidate.time_ns(calls);
    if (elapsed_ns >= min_sample_ns / 2) {
      return std::max<int64_t>(1, std::llround(static_cast<double>(calls) *
                                               min_sample_ns / elapsed_ns));
    }
    calls *= 2;
  }
}

double NowNs(clockid_t clock) {
  timespec now{};
  OPTRAIL_CHECK(clock_gettime(clock, &now) == 0);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

}  // namespace

double ElapsedNs(int threads, int64_t calls, absl::FunctionRef<void()> body) {
  const clockid_t clock =
      threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start_ns = NowNs(clock);
  for (int64_t i = 0; i < calls; ++i) body();
  return NowNs(clock) - start_ns;
}

std::vector<Reading> MeasureInterleaved(
    const std::vector<Candidate>& candidates,
    const InterleavedOptions& options) {
  OPTRAIL_CHECK(options.rounds > 0);
  const size_t count = candidates.size();
  std::vector<int64_t> calls(count);
  for (size_t i = 0; i < count; ++i) {
    calls[i] = CallsPerSample(candidates[i], options.min_sample_ns);
  }

  std::vector<std::vector<double>> times_ns(count), speedups(count);
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<double> now_ns(count);
    // Each candidate comes first, second, ... equally often: what the one
    // before left in the caches favours nobody.
    for (size_t turn = 0; turn < count; ++turn) {
      const size_t i = (turn + round) % count;
      now_ns[i] =
          candidates[i].time_ns(calls[i]) / static_cast<double>(calls[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      times_ns[i].push_back(now_ns[i]);
      speedups[i].push_back(now_ns[0] / now_ns[i]);
    }
  }

  std::vector<Reading> readings;
  for (size_t i = 0; i < count; ++i) {
    readings.push_back({candidates[i].name, Quantile(times_ns[i], 0.5),
                        Quantile(times_ns[i], 0.25),
                        Quantile(times_ns[i], 0.75), Quantile(times_ns[i], 0),
                        Quantile(speedups[i], 0.5)});
  }
  return readings;
}

std::string ToTable(const std::string& title,
                    const std::vector<Reading>& readings, double work_per_call,
                    const std::string& rate_unit) {
  std::string table =
      absl::StrFormat("%-34s %12s %21s %11s %10s %9s\n", title, "median us",
                      "quartiles us", "fastest us", rate_unit, "speed-up");
  for (const Reading& r : readings) {
    absl::StrAppendFormat(
        &table, "  %-32s %12.2f %10.2f %10.2f %11.2f %10.2f %8.3fx\n", r.name,
        r.median_ns / 1e3, r.lower_quartile_ns / 1e3, r.upper_quartile_ns / 1e3,
        r.fastest_ns / 1e3, work_per_call / r.median_ns, r.speedup);
  }
  return table;
}

}  // namespace optrail::ops
