// What a call costs beside its work: the smallest shapes there are, by backends
// that differ in how they are called, prepared once and called again and again.
//
//   ./bazelw run //ops:call_benchmark

#include "benchmark/benchmark.h"
#include "ops/core/backend.h"
#include "ops/core/backend_space.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"

namespace optrail::ops {
namespace {

void BM_Call(benchmark::State& state, const char* op, const char* shape_text,
             const char* backend_name) {
  const OperatorEntry& entry = *Registry::Get().Find(op);
  const Backend& backend = **entry.FindBackend(proto::CPU, backend_name);
  const auto device = *MakeCpuDevice(static_cast<int>(state.range(0)));
  const Target target = {proto::CPU, "native", device->hardware()};
  if (!backend.Id(target).ok()) {
    state.SkipWithError(backend.Id(target).status().ToString().c_str());
    return;
  }
  const proto::Shape shape = *tuning::ParseShape(shape_text);
  const tuning::Space space =
      *tuning::Space::Parse(SpaceFileOf(backend).contents, "space");
  const auto bound = *space.Bind(shape, device->hardware());
  const auto operands = *CheckedOperands::Create(*entry.op, shape, *device);
  if (!operands->Fill(1).ok()) state.SkipWithError("no operands");
  const auto runnable = Runnable::Load(backend, Artifact(), shape,
                                       bound->default_config(), *device);
  if (!runnable.ok()) {
    state.SkipWithError(runnable.status().ToString().c_str());
    return;
  }
  const Call call = *(*runnable)->Prepare(operands->addresses());
  const Invocation& invocation = (*runnable)->invocation();
  for (auto _ : state) {
    benchmark::DoNotOptimize(invocation.Run(call));
  }
}

BENCHMARK_CAPTURE(BM_Call, relu, "relu", "n=1/f32", "")->Arg(1)->Arg(2);
BENCHMARK_CAPTURE(BM_Call, softmax, "softmax", "rows=1,cols=1/f32", "")->Arg(1);
BENCHMARK_CAPTURE(BM_Call, matmul, "matmul", "m=1,n=1,k=1/f32", "")->Arg(1);
BENCHMARK_CAPTURE(BM_Call, matmul_bf16, "matmul", "m=1,n=1,k=1/bf16", "")
    ->Arg(1);
BENCHMARK_CAPTURE(BM_Call, linear, "linear", "m=16,n=1,k=1/f32", "")->Arg(1);
BENCHMARK_CAPTURE(BM_Call, layer_norm_backward, "layer_norm_backward",
                  "rows=1,cols=1/f32", "")
    ->Arg(1);
BENCHMARK_CAPTURE(BM_Call, matmul_openblas, "matmul", "m=1,n=1,k=1/f32",
                  "openblas")
    ->Arg(1);
BENCHMARK_CAPTURE(BM_Call, matmul_onednn, "matmul", "m=1,n=1,k=1/f32", "onednn")
    ->Arg(1);
BENCHMARK_CAPTURE(BM_Call, linear_onednn, "linear", "m=16,n=1,k=1/f32",
                  "onednn")
    ->Arg(1);
// Work that is shared out, and leases of workspaces.
BENCHMARK_CAPTURE(BM_Call, matmul_of_tasks, "matmul", "m=64,n=64,k=64/f32", "")
    ->Arg(2);
BENCHMARK_CAPTURE(BM_Call, linear_of_tasks, "linear", "m=64,n=64,k=64/f32", "")
    ->Arg(1)
    ->Arg(2);

}  // namespace
}  // namespace optrail::ops
