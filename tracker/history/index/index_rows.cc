#include "tracker/history/index/index_rows.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "tracker/history/record.h"

namespace optrail::tracker {

std::string EncodeObservation(const Observation& observation) {
  proto::IndexedObservation stored;
  stored.set_direction(observation.metric.direction);
  stored.set_outcome(observation.outcome);
  if (observation.roofline_fraction) {
    stored.set_roofline_fraction(*observation.roofline_fraction);
  }
  bool any_aggregate = false;
  for (const ProcessReading& process : observation.processes) {
    stored.add_values(process.value);
    stored.add_fastest(process.fastest);
    stored.add_relative_sample_spreads(process.relative_sample_spread);
    stored.add_samples(process.samples);
    any_aggregate |= process.aggregate_only;
  }
  if (any_aggregate) {
    for (const ProcessReading& process : observation.processes) {
      stored.add_aggregate_only(process.aggregate_only);
    }
  }
  for (const LoopReading& reading : observation.calibrations) {
    stored.add_calibration_log_ns(reading.log_ns);
    stored.add_calibration_processes(reading.processes);
  }
  return EncodeRecord(stored);
}

std::string EncodeAttributes(const Observation& observation) {
  proto::IndexedAttributes stored;
  stored.set_detail(observation.detail);
  const ResultAttributes& attributes = *observation.attributes;
  stored.set_config(attributes.config);
  stored.set_config_source(attributes.config_source);
  stored.set_kernel_id(attributes.kernel_id);
  stored.set_tuning_session_id(attributes.tuning_session_id);
  stored.set_resolved_backend(attributes.resolved_backend);
  stored.set_library(attributes.library);
  if (attributes.flop) stored.set_flop(*attributes.flop);
  if (attributes.moved_bytes) stored.set_moved_bytes(*attributes.moved_bytes);
  for (const LoopReading& reading : observation.calibrations) {
    stored.add_calibration_loops(reading.loop);
  }
  return EncodeRecord(stored);
}

absl::Status SetObservation(const proto::IndexedObservation& stored,
                            Observation* result) {
  const int processes = stored.values_size();
  if (stored.fastest_size() != processes ||
      stored.relative_sample_spreads_size() != processes ||
      stored.samples_size() != processes ||
      (stored.aggregate_only_size() != 0 &&
       stored.aggregate_only_size() != processes)) {
    return absl::DataLossError("index: an observation is not whole");
  }
  result->metric.direction = stored.direction();
  result->outcome = stored.outcome();
  result->roofline_fraction.reset();
  if (stored.has_roofline_fraction()) {
    result->roofline_fraction = stored.roofline_fraction();
  }
  result->processes.clear();
  for (int i = 0; i < processes; ++i) {
    ProcessReading process;
    process.value = stored.values(i);
    process.fastest = stored.fastest(i);
    process.relative_sample_spread = stored.relative_sample_spreads(i);
    process.samples = stored.samples(i);
    process.aggregate_only =
        stored.aggregate_only_size() > 0 && stored.aggregate_only(i);
    result->processes.push_back(process);
  }
  // Their names are attributes.
  const int loops = static_cast<int>(result->calibrations.size());
  if (stored.calibration_log_ns_size() != loops ||
      stored.calibration_processes_size() != loops) {
    return absl::DataLossError("index: calibrations are not whole");
  }
  for (int i = 0; i < loops; ++i) {
    result->calibrations[i].log_ns = stored.calibration_log_ns(i);
    result->calibrations[i].processes = stored.calibration_processes(i);
  }
  return absl::OkStatus();
}

absl::Status DecodeAttributes(absl::string_view bytes, Observation* result) {
  proto::IndexedAttributes stored;
  OPTRAIL_RETURN_IF_ERROR(DecodeRecord(bytes, &stored));
  result->detail = stored.detail();
  ResultAttributes attributes;
  attributes.config = stored.config();
  attributes.config_source = stored.config_source();
  attributes.kernel_id = stored.kernel_id();
  attributes.tuning_session_id = stored.tuning_session_id();
  attributes.resolved_backend = stored.resolved_backend();
  attributes.library = stored.library();
  if (stored.has_flop()) attributes.flop = stored.flop();
  if (stored.has_moved_bytes()) attributes.moved_bytes = stored.moved_bytes();
  result->attributes =
      std::make_shared<const ResultAttributes>(std::move(attributes));
  result->calibrations.clear();
  for (const std::string& loop : stored.calibration_loops()) {
    result->calibrations.push_back({loop});
  }
  return absl::OkStatus();
}

}  // namespace optrail::tracker
