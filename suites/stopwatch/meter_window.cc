// Calls for as long as a meter has to be read.

#include <algorithm>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {
namespace {

// Between two runs of this length a device idles for some microseconds; a
// longer one ends late.
constexpr int64_t kRunNs = 50'000'000;

// Calls back to back, at least as long as `duration`.
absl::StatusOr<ops::Timer::Ran> RunFor(int64_t calls, ops::Timer& timer,
                                       absl::Duration duration) {
  const int64_t window_ns = absl::ToInt64Nanoseconds(duration);
  ops::Timer::Ran all;
  while (all.elapsed_ns < window_ns) {
    OPTRAIL_ASSIGN_OR_RETURN(const ops::Timer::Ran ran, timer.Run(calls));
    all.calls += ran.calls;
    all.elapsed_ns += std::max<int64_t>(1, ran.elapsed_ns);
    const double call_ns = static_cast<double>(all.elapsed_ns) /
                           static_cast<double>(std::max<int64_t>(1, all.calls));
    const int64_t left_ns = std::min(kRunNs, window_ns - all.elapsed_ns);
    calls = std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(left_ns) / call_ns) + 1);
  }
  return all;
}

}  // namespace

absl::Status KeepBusy(int64_t calls, ops::Timer& timer,
                      absl::Duration duration) {
  OPTRAIL_RETURN_IF_ERROR(timer.Prepare(calls));
  return RunFor(calls, timer, duration).status();
}

absl::StatusOr<proto::MeterWindow> TakeWindow(int64_t calls, ops::Timer& timer,
                                              ops::Meter& meter,
                                              absl::Duration min_window,
                                              bool quickly) {
  const ops::MeterInfo& info = meter.info();
  quickly = quickly && min_window > absl::ZeroDuration();
  OPTRAIL_RETURN_IF_ERROR(timer.Prepare(calls));
  OPTRAIL_RETURN_IF_ERROR(
      RunFor(calls, timer,
             quickly ? std::min(info.warm_up, kQuickWarmUp) : info.warm_up)
          .status());
  OPTRAIL_RETURN_IF_ERROR(meter.Begin());
  const absl::StatusOr<ops::Timer::Ran> ran =
      RunFor(calls, timer,
             quickly ? min_window : std::max(info.min_window, min_window));
  absl::StatusOr<proto::MeterWindow> window =
      meter.End(ran.ok() ? ran->calls : 0);
  OPTRAIL_RETURN_IF_ERROR(ran.status());
  if (!window.ok()) return window.status();
  window->set_calls(ran->calls);
  if (window->duration_ns() == 0) window->set_duration_ns(ran->elapsed_ns);
  window->set_estimated(info.estimated);
  window->set_whole_device(info.whole_device);
  if (window->source().empty()) window->set_source(info.source);
  return window;
}

}  // namespace optrail::suites
