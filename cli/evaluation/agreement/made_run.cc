#include "cli/evaluation/agreement/made_run.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/hash/hash.h"

namespace optrail::agreement {
namespace {

constexpr int kSamples = 10;
constexpr double kSampleNoise = .001;

void AddProcess(const RunSpec& spec, const MadeBenchmark& benchmark, int round,
                Rng* rng, proto::BenchmarkResult* result) {
  proto::Measurement* process = result->add_measurements();
  const double level =
      benchmark.level_ns *
      std::exp(spec.machine + spec.process_noise * rng->Gaussian());
  // Samples of many calls: whole nanoseconds would be too coarse.
  constexpr int64_t kCalls = 1000;
  process->set_calls_per_sample(kCalls);
  std::vector<double> samples = benchmark.sample_shape;
  if (samples.empty()) {
    for (int i = 0; i < kSamples; ++i) {
      samples.push_back(std::exp(kSampleNoise * std::abs(rng->Gaussian())));
    }
  }
  for (const double factor : samples) {
    process->add_sample_ns(std::llround(kCalls * level * factor));
  }
  if (!spec.pairing_id.empty()) process->set_round(round);
  if (spec.has_rate) {
    proto::MetricSamples* rate = process->add_metrics();
    rate->set_metric("items_per_second");
    rate->set_unit("1/s");
    rate->set_direction(proto::HIGHER_IS_BETTER);
    rate->add_values(1e9 / level);
  }
  if (!spec.calibrated) return;
  for (const char* loop : {"arithmetic", "l1", "l2", "l3", "memory"}) {
    proto::Calibration* calibration =
        process->mutable_conditions()->add_calibrations();
    calibration->set_loop(loop);
    calibration->set_readings(5);
    calibration->set_time_ns(100 *
                             std::exp(spec.machine + .001 * rng->Gaussian()));
    calibration->set_fastest_ns(calibration->time_ns());
  }
}

}  // namespace

proto::Run MakeRun(const RunSpec& spec, Rng* rng) {
  proto::Run run;
  run.set_started_unix_ns(spec.started_unix_ns);
  run.set_elapsed_ns(60 * kSecondNs);
  // Not NewRecordId: the seed decides ids, too.
  run.set_run_id(absl::StrFormat(
      "%s-%012x",
      absl::FormatTime("%Y%m%dT%H%M%SZ",
                       absl::FromUnixNanos(spec.started_unix_ns),
                       absl::UTCTimeZone()),
      (*rng)() & 0xffffffffffffu));
  run.set_suite(spec.suite);
  run.set_source("optrail");
  run.mutable_hardware()->set_id(spec.hardware);
  run.mutable_toolchain()->set_compiler(spec.compiler);
  run.set_pairing_id(spec.pairing_id);
  if (!spec.commit.empty()) {
    proto::Commit* commit = run.mutable_commit();
    commit->set_id(spec.commit);
    commit->set_branch(spec.branch);
    commit->set_dirty(spec.dirty);
    if (spec.position) commit->set_first_parent_position(*spec.position);
  }
  for (const MadeBenchmark& benchmark : spec.benchmarks) {
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name(benchmark.name);
    result->set_outcome(benchmark.outcome);
    if (benchmark.outcome != proto::OK) {
      result->set_detail("made to fail");
      continue;
    }
    for (int i = 0; i < spec.processes; ++i) {
      AddProcess(spec, benchmark, i + 1, rng, result);
    }
  }
  return run;
}

std::string MadeCommit(int64_t position, const std::string& branch) {
  const std::string id = Fingerprint(absl::StrCat(branch, " ", position));
  return absl::StrCat(id, id, id).substr(0, 40);
}

}  // namespace optrail::agreement
