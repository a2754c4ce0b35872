// Measures what isolation costs: to start a worker process, and to ask it
// something.
// This binary is its own worker.
//
//   bazel run //suites/worker:worker_benchmark

#include <memory>

#include "absl/time/time.h"
#include "base/check.h"
#include "base/process/subprocess.h"
#include "benchmark/benchmark.h"
#include "ops/core/device_type.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/worker.h"
#include "suites/workload/tasks.h"

namespace optrail::suites {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(30);

std::unique_ptr<Subprocess> StartWorker() {
  auto worker = Subprocess::Start({"/proc/self/exe", kWorkerFlag});
  OPTRAIL_CHECK(worker.ok()) << worker.status();
  return *std::move(worker);
}

proto::Outcome Ask(Subprocess& worker, const proto::WorkerRequest& request) {
  const absl::Status sent =
      worker.WriteFrame(request.SerializeAsString(), kDeadline);
  OPTRAIL_CHECK(sent.ok()) << sent;
  const auto frame = worker.ReadFrame(kDeadline);
  OPTRAIL_CHECK(frame.ok()) << frame.status();
  proto::WorkerReply reply;
  OPTRAIL_CHECK(reply.ParseFromString(*frame));
  return reply.evaluations(0).trial().outcome();
}

// A request that is answered without any work: no task is open.
proto::WorkerRequest EmptyRequest() {
  proto::WorkerRequest request;
  request.mutable_evaluate();
  return request;
}

void BM_RoundTrip(benchmark::State& state) {
  const std::unique_ptr<Subprocess> worker = StartWorker();
  const proto::WorkerRequest request = EmptyRequest();
  for (auto _ : state) {
    benchmark::DoNotOptimize(Ask(*worker, request));
  }
}
BENCHMARK(BM_RoundTrip)->UseRealTime()->Unit(benchmark::kMicrosecond);

// From the start of the process to its first answer, and its end.
void BM_SpawnAndFirstAnswer(benchmark::State& state) {
  const proto::WorkerRequest request = EmptyRequest();
  for (auto _ : state) {
    const std::unique_ptr<Subprocess> worker = StartWorker();
    benchmark::DoNotOptimize(Ask(*worker, request));
  }
}
BENCHMARK(BM_SpawnAndFirstAnswer)->UseRealTime()->Unit(benchmark::kMicrosecond);

// The same, until the worker is ready for configs of `add`, n=393216: threads,
// operands, random inputs and their reference.
void BM_SpawnAndOpen(benchmark::State& state) {
  const auto hardware = ops::HardwareOf(proto::CPU);
  OPTRAIL_CHECK(hardware.ok()) << hardware.status();
  TaskSelection selection;
  selection.op_regex = "add";
  selection.shape_regex = "n=393216/";
  const auto tasks = SelectTasks(selection, *hardware);
  OPTRAIL_CHECK(tasks.ok()) << tasks.status();
  proto::WorkerRequest request;
  *request.mutable_open()->mutable_task() = tasks->front().task;
  request.mutable_open()->add_input_seeds(1);
  for (auto _ : state) {
    const std::unique_ptr<Subprocess> worker = StartWorker();
    OPTRAIL_CHECK(Ask(*worker, request) == proto::OK);
  }
}
BENCHMARK(BM_SpawnAndOpen)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
