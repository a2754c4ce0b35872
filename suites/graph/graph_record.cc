#include "suites/graph/graph_record.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "suites/worker/measurement_settings.h"
#include "tracker/history/history.h"

namespace optrail::suites {
namespace {

proto::DeviceKind KindOf(const MeasuredGraph& measured) {
  const auto type = ops::FindDeviceTypeNamed(measured.device);
  return type.ok() ? (*type)->kind() : proto::CPU;
}

}  // namespace

proto::MetricSamples MetricOf(const std::string& metric,
                              const std::string& unit, double value,
                              proto::Direction direction) {
  proto::MetricSamples samples;
  samples.set_metric(metric);
  samples.set_unit(unit);
  samples.set_direction(direction);
  samples.add_values(value);
  return samples;
}

proto::Run EmptyRun(const std::string& suite, int64_t started_unix_ns,
                    proto::DeviceKind device, const RunContext& context) {
  proto::Run run;
  run.set_started_unix_ns(started_unix_ns);
  run.set_run_id(tracker::NewRecordId(started_unix_ns));
  run.set_elapsed_ns(Clock::Real()->WallNs() - started_unix_ns);
  run.set_suite(suite);
  run.set_source("optrail");
  *run.mutable_commit() = context.commit;
  *run.mutable_hardware() = context.hardware;
  *run.mutable_toolchain() = context.toolchain;
  *run.mutable_settings() =
      SettingsOf(DefaultSamplingOptions(), WorkerOptions(), device);
  run.mutable_settings()->set_processes(1);
  return run;
}

proto::Run RunOfGraph(const MeasuredGraph& measured,
                      const RunContext& context) {
  proto::Run run =
      EmptyRun(absl::StrCat("graph/", measured.model), measured.started_unix_ns,
               KindOf(measured), context);
  proto::BenchmarkResult& result = *run.add_results();
  result.mutable_key()->set_operator_name(absl::StrCat(
      "graph/", measured.model, "/",
      measured.device == "cpu" ? absl::StrCat("threads=", measured.threads)
                               : measured.device,
      measured.type == "f32" ? "" : absl::StrCat("/", measured.type),
      measured.fuse == "rules" ? "" : absl::StrCat("/fuse=", measured.fuse),
      measured.untuned ? "/untuned" : "", measured.fed ? "/fed" : "",
      measured.served.empty() ? "" : absl::StrCat("/serve/", measured.served)));
  result.set_outcome(measured.whole.outcome);
  if (measured.flop > 0) result.set_flop(measured.flop);
  proto::Measurement& measurement = *result.add_measurements();
  measurement = measured.whole.measurement;
  *measurement.add_metrics() = MetricOf(
      "arena_bytes", "bytes", static_cast<double>(measured.arena_bytes),
      proto::LOWER_IS_BETTER);
  for (const auto& [kernel, ns] : measured.kernels_ns) {
    *measurement.add_metrics() = MetricOf(absl::StrCat(kernel, "_time"), "ns",
                                          ns, proto::LOWER_IS_BETTER);
  }
  for (const proto::MetricSamples& metric : measured.metrics) {
    *measurement.add_metrics() = metric;
  }
  return run;
}

absl::Status RecordGraph(const MeasuredGraph& measured,
                         const std::string& history_folder,
                         const std::string& store) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const RunContext context,
      FindRunContext(KindOf(measured), history_folder, store));
  return RecordRun(RunOfGraph(measured, context), context);
}

absl::Status RecordRun(const proto::Run& run, const RunContext& context) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::History::Open(context.history));
  OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
  std::cerr << "recorded: run " << run.run_id() << ", "
            << run.results(0).key().operator_name() << ", in " << history.dir()
            << "\n";
  return absl::OkStatus();
}

}  // namespace optrail::suites
