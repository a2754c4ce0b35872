#include "tracker/compare/process_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/stats/statistics.h"
#include "tracker/series/samples.h"
#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

// The logarithm of what a loop took, as `time_ns` tells it; NaN if it is
// absent.
template <typename TimeOf>
double LoopOf(const proto::Conditions& conditions, absl::string_view name,
              const TimeOf& time_ns) {
  for (const proto::Calibration& loop : conditions.calibrations()) {
    const double time = time_ns(loop);
    if (loop.loop() == name && time > 0) return std::log(time);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// All loops or none: a mean of fewer loops is another number.
bool IsComplete(const MachineState& state) {
  return std::all_of(state.values.begin(), state.values.end(),
                     [](double value) { return std::isfinite(value); });
}

MachineState FastestState(const proto::Conditions& conditions) {
  const auto loop = [&](absl::string_view name) {
    return LoopOf(conditions, name,
                  std::mem_fn(&proto::Calibration::fastest_ns));
  };
  // The best of three tries each, where "arithmetic" is one that may miss a
  // cache: some percent, of a clock that says no other noise.
  const double clock = loop("vector");
  MachineState state;
  state.fastest = true;
  state.values = {clock,      loop("l1") - clock, loop("l2") - clock,
                  loop("l3"), loop("memory"),     0};
  return state;
}

// Each level's two loops are one witness: a median before and after says too
// little of what was in between.
MachineState MedianState(const proto::Measurement& measurement) {
  const auto loop = [&](absl::string_view name) {
    return LoopOf(measurement.conditions(), name,
                  std::mem_fn(&proto::Calibration::time_ns));
  };
  const double clock = loop("arithmetic");
  const double core = (loop("l1") + loop("l2")) / 2 - clock;
  const double memory = (loop("l3") + loop("memory")) / 2;
  const double contended =
      measurement.sample_ns_size() == 0
          ? 0
          : static_cast<double>(measurement.contended_samples_size()) /
                measurement.sample_ns_size();
  MachineState state;
  state.values = {clock, core, core, memory, memory, contended};
  return state;
}

absl::optional<MachineState> StateOf(const proto::Measurement& measurement) {
  for (const MachineState& state :
       {FastestState(measurement.conditions()), MedianState(measurement)}) {
    if (IsComplete(state)) return state;
  }
  return absl::nullopt;
}

// By the median that is recorded, as the fastest sample is.
absl::optional<SampleShape> ShapeOf(const proto::Measurement& measurement,
                                    const ProcessReading& reading) {
  constexpr double kUpper = .75;
  const std::vector<double> samples = UsableSamplesNs(measurement);
  if (measurement.sample_ns_size() < kFewestForFastest || samples.empty()) {
    return absl::nullopt;
  }
  const double median = std::log(reading.value / reading.fastest);
  const double upper =
      median + std::log(Quantile(samples, kUpper) / Median(samples));
  if (!std::isfinite(median) || !std::isfinite(upper)) return absl::nullopt;
  return SampleShape{median, upper};
}

}  // namespace

absl::optional<ProcessLog> ProcessLogOf(const proto::Measurement& measurement,
                                        absl::string_view metric) {
  const auto reading = ReadingOf(measurement, metric);
  if (!reading.has_value() || reading->aggregate_only ||
      !(reading->fastest > 0) || !std::isfinite(reading->fastest)) {
    return absl::nullopt;
  }
  ProcessLog log;
  log.value = std::log(reading->fastest);
  log.machine = StateOf(measurement);
  if (metric == "time") log.shape = ShapeOf(measurement, *reading);
  return log;
}

void UseMedian(ProcessLog* process) {
  if (!process->shape.has_value()) return;
  process->value += process->shape->median;
  process->shape.reset();
}

}  // namespace optrail::tracker
