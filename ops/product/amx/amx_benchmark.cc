// What AMX's tiles do at best: the limit of products (docs/lab/measured.md).
//
//   bazel run //ops/product/amx:amx_benchmark

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ops/product/amx/amx.h"
#include "ops/product/amx/pairs.h"

namespace optrail::ops {
namespace {

#if defined(__x86_64__)

constexpr double kFlop = 2.0 * kTileRows * kTileColumns * kTileSteps;

// Four products a step, with what they load from blocks of so many bytes.
void RunSteps(benchmark::State& state, bool loads) {
  const absl::Status here = AmxForBf16();
  if (!here.ok()) {
    state.SkipWithError(std::string(here.message()).c_str());
    return;
  }
  const int64_t steps = state.range(0) / 4096;
  std::vector<uint16_t> memory(steps * 2048 + 32);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  const char* const aligned =
      reinterpret_cast<const char*>((address + 63) / 64 * 64);
  AmxTiles tiles;
  tiles.Configure({16, 16, 16, 16, 16, 16, 16, 16});
  tiles.Load<4>(aligned, 64);
  tiles.Load<5>(aligned + 1024, 64);
  tiles.Load<6>(aligned + 2048, 64);
  tiles.Load<7>(aligned + 3072, 64);
  for (auto _ : state) {
    for (int64_t s = 0; s < steps; ++s) {
      const char* const from = aligned + s * 4096;
      if (loads) {
        tiles.Load<6>(from, 64);
        tiles.Load<4>(from + 1024, 64);
      }
      tiles.MultiplyAdd<0, 4, 6>();
      if (loads) tiles.Load<7>(from + 2048, 64);
      tiles.MultiplyAdd<1, 4, 7>();
      if (loads) tiles.Load<5>(from + 3072, 64);
      tiles.MultiplyAdd<2, 5, 6>();
      tiles.MultiplyAdd<3, 5, 7>();
    }
  }
  tiles.Release();
  state.counters["flop"] = benchmark::Counter(
      4 * kFlop * static_cast<double>(steps * state.iterations()),
      benchmark::Counter::kIsRate);
}

void BM_TilesFromRegisters(benchmark::State& state) { RunSteps(state, false); }
BENCHMARK(BM_TilesFromRegisters)->Arg(32 << 10);

void BM_TilesFromBlocks(benchmark::State& state) { RunSteps(state, true); }
BENCHMARK(BM_TilesFromBlocks)
    ->Arg(32 << 10)
    ->Arg(256 << 10)
    ->Arg(1 << 20)
    ->Arg(8 << 20);

// The same, but tiles of so many rows on the left.
void BM_TilesOfRows(benchmark::State& state) {
  const absl::Status here = AmxForBf16();
  if (!here.ok()) {
    state.SkipWithError(std::string(here.message()).c_str());
    return;
  }
  const auto rows = static_cast<uint8_t>(state.range(0));
  AmxTiles tiles;
  tiles.Configure({rows, rows, rows, rows, rows, rows, 16, 16});
  for (auto _ : state) {
    tiles.MultiplyAdd<0, 4, 6>();
    tiles.MultiplyAdd<1, 4, 7>();
    tiles.MultiplyAdd<2, 5, 6>();
    tiles.MultiplyAdd<3, 5, 7>();
  }
  tiles.Release();
}
BENCHMARK(BM_TilesOfRows)->Arg(16)->Arg(14)->Arg(8)->Arg(1);

// A convolution of 3 x 3 with so many channels: pixels where they lie, in lines
// of 58, and packed filters.
void BM_TilesFromPixels(benchmark::State& state) {
  const absl::Status here = AmxForBf16();
  if (!here.ok()) {
    state.SkipWithError(std::string(here.message()).c_str());
    return;
  }
  const int64_t channels = state.range(0);
  const int64_t lines = state.range(1);
  const int64_t stride = channels * 2;
  std::vector<uint16_t> pixels((lines + 4) * 58 * channels + 32);
  std::vector<uint16_t> filters(9 * channels * 32 + 32);
  const auto align = [](const std::vector<uint16_t>& v) {
    return reinterpret_cast<const char*>(
        (reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
  };
  const char* const x = align(pixels);
  AmxTiles tiles;
  tiles.Configure({16, 16, 16, 16, 16, 16, 16, 16});
  int64_t steps = 0;
  for (auto _ : state) {
    for (int64_t t = 0; t + 32 <= lines * 58; t += 32) {
      const char* b = align(filters);
      for (int64_t place = 0; place < 9; ++place) {
        const char* const a = x + (t + place / 3 * 58 + place % 3) * stride;
        for (int64_t c = 0; c < stride; c += 64, b += 2048) {
          tiles.Load<6>(b, 64);
          tiles.Load<4>(a + c, stride);
          tiles.MultiplyAdd<0, 4, 6>();
          tiles.Load<7>(b + 1024, 64);
          tiles.MultiplyAdd<1, 4, 7>();
          tiles.Load<5>(a + c + 16 * stride, stride);
          tiles.MultiplyAdd<2, 5, 6>();
          tiles.MultiplyAdd<3, 5, 7>();
          ++steps;
        }
      }
    }
  }
  tiles.Release();
  state.counters["flop"] = benchmark::Counter(
      4 * kFlop * static_cast<double>(steps), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_TilesFromPixels)
    ->Args({64, 56})
    ->Args({128, 28})
    ->Args({256, 14})
    ->Args({512, 7});

// Sums of 32 x 32 that are stored and rounded, for which products wait.
void BM_StoreAndRound(benchmark::State& state) {
  const absl::Status here = AmxForBf16();
  if (!here.ok()) {
    state.SkipWithError(std::string(here.message()).c_str());
    return;
  }
  alignas(64) static float sums[kPanel * kPanel];
  alignas(64) static uint16_t rounded[kPanel * kPanel];
  AmxTiles tiles;
  tiles.Configure({16, 16, 16, 16, 16, 16, 16, 16});
  for (auto _ : state) {
    tiles.MultiplyAdd<0, 4, 6>();
    tiles.MultiplyAdd<1, 4, 7>();
    tiles.MultiplyAdd<2, 5, 6>();
    tiles.MultiplyAdd<3, 5, 7>();
    tiles.Store<0>(sums, kPanel * 4);
    tiles.Store<1>(sums + 16, kPanel * 4);
    tiles.Store<2>(sums + 16 * kPanel, kPanel * 4);
    tiles.Store<3>(sums + 16 * kPanel + 16, kPanel * 4);
    AmxTiles::Round(Epilogue(), sums, kPanel, kPanel, kPanel, rounded, kPanel);
    benchmark::DoNotOptimize(rounded);
  }
  tiles.Release();
}
BENCHMARK(BM_StoreAndRound);

#endif

// Packs B with 1024 columns and so many steps of the sum.
void BM_PackPairs(benchmark::State& state) {
  constexpr int64_t kColumns = 1024;
  const std::vector<uint16_t> b(state.range(0) * kColumns, 1);
  std::vector<uint16_t> packed(PackedElements(state.range(0), kColumns));
  for (auto _ : state) {
    PackPairs(b.data(), state.range(0), kColumns, kColumns, packed.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * kColumns * 2);
}
BENCHMARK(BM_PackPairs)->Arg(256)->Arg(4096);

}  // namespace
}  // namespace optrail::ops

BENCHMARK_MAIN();
