#include "suites/worker/measurement_settings.h"

#include "absl/time/time.h"
#include "base/process/running_binary.h"
#include "ops/core/device_type.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/measure.h"
#include "suites/worker/opened_task.h"

namespace optrail::suites {

proto::MeasurementSettings SettingsOf(const proto::SamplingOptions& sampling,
                                      const WorkerOptions& worker,
                                      proto::DeviceKind device) {
  proto::MeasurementSettings settings;
  settings.set_min_sample_ns(sampling.min_sample_ns());
  settings.set_warm_up_ns(sampling.warm_up_ns());
  settings.set_max_sampling_ns(sampling.max_time_ns());
  settings.set_min_sampling_ns(sampling.min_time_ns());
  settings.set_min_samples(sampling.min_samples());
  settings.set_max_samples(sampling.max_samples());
  settings.set_target_half_width_fraction(
      sampling.target_relative_half_width());
  settings.set_target_confidence_fraction(kMedianConfidence);

  // What counts as disturbed is the device's to say; of a kind that is not here
  // nothing is known.
  if (const auto type = ops::FindDeviceType(device); type.ok()) {
    (*type)->FillSettings(&settings);
  }
  settings.set_min_clean_samples(kMinCleanSamples);

  settings.set_min_cold_sample_ns(kMinColdSampleNs);
  settings.set_in_place_sets(kInPlaceSets);

  settings.set_config_deadline_ns(
      absl::ToInt64Nanoseconds(worker.config_deadline));
  settings.set_open_deadline_ns(absl::ToInt64Nanoseconds(worker.open_deadline));
  settings.set_max_config_bytes(worker.max_config_bytes);
  settings.set_configs_per_worker(worker.configs_per_worker);
  // Another program than this one is only ever a test's.
  if (worker.binary.empty()) {
    settings.set_binary_fingerprint(RunningBinaryFingerprint());
  }
  return settings;
}

}  // namespace optrail::suites
