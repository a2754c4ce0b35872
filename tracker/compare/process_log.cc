#include "tracker/compare/process_log.h"

#include <cmath>

#include "tracker/series/series.h"

namespace optrail::tracker {
namespace {

absl::optional<MachineState> StateOf(const proto::Measurement& measurement) {
  double clock = 0, core = 0, memory = 0;
  int clocks = 0, cores = 0, memories = 0;
  for (const proto::Calibration& loop :
       measurement.conditions().calibrations()) {
    if (!(loop.time_ns() > 0) || !std::isfinite(loop.time_ns())) continue;
    if (loop.loop() == "arithmetic") {
      clock += std::log(loop.time_ns());
      ++clocks;
    } else if (loop.loop() == "l1" || loop.loop() == "l2") {
      core += std::log(loop.time_ns());
      ++cores;
    } else if (loop.loop() == "l3" || loop.loop() == "memory") {
      memory += std::log(loop.time_ns());
      ++memories;
    }
  }
  // All of them or none: a mean of fewer loops is another number.
  if (clocks != 1 || cores != 2 || memories != 2) return absl::nullopt;
  MachineState state = {clock, core / cores - clock, memory / memories, 0};
  if (measurement.sample_ns_size() > 0) {
    state.contended =
        static_cast<double>(measurement.contended_samples_size()) /
        measurement.sample_ns_size();
  }
  return state;
}

}  // namespace

absl::optional<ProcessLog> ProcessLogOf(const proto::Measurement& measurement,
                                        absl::string_view metric) {
  const auto reading = ReadingOf(measurement, metric);
  if (!reading.has_value() || reading->aggregate_only ||
      !(reading->fastest > 0) || !std::isfinite(reading->fastest)) {
    return absl::nullopt;
  }
  return ProcessLog{std::log(reading->fastest), StateOf(measurement)};
}

}  // namespace optrail::tracker
