// The cost of detection. Time per iteration is divided into the documented
// units: "ms_per_1000_points" offline, "us_per_point" online.

#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "tracker/detect/detect.h"
#include "tracker/detect/detect_csv.h"
#include "tracker/detect/evaluation/synthetic.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

std::vector<double> Series(const benchmark::State& state) {
  const int n = static_cast<int>(state.range(1));
  return SyntheticSeries(static_cast<NoiseKind>(state.range(0)), n,
                         {{n / 3, 1.08}, {n / 2, 0.95}}, 7);
}

// Seconds per point, scaled.
benchmark::Counter PerPoint(double points, double scale) {
  return benchmark::Counter(points / scale,
                            benchmark::Counter::kIsIterationInvariantRate |
                                benchmark::Counter::kInvert);
}

void BM_Offline(benchmark::State& state) {
  const std::vector<double> values = Series(state);
  for (auto _ : state) benchmark::DoNotOptimize(DetectOffline(values));
  state.SetLabel(Name(static_cast<NoiseKind>(state.range(0))));
  state.counters["ms_per_1000_points"] =
      PerPoint(static_cast<double>(values.size()), 1e6);
}
BENCHMARK(BM_Offline)
    ->ArgsProduct({{0, 1, 2, 3, 4, 5, 6, 7, 8}, {200}})
    ->ArgsProduct({{0, 6, 8}, {1000, 10000}});

void BM_Online(benchmark::State& state) {
  const std::vector<double> values = Series(state);
  for (auto _ : state) benchmark::DoNotOptimize(DetectOnline(values));
  state.SetLabel(Name(static_cast<NoiseKind>(state.range(0))));
  state.counters["us_per_point"] =
      PerPoint(static_cast<double>(values.size()), 1e6);
}
BENCHMARK(BM_Online)->ArgsProduct({{0, 1, 2, 3, 4, 5, 6, 7, 8}, {1000}});

void BM_ManySeries(benchmark::State& state) {
  std::vector<CsvSeries> series(5000);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].id = absl::StrCat(i);
    series[i].values = SyntheticSeries(
        kAllNoiseKinds[i % 9], 200,
        i % 3 == 0 ? std::vector<Step>{{100, 1.06}} : std::vector<Step>{}, i);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(DetectAll(series, DetectMode::kOffline,
                                       static_cast<int>(state.range(0))));
  }
}
BENCHMARK(BM_ManySeries)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail::tracker
