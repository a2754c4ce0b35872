// What the first call of RunningBinaryFingerprint() costs:
//
//   bazel run -c opt //base/process:running_binary_benchmark

#include "base/check.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "benchmark/benchmark.h"

namespace optrail {
namespace {

void BM_FingerprintOfRunningBinary(benchmark::State& state) {
  int64_t bytes = 0;
  for (auto _ : state) {
    const auto contents = ReadFile("/proc/self/exe");
    OPTRAIL_CHECK(contents.ok()) << contents.status();
    benchmark::DoNotOptimize(Fingerprint(*contents));
    bytes += static_cast<int64_t>(contents->size());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_FingerprintOfRunningBinary)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail
