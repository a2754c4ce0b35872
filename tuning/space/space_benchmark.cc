// Construction of large spaces, and what strategies do with them.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::tuning {
namespace {

// A blocked, packed, threaded matmul as ops/matmul tunes it, with all its
// constraints. About 10^9 combinations for the shape below.
constexpr char kMatmul[] = R"(
knob { name: "mr" ints: [1, 2, 4, 6, 8, 10, 12, 14] compile_time: true }
knob { name: "nr" ints: [8, 16, 24, 32, 48, 64] compile_time: true }
knob { name: "mc" ints: [12, 24, 48, 72, 96, 120, 144, 192, 240, 288, 384, 480] }
knob { name: "kc" pow2 { min: 16 max: 4096 } }
knob { name: "nc" pow2 { min: 64 max: 8192 } }
knob { name: "unroll_k" ints: [1, 2, 4, 8] compile_time: true }
knob { name: "pack_a" boolean: true }
knob { name: "pack_b" boolean: true }
knob { name: "loop_order" variants: ["jpi", "jip", "pji", "ijp", "ipj", "pij"] }
knob { name: "prefetch" ints: [0, 1, 2, 4, 8, 16] }
knob { name: "threads_m" pow2 { min: 1 max: 64 } }
knob { name: "threads_n" pow2 { min: 1 max: 64 } }
constraint { expr: "mr * nr * 32 / hw.simd_bits + nr * 32 / hw.simd_bits + 1 <= 32" }
constraint { expr: "nr * 32 % hw.simd_bits == 0" }
constraint { expr: "mc % mr == 0" }
constraint { expr: "nc % nr == 0" }
constraint { expr: "kc % unroll_k == 0" }
constraint { expr: "kc * nr * 4 <= hw.l1d_bytes" }
constraint { expr: "mc * kc * 4 <= hw.l2_bytes" }
constraint { expr: "kc * nc * 4 <= hw.l3_bytes" }
constraint { expr: "mc <= 2 * dim.m && kc <= 2 * dim.k && nc <= 2 * dim.n" }
constraint { expr: "threads_m * threads_n == hw.cores" }
constraint { expr: "pack_b || prefetch <= 4" }
constraint { expr: "pack_a || pack_b || loop_order in ['jpi', 'pji']" }
default {
  set { knob: "mr" int: 6 } set { knob: "nr" int: 16 } set { knob: "mc" int: 96 }
  set { knob: "kc" int: 256 } set { knob: "nc" int: 1024 }
  set { knob: "unroll_k" int: 4 } set { knob: "pack_a" bool: true }
  set { knob: "pack_b" bool: true } set { knob: "loop_order" variant: "jpi" }
  set { knob: "prefetch" int: 4 } set { knob: "threads_m" int: 2 }
  set { knob: "threads_n" int: 2 }
}
)";

// 10 levels a knob, and a constraint that tells every prefix apart: the worst
// case for a decision diagram.
std::string Unfactorable(int knobs) {
  std::string text;
  std::string defaults;
  std::string sum = "0";
  int64_t weight = 1;
  for (int i = 0; i < knobs; ++i) {
    absl::StrAppend(&text, "knob { name: 'k", i,
                    "' ints: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }\n");
    absl::StrAppend(&defaults, "set { knob: 'k", i, "' int: 1 } ");
    absl::StrAppend(&sum, " + ", weight, " * k", i);
    weight = weight * 11 + 5;
  }
  return absl::StrCat(text, "constraint { expr: '(", sum, ") % 101 == 0' }\n",
                      "default { ", defaults, "}\n");
}

proto::Hardware Hardware() {
  proto::Hardware hardware;
  hardware.set_cores(4);
  hardware.set_l1d_bytes(32 << 10);
  hardware.set_l2_bytes(1 << 20);
  hardware.set_l3_bytes(32 << 20);
  hardware.set_simd_bits(256);
  return hardware;
}

std::unique_ptr<BoundSpace> Bind(const std::string& text) {
  const auto space = Space::Parse(text, "benchmark");
  if (!space.ok()) return nullptr;
  auto bound = space->Bind(*ParseShape("m=4096,n=4096,k=4096/f32"), Hardware());
  return bound.ok() ? std::move(bound).value() : nullptr;
}

void Construct(benchmark::State& state, const std::string& text) {
  std::unique_ptr<BoundSpace> bound;
  for (auto _ : state) {
    bound = Bind(text);
    if (bound == nullptr) {
      state.SkipWithError("the space does not bind");
      return;
    }
  }
  state.counters["raw"] = bound->raw_count();
  state.counters["valid"] = static_cast<double>(bound->count().value_or(-1));
}

void BM_ConstructMatmul(benchmark::State& state) { Construct(state, kMatmul); }
BENCHMARK(BM_ConstructMatmul)->Unit(benchmark::kMillisecond);

void BM_ConstructUnfactorable(benchmark::State& state) {
  Construct(state, Unfactorable(static_cast<int>(state.range(0))));
}
BENCHMARK(BM_ConstructUnfactorable)
    ->Arg(6)
    ->Arg(8)
    ->Arg(9)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void BM_Sample(benchmark::State& state) {
  const auto bound = Bind(kMatmul);
  Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(bound->Sample(rng));
}
BENCHMARK(BM_Sample);

void BM_IsValid(benchmark::State& state) {
  const auto bound = Bind(kMatmul);
  Rng rng(1);
  std::vector<Levels> levels;
  for (int i = 0; i < 1024; ++i) levels.push_back(bound->Sample(rng));
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(bound->IsValid(levels[++i % levels.size()]));
  }
}
BENCHMARK(BM_IsValid);

void BM_Neighbours(benchmark::State& state) {
  const auto bound = Bind(kMatmul);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        bound->Neighbours(bound->default_levels(), Neighbourhood::kHamming));
  }
}
BENCHMARK(BM_Neighbours);

}  // namespace
}  // namespace optrail::tuning
