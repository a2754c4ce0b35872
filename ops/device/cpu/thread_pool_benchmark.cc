// What a parallel loop costs, undisturbed and while a thread of another owner
// occupies one of its cores (a stand-in for other processes):
//
//   bazel run //ops/device:thread_pool_benchmark
//
// The time that matters beside BM_Loop/threads:2 is that of
// BM_LoopBesideAHog: a spinning barrier shows milliseconds there.

#include <atomic>
#include <thread>

#include "benchmark/benchmark.h"
#include "ops/device/cpu/thread_pool.h"

namespace optrail::ops {
namespace {

// About 3 us of work in eight pieces: a 64^3 product.
void Work(ThreadPool& pool) {
  pool.ParallelFor(8, [](int64_t) {
    float x = 1;
    for (int i = 0; i < 400; ++i) benchmark::DoNotOptimize(x = x * 0.5f + 1);
  });
}

void BM_Loop(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) Work(pool);
}
BENCHMARK(BM_Loop)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

void BM_LoopBesideAHog(benchmark::State& state) {
  ThreadPool pool(2);
  std::atomic<bool> stop{false};
  std::thread hog([&] {
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  for (auto _ : state) Work(pool);
  stop = true;
  hog.join();
}
BENCHMARK(BM_LoopBesideAHog)->UseRealTime();

}  // namespace
}  // namespace optrail::ops
