// How long one evaluation of a bound expression takes.

#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "tuning/space/expression.h"

namespace optrail::tuning {
namespace {

void BM_Evaluate(benchmark::State& state, const char* text) {
  Scope scope;
  scope.AddKnob("rows_per_task", ExprType::kInt);
  scope.AddKnob("unroll", ExprType::kInt);
  scope.AddKnob("cols_tile", ExprType::kInt);
  scope.AddKnob("algorithm", ExprType::kString, {"two_pass", "online"});
  const auto expr = Expression::Parse(text, &scope, nullptr);
  if (!expr.ok()) {
    state.SkipWithError(std::string(expr.status().message()).c_str());
    return;
  }
  Frame frame(scope.knob_count());
  const SlotProgram program =
      frame.Compile(expr->Bind([](absl::string_view name) {
        return name == "dim.cols" ? 384 : 1 << 20;
      }));
  std::vector<int64_t> slots = frame.slots();
  int64_t i = 0;
  for (auto _ : state) {
    slots[0] = 1 << (++i & 7);
    slots[1] = 1 + (i & 3);
    slots[2] = 64 + (i & 31);
    slots[3] = i & 1;
    benchmark::DoNotOptimize(program.Holds(slots.data()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(BM_Evaluate, comparison, "unroll <= 2");
BENCHMARK_CAPTURE(BM_Evaluate, cache_fit,
                  "rows_per_task * dim.cols * 4 <= hw.l2_bytes");
BENCHMARK_CAPTURE(BM_Evaluate, implication,
                  "algorithm == 'online' || cols_tile % unroll == 0");
BENCHMARK_CAPTURE(BM_Evaluate, everything,
                  "(rows_per_task * cols_tile * 4 <= hw.l2_bytes ? "
                  "ceil_div(dim.cols, cols_tile) : 0) * unroll in [1, 2, 4, 6] "
                  "&& max(unroll, 2) < 8");

void BM_ParseAndCompile(benchmark::State& state) {
  for (auto _ : state) {
    Scope scope;
    scope.AddKnob("rows_per_task", ExprType::kInt);
    const auto expr = Expression::Parse(
        "rows_per_task * dim.cols * 4 <= hw.l2_bytes", &scope, nullptr);
    Frame frame(1);
    benchmark::DoNotOptimize(
        frame.Compile(expr->Bind([](absl::string_view) { return 4096; })));
  }
}
BENCHMARK(BM_ParseAndCompile);

}  // namespace
}  // namespace optrail::tuning
