// What a program pays for going through liboptrail: of a run, what is beyond
// the kernel's own call, and of a lookup, all.
//
//   ./bazelw run //lib:optrail_benchmark

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "lib/optrail.h"
#include "lib/planning_device.h"
#include "ops/core/device_type.h"
#include "ops/core/tuned_kernel.h"
#include "tuning/observed/observed_file.h"
#include "tuning/proto/canonical.h"

namespace optrail::lib {
namespace {

// The smallest shapes there are.
struct Case {
  const char *op, *shape;
};
constexpr Case kRelu = {"relu", "n=1/f32"};
constexpr Case kSoftmax = {"softmax", "rows=1,cols=1/f32"};
constexpr Case kMatmul = {"matmul", "m=1,n=1,k=1/f32"};
constexpr Case kLinear = {"linear", "m=16,n=1,k=1/f32"};

optrail_problem ProblemOf(const Case& c) {
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = c.op;
  problem.shape = c.shape;
  return problem;
}

alignas(64) char memory[16][4096];
void* const operands[] = {memory[0], memory[1], memory[2], memory[3]};

// The kernel alone, as Optrail's stopwatch calls it.
void BM_Kernel(benchmark::State& state, Case c) {
  ops::KernelQuestion question;
  question.operator_name = c.op;
  question.shape = *tuning::ParseShape(c.shape);
  const proto::Hardware hardware = *ops::HardwareOf(proto::CPU);
  const auto kernel = ops::ChooseKernel(question, hardware, nullptr);
  PlanningDevice device(hardware, 1);
  const auto invocation = *kernel->backend->Load(ops::Artifact(), kernel->shape,
                                                 kernel->config, device);
  ops::Call call;
  call.operands = absl::MakeConstSpan(
      operands, kernel->entry->op->Operands(kernel->shape)->size());
  call.workspace = memory[8];
  call.packed = memory[15];
  if (invocation->workspace_bytes() > 7 * 4096 ||
      invocation->packed_bytes() > 4096) {
    state.SkipWithError("no memory for a call");
    return;
  }
  if (!invocation->Pack(call).ok()) state.SkipWithError("not packed");
  for (auto _ : state) benchmark::DoNotOptimize(invocation->Run(call));
}

void BM_Run(benchmark::State& state, Case c, bool own_workspace) {
  const optrail_problem problem = ProblemOf(c);
  optrail_plan* plan = nullptr;
  if (optrail_plan_create(nullptr, &problem, nullptr, &plan) != OPTRAIL_OK) {
    state.SkipWithError(optrail_message());
    return;
  }
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = optrail_plan_operand_count(plan);
  if (own_workspace) {
    call.workspace = memory[8];
    call.workspace_bytes = 7 * 4096;
  }
  if (optrail_plan_packed_bytes(plan) > 0) {
    optrail_pack(plan, &call, memory[15]);
    call.packed = memory[15];
    call.packed_bytes = 4096;
  }
  for (auto _ : state) {
    if (optrail_run(plan, &call) != OPTRAIL_OK) {
      state.SkipWithError(optrail_message());
      break;
    }
  }
  optrail_plan_destroy(plan);
}

#define OPTRAIL_BENCHMARK_CALLS(name, c)                      \
  BENCHMARK_CAPTURE(BM_Kernel, name, c);                      \
  BENCHMARK_CAPTURE(BM_Run, name, c, /*own_workspace=*/true); \
  BENCHMARK_CAPTURE(BM_Run, name##_and_workspace, c, false)

OPTRAIL_BENCHMARK_CALLS(relu, kRelu);
OPTRAIL_BENCHMARK_CALLS(softmax, kSoftmax);
OPTRAIL_BENCHMARK_CALLS(matmul, kMatmul);
OPTRAIL_BENCHMARK_CALLS(linear, kLinear);

// Looks up range(0) shapes one after another; each was asked for before.
void BM_Lookup(benchmark::State& state) {
  optrail_store* store = nullptr;
  if (optrail_store_open(nullptr, &store) != OPTRAIL_OK) {
    state.SkipWithError(optrail_message());
    return;
  }
  std::vector<std::string> shapes;
  for (int64_t i = 0; i < state.range(0); ++i) {
    shapes.push_back("rows=" + std::to_string(i + 1) + ",cols=384/f32");
  }
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  optrail_problem problem = ProblemOf(kSoftmax);
  for (const std::string& shape : shapes) {
    problem.shape = shape.c_str();
    optrail_lookup(store, &problem, &choice);
  }
  size_t next = 0;
  for (auto _ : state) {
    problem.shape = shapes[next].c_str();
    next = next + 1 == shapes.size() ? 0 : next + 1;
    benchmark::DoNotOptimize(optrail_lookup(store, &problem, &choice));
  }
  optrail_store_close(store);
}
BENCHMARK(BM_Lookup)->Arg(1)->Arg(1024);

void BM_FirstLookup(benchmark::State& state) {
  optrail_store* store = nullptr;
  optrail_store_open(nullptr, &store);
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  optrail_problem problem = ProblemOf(kSoftmax);
  int rows = 0;
  for (auto _ : state) {
    const std::string shape = "rows=" + std::to_string(++rows) + ",cols=7/f32";
    problem.shape = shape.c_str();
    benchmark::DoNotOptimize(optrail_lookup(store, &problem, &choice));
  }
  optrail_store_close(store);
}
BENCHMARK(BM_FirstLookup)->Iterations(1000);

void BM_Open(benchmark::State& state) {
  for (auto _ : state) {
    optrail_store* store = nullptr;
    optrail_store_open(nullptr, &store);
    optrail_store_close(store);
  }
}
BENCHMARK(BM_Open)->Unit(benchmark::kMillisecond);

void BM_Plan(benchmark::State& state, Case c) {
  const optrail_problem problem = ProblemOf(c);
  for (auto _ : state) {
    optrail_plan* plan = nullptr;
    optrail_plan_create(nullptr, &problem, nullptr, &plan);
    optrail_plan_destroy(plan);
  }
}
BENCHMARK_CAPTURE(BM_Plan, matmul, kMatmul)->Unit(benchmark::kMicrosecond);

// From here on calls are counted, until the process ends.
const std::string& ObservedFolder() {
  static const std::string& folder = *new std::string([] {
    const char* const scratch = std::getenv("TMPDIR");
    const std::string path =
        std::string(scratch != nullptr ? scratch : "/tmp") +
        "/optrail_benchmark." + std::to_string(getpid());
    return optrail_observe(path.c_str(), 0) == OPTRAIL_OK ? path : "";
  }());
  return folder;
}

void BM_LookupObserved(benchmark::State& state) {
  if (ObservedFolder().empty()) state.SkipWithError(optrail_message());
  BM_Lookup(state);
}
BENCHMARK(BM_LookupObserved)->Arg(1)->Arg(1024);

void BM_RunObserved(benchmark::State& state, Case c) {
  if (ObservedFolder().empty()) state.SkipWithError(optrail_message());
  BM_Run(state, c, /*own_workspace=*/true);
}
BENCHMARK_CAPTURE(BM_RunObserved, relu, kRelu);

// 64 threads ask about one shape. The counter `lost` says how many of their
// calls the file lacks.
void BM_LookupObservedBy64Threads(benchmark::State& state) {
  constexpr int kThreads = 64, kCalls = 20000;
  optrail_store* store = nullptr;
  if (ObservedFolder().empty() ||
      optrail_store_open(nullptr, &store) != OPTRAIL_OK) {
    state.SkipWithError(optrail_message());
    return;
  }
  optrail_problem problem = ProblemOf(kSoftmax);
  problem.shape = "rows=64,cols=64/f32";
  static int64_t made = 0;  // over all repetitions
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        optrail_choice choice = OPTRAIL_CHOICE_INIT;
        for (int i = 0; i < kCalls; ++i) {
          optrail_lookup(store, &problem, &choice);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    made += int64_t{kThreads} * kCalls;
  }
  int64_t counted = 0;
  const auto rows = tuning::ReadObservedFiles({ObservedFolder()});
  if (!rows.ok()) state.SkipWithError(rows.status().ToString().c_str());
  for (const tuning::ObservedRow& row : *rows) {
    if (row.key.shape == problem.shape) counted += row.lookups;
  }
  state.counters["lost"] = static_cast<double>(made - counted);
  state.SetItemsProcessed(made);
  optrail_store_close(store);
}
BENCHMARK(BM_LookupObservedBy64Threads)
    ->Iterations(5)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace optrail::lib
