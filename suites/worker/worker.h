#ifndef OPTRAIL_SUITES_WORKER_WORKER_H_
#define OPTRAIL_SUITES_WORKER_WORKER_H_

// The inside of a worker process: checks configs against the reference and
// samples them, one request at a time. A config that crashes, hangs or eats all
// memory takes this process down and nothing else: worker_evaluator.h is the
// outside.
//
//   int main(int argc, char** argv) {
//     if (IsWorker(argc, argv)) return RunWorker();
//     ...
//   }

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "ops/core/device.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "suites/proto/worker.pb.h"

namespace optrail::suites {

// The argument that makes a binary a worker.
inline constexpr char kWorkerFlag[] = "--optrail_worker";

// A kernel that works in place gets this many prefilled operand sets, so that
// several calls fit into a sample; fewer if they would not fit into memory.
inline constexpr int kInPlaceSets = 32;

// With cold caches each sample is one call; below this, reading the clock and
// refilling the first cache line would be what is measured.
inline constexpr int64_t kMinColdCallNs = 2'000;

bool IsWorker(int argc, char** argv);

// Answers requests on standard input until it is closed; the exit code.
int RunWorker();

// What RunWorker does with each request, without the process around it.
class Worker {
 public:
  proto::WorkerReply Answer(const proto::WorkerRequest& request);

 private:
  absl::Status Open(const proto::WorkerRequest::Open& request);
  proto::WorkerReply Evaluate(const proto::WorkerRequest::Evaluate& request);

  const ops::OperatorEntry* entry_ = nullptr;
  const ops::Kernel* kernel_ = nullptr;
  proto::Task task_;
  std::unique_ptr<ops::Device> device_;
  std::unique_ptr<ops::CheckedOperands> operands_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_H_
