#include "tracker/history/evaluation/generate_history.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/hash/hash.h"
#include "base/random.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

constexpr int64_t kFirstCommitUnixNs = 1'795'000'000LL * 1'000'000'000;
constexpr int64_t kBetweenCommitsNs = 3600LL * 1'000'000'000;
constexpr const char* kHardware[] = {"amd-epyc-zen4-2c", "intel-icelake-8c",
                                     "arm-neoverse-v2-4c"};

void FillKey(int benchmark, proto::BenchmarkKey* key) {
  static constexpr const char* kOperators[] = {"matmul", "conv2d", "softmax",
                                               "layer_norm", "attention"};
  key->set_operator_name(kOperators[benchmark % 5]);
  key->set_device_kind(proto::CPU);
  proto::Dim* dim = key->mutable_shape()->add_dims();
  dim->set_name("m");
  dim->set_value(64 + benchmark);
  key->mutable_shape()->add_data_types(proto::F32);
  key->set_selection(proto::TUNED);
  key->set_threads(1);
  key->set_cache_mode(proto::HOT);
}

void FillMeasurement(const GenerateOptions& options, double level_ns, Rng* rng,
                     proto::Measurement* measurement) {
  const double process_ns = level_ns * std::exp(.01 * rng->Gaussian());
  measurement->set_calls_per_sample(1);
  for (int i = 0; i < options.samples; ++i) {
    measurement->add_sample_ns(
        std::llround(process_ns * std::exp(.004 * rng->Gaussian())));
    if (options.oddities && rng->UniformInt(8) == 0) {
      measurement->add_contended_samples(i);
    }
  }
  if (!options.oddities) return;
  for (const char* name : {"arithmetic", "memory"}) {
    proto::Calibration* loop =
        measurement->mutable_conditions()->add_calibrations();
    loop->set_loop(name);
    loop->set_time_ns(process_ns / 10);
  }
  if (rng->UniformInt(6) == 0) {
    measurement->set_aggregate_only(true);
    measurement->set_median_ns(process_ns);
  }
  if (rng->UniformInt(3) == 0) {
    proto::MetricSamples* metric = measurement->add_metrics();
    metric->set_metric("items_per_second");
    metric->set_unit("1/s");
    metric->set_direction(proto::HIGHER_IS_BETTER);
    for (int i = 0; i < 3; ++i) metric->add_values(rng->UniformReal() * 1e6);
  }
}

void FillResult(const GenerateOptions& options, int benchmark, int commit,
                Rng* rng, proto::BenchmarkResult* result) {
  FillKey(benchmark, result->mutable_key());
  result->set_config(
      absl::StrCat("mr=6,nr=", 16 << benchmark % 3, ",unroll=4"));
  result->set_config_source(proto::EXACT_SHAPE);
  result->set_kernel_id(Fingerprint(absl::StrCat("kernel ", benchmark % 50)));
  result->set_flop(2e6 + benchmark);
  if (options.oddities && rng->UniformInt(10) == 0) {
    result->set_outcome(proto::CRASHED);
    result->set_detail("signal 11");
    return;
  }
  result->set_outcome(proto::OK);
  result->set_roofline_fraction(rng->UniformReal());
  // Each benchmark has a level of its own and a step somewhere.
  const double step = commit > (benchmark * 37) % options.commits ? 1.05 : 1;
  const double level_ns = 1e4 * (1 + benchmark % 97) * step;
  for (int i = 0; i < options.processes; ++i) {
    FillMeasurement(options, level_ns, rng, result->add_measurements());
  }
}

proto::Run MakeRun(const GenerateOptions& options, int commit, int hardware,
                   int repetition, Rng* rng) {
  proto::Run run;
  const int64_t commit_ns = kFirstCommitUnixNs + commit * kBetweenCommitsNs;
  const int64_t start_ns =
      commit_ns + (60 + 600LL * hardware + 120LL * repetition) * 1'000'000'000;
  run.set_started_unix_ns(start_ns);
  // Not NewRecordId: ids, too, are fixed by the seed.
  run.set_run_id(absl::StrFormat(
      "%s-%012x",
      absl::FormatTime("%Y%m%dT%H%M%SZ", absl::FromUnixNanos(start_ns),
                       absl::UTCTimeZone()),
      (*rng)() & 0xffffffffffffu));
  run.set_suite("nightly");
  run.set_source("optrail");
  const std::string id = Fingerprint(absl::StrCat("commit ", commit));
  proto::Commit* at = run.mutable_commit();
  at->set_id(absl::StrCat(id, id, id.substr(0, 8)));
  at->set_branch("main");
  at->set_first_parent_position(commit + 1);
  at->set_commit_unix_ns(commit_ns);
  at->set_subject(absl::StrCat("change number ", commit));
  run.mutable_hardware()->set_id(kHardware[hardware % 3]);
  run.mutable_toolchain()->set_compiler("g++ 12.2.0");
  run.mutable_toolchain()->set_compilation_mode("opt");
  if (options.oddities) {
    if (commit >= options.commits / 2) {
      run.mutable_toolchain()->set_compiler("g++ 13.1.0");
    }
    // Records older than settings, a first default, a second, in turns.
    if (commit >= 3) {
      run.mutable_settings()->set_min_sample_ns(commit % 4 == 0 ? 500'000
                                                                : 100'000);
    }
    if (rng->UniformInt(8) == 0) at->clear_first_parent_position();
    if (rng->UniformInt(12) == 0) at->set_branch("topic");
    if (rng->UniformInt(16) == 0) at->clear_id();
    if (rng->UniformInt(12) == 0) at->set_dirty(true);
  }
  for (int i = 0; i < options.benchmarks; ++i) {
    FillResult(options, i, commit, rng, run.add_results());
  }
  return run;
}

}  // namespace

absl::Status GenerateRuns(const GenerateOptions& options,
                          const std::function<absl::Status(proto::Run)>& take) {
  Rng rng(options.seed);
  for (int commit = 0; commit < options.commits; ++commit) {
    for (int hardware = 0; hardware < options.hardware; ++hardware) {
      const int runs =
          options.oddities ? 1 + static_cast<int>(rng.UniformInt(3)) / 2 : 1;
      for (int i = 0; i < runs; ++i) {
        OPTRAIL_RETURN_IF_ERROR(
            take(MakeRun(options, commit, hardware, i, &rng)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status GenerateHistory(const GenerateOptions& options,
                             const History& history) {
  return GenerateRuns(
      options, [&](const proto::Run& run) { return history.AppendRun(run); });
}

}  // namespace optrail::tracker
