#ifndef OPTRAIL_SUITES_WORKER_MEASUREMENT_SETTINGS_H_
#define OPTRAIL_SUITES_WORKER_MEASUREMENT_SETTINGS_H_

// How the stopwatch and its workers are going to measure, as runs and sessions
// record it.
//
//   *run.mutable_settings() = SettingsOf(options.bench.sampling,
//                                        options.worker, proto::CPU);
//   run.mutable_settings()->set_processes(options.bench.processes);

#include "suites/proto/worker.pb.h"
#include "suites/worker/worker_options.h"
#include "tuning/proto/measurement_settings.pb.h"

namespace optrail::suites {

// Everything that is not up to the driver (processes, attempts, racing); with
// the fingerprint of the workers' binary, for which the first call reads it.
proto::MeasurementSettings SettingsOf(const proto::SamplingOptions& sampling,
                                      const WorkerOptions& worker,
                                      proto::DeviceKind device);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_MEASUREMENT_SETTINGS_H_
