// Measures what the stopwatch itself costs per sample, outside the timed
// region:
//
//   bazel run //suites/stopwatch:stopwatch_benchmark

#include "benchmark/benchmark.h"
#include "ops/device/cpu/monitor.h"
#include "suites/stopwatch/stopwatch.h"

namespace optrail::suites {
namespace {

constexpr int kSamples = 200;
constexpr int64_t kSampleNs = 100'000;

// Says that a call took 1 us, and takes no time.
class InstantTimer : public ops::Timer {
 public:
  absl::Status Prepare(int64_t calls) override {
    calls_ = calls;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TimeNs() override { return calls_ * 1000; }

 private:
  int64_t calls_ = 0;
};

class NoMonitor : public ops::Monitor {
 public:
  void Begin() override {}
  bool End(int64_t) override { return false; }
  void Fill(proto::Conditions*) override {}
};

void SetPerSample(benchmark::State& state, int64_t samples) {
  state.counters["per_sample"] = benchmark::Counter(
      static_cast<double>(samples),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Deciding and keeping: a whole sampling, all its samples used.
void BM_TakeSamples(benchmark::State& state) {
  proto::SamplingOptions options = DefaultSamplingOptions();
  options.set_min_samples(kSamples);
  options.set_max_samples(kSamples);
  options.set_target_relative_half_width(0);
  InstantTimer timer;
  NoMonitor monitor;
  int64_t samples = 0;
  for (auto _ : state) {
    const Sampling sampling = *TakeSamples(options, timer, monitor);
    samples += sampling.measurement.sample_ns_size();
  }
  SetPerSample(state, samples);
}
BENCHMARK(BM_TakeSamples);

// Asking the witnesses before and after, as this machine has them.
void BM_DisturbanceMonitor(benchmark::State& state) {
  ops::CpuMonitor monitor;
  for (auto _ : state) {
    monitor.Begin();
    benchmark::DoNotOptimize(monitor.End(kSampleNs));
  }
  SetPerSample(state, state.iterations());
}
BENCHMARK(BM_DisturbanceMonitor);

}  // namespace
}  // namespace optrail::suites
