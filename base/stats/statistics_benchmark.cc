// What the statistics cost that run once per measurement or per comparison.

#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/stats/statistics.h"
#include "benchmark/benchmark.h"

namespace optrail {
namespace {

std::vector<double> LogNormal(int64_t n, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> x(static_cast<size_t>(n));
  for (double& value : x) value = std::exp(0.05 * rng.Gaussian());
  return x;
}

template <double (*kStatistic)(Samples)>
void BM_OneSample(benchmark::State& state) {
  const std::vector<double> x = LogNormal(state.range(0), 1);
  for (auto unused : state) benchmark::DoNotOptimize(kStatistic(x));
}
BENCHMARK_TEMPLATE(BM_OneSample, Median)->Arg(20)->Arg(1000);

void BM_MedianInterval(benchmark::State& state) {
  const std::vector<double> x = LogNormal(state.range(0), 1);
  for (auto unused : state) {
    benchmark::DoNotOptimize(MedianInterval(x, 0.95));
  }
}
BENCHMARK(BM_MedianInterval)->Arg(20)->Arg(1000);

void BM_MannWhitneyU(benchmark::State& state) {
  const std::vector<double> x = LogNormal(state.range(0), 1);
  const std::vector<double> y = LogNormal(state.range(0), 2);
  for (auto unused : state) benchmark::DoNotOptimize(MannWhitneyU(x, y));
}
BENCHMARK(BM_MannWhitneyU)->Arg(5)->Arg(50)->Arg(500);

}  // namespace
}  // namespace optrail
