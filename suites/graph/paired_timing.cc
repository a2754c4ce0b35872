#include "suites/graph/paired_timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

constexpr int kMostRounds = 2000;

// One side: how many calls are a batch, and what batches took per call.
struct Side {
  ops::Timer* timer;
  int64_t calls = 1;
  std::vector<double> clock_ns = {}, worked_ns = {};

  absl::Status Take() {
    OPTRAIL_RETURN_IF_ERROR(timer->Prepare(calls));
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t ns, timer->TimeNs());
    const auto count = static_cast<double>(calls);
    clock_ns.push_back(std::max(1.0, static_cast<double>(ns)) / count);
    const absl::optional<int64_t> worked = timer->WorkedNs();
    if (worked.has_value() && *worked > 0) {
      worked_ns.push_back(static_cast<double>(*worked) / count);
    }
    return absl::OkStatus();
  }

  // Twice, since the first call finds nothing in the caches.
  absl::Status WarmUp(absl::Duration least) {
    for (int i = 0; i < 2; ++i) OPTRAIL_RETURN_IF_ERROR(Take());
    const double batch = absl::ToDoubleNanoseconds(least) / clock_ns.back();
    calls = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(batch)), 1,
                                timer->max_calls());
    clock_ns.clear();
    worked_ns.clear();
    return absl::OkStatus();
  }
};

}  // namespace

double PairedTimes::ratio() const { return std::exp(evidence.log_ratio); }
double PairedTimes::low() const { return std::exp(evidence.low); }
double PairedTimes::high() const { return std::exp(evidence.high); }

absl::StatusOr<PairedTimes> TimePairs(ops::Timer& first, ops::Timer& second,
                                      const PairedTimingOptions& options) {
  Side sides[] = {{&first}, {&second}};
  for (Side& side : sides) {
    OPTRAIL_RETURN_IF_ERROR(side.WarmUp(options.least_batch));
  }
  PairedTestOptions test;
  test.false_alarm_rate = .025;
  PairedTimes times;
  std::vector<double> log_ratios;
  const int64_t begin_ns = Clock::Real()->NowNs();
  for (int round = 1; round <= kMostRounds; ++round) {
    for (const int i : {0, 1}) {
      OPTRAIL_RETURN_IF_ERROR(sides[(round + i) % 2].Take());
    }
    const auto count = static_cast<size_t>(round);
    times.of_processor = options.one_thread &&
                         sides[0].worked_ns.size() == count &&
                         sides[1].worked_ns.size() == count;
    log_ratios.clear();
    for (size_t r = 0; r < count; ++r) {
      log_ratios.push_back(
          times.of_processor
              ? std::log(sides[0].worked_ns[r] / sides[1].worked_ns[r])
              : std::log(sides[0].clock_ns[r] / sides[1].clock_ns[r]));
    }
    if (round < options.min_rounds) continue;
    times.evidence = PairedTest(log_ratios, test);
    if (times.evidence.high - times.evidence.low <= 2 * options.half_width ||
        absl::Nanoseconds(Clock::Real()->NowNs() - begin_ns) > options.most) {
      break;
    }
  }
  times.first_ns =
      Median(times.of_processor ? sides[0].worked_ns : sides[0].clock_ns);
  times.second_ns =
      Median(times.of_processor ? sides[1].worked_ns : sides[1].clock_ns);
  return times;
}

std::string RatioText(const PairedTimes& times) {
  return absl::StrFormat("%.3fx (%.3f to %.3f, %d rounds)", times.ratio(),
                         times.low(), times.high(), times.evidence.rounds);
}

}  // namespace optrail::suites
