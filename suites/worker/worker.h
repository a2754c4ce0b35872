#ifndef OPTRAIL_SUITES_WORKER_WORKER_H_
#define OPTRAIL_SUITES_WORKER_WORKER_H_

// The inside of a worker process: checks configs against the reference and
// samples them, one request at a time. A config that crashes, hangs or eats all
// memory takes this process down and nothing else: worker_evaluator.h is the
// outside.
//
//   if (IsWorker(argc, argv)) {  // the first thing that main() does
//     return RunWorker(argc, argv);
//   }

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/core/backend.h"
#include "ops/core/device.h"
#include "ops/core/neighbours.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "suites/proto/worker.pb.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/worker/references_ahead.h"
#include "suites/worker/taken_pages.h"

namespace optrail::suites {

// The argument that makes a binary a worker.
inline constexpr char kWorkerFlag[] = "--optrail_worker";

// A kernel that works in place gets this many prefilled operand sets, so that
// several calls fit into a sample; fewer if they would not fit into memory.
inline constexpr int kInPlaceSets = 32;

// With cold caches a sample is one call, but for devices that bring many in one
// launch; below this, reading the clock and refilling the first cache line
// would be what is measured.
inline constexpr int64_t kMinColdSampleNs = 2'000;

// Why a sampling with cold caches says nothing; "" if it does say something.
std::string TooShortCold(const Sampling& sampling);

// Folders below WorkerRequest.Open.shared_folder.
inline constexpr char kCompiledFolder[] = "compiled";
inline constexpr char kReferencesFolder[] = "references";

// Sorted by name.
std::vector<proto::Fact> FactsOf(const ops::Artifact& artifact);

// What this machine's device of `kind` is to a compiler. With `hardware`, where
// that is known already, its driver is not asked.
absl::StatusOr<ops::Target> LocalTarget(
    proto::DeviceKind kind,
    const absl::optional<proto::Hardware>& hardware = absl::nullopt);

// Or the guard of one that compiles (base/process_guard.h).
bool IsWorker(int argc, char** argv);

// Answers requests on standard input until it is closed; the exit code.
int RunWorker(int argc, char** argv);

// What RunWorker does with each request, without the process around it.
class Worker {
 public:
  // `tell` takes what is said before a reply (WorkerReply.turn), and `listen`
  // waits for an answer to it (WorkerReply.ask_elsewhere); empty: nobody is
  // there.
  explicit Worker(
      std::function<void(const proto::WorkerReply&)> tell = {},
      std::function<absl::StatusOr<proto::WorkerRequest>()> listen = {})
      : tell_(std::move(tell)), listen_(std::move(listen)) {}

  proto::WorkerReply Answer(const proto::WorkerRequest& request);

 private:
  // Added to a recipe (Perturbation.compile_options).
  using CompileOptions = google::protobuf::RepeatedPtrField<std::string>;

  absl::Status Open(const proto::WorkerRequest::Open& request);
  absl::Status MakeReady(const proto::WorkerRequest::MakeReady& request);
  // What another thread makes of the seed, if it does.
  void TakeMadeAhead(uint64_t input_seed);
  proto::WorkerReply EvaluateInTurn(
      const proto::WorkerRequest::Evaluate& request);
  proto::WorkerReply EvaluateTogetherInTurn(
      const proto::WorkerRequest::EvaluateTogether& request);
  // What so many calls of a contender that is computed elsewhere take.
  absl::StatusOr<int64_t> TimeElsewhere(int contender, int64_t calls) const;
  // What `evaluate` answers once the device is this process's.
  proto::WorkerReply InTurn(
      absl::FunctionRef<proto::WorkerReply()> evaluate) const;
  void TellTurn(proto::WorkerReply::Turn turn, const std::string& note) const;
  ops::NeighbourNames FindNeighbours() const;
  // OK, with what loading it took and told, or why it cannot be launched.
  proto::WorkerReply Load(const ops::Backend& backend,
                          const proto::Config& config,
                          const CompileOptions& compile_options,
                          std::unique_ptr<ops::Runnable>* runnable);
  proto::WorkerReply Profile(const proto::WorkerRequest::Profile& request);

  // The config's code, from the cache or compiled here.
  absl::StatusOr<ops::Artifact> ArtifactOf(
      const ops::Backend& backend, const proto::Config& config,
      const CompileOptions& compile_options) const;
  // Another one that computes the task's shape here.
  absl::StatusOr<const ops::Backend*> OtherBackend(
      const std::string& name) const;
  // What one call with hard values left; DataLoss says what it must not do.
  absl::StatusOr<ops::CheckedOperands::Results> RunChecked(
      uint64_t input_seed, ops::Runnable& runnable);
  // Whether a call is still right after those that were timed: a kernel may
  // keep something between calls, and be wrong, and quick, in all but the
  // first.
  absl::Status CheckLaterCall(uint64_t input_seed, ops::Runnable& runnable);
  // Where calls are long, one of them before any other; else nullopt.
  absl::StatusOr<absl::optional<Sampling>> FirstCall(
      const proto::WorkerRequest::Evaluate& request, ops::Runnable& runnable);
  absl::StatusOr<std::unique_ptr<ops::Timer>> MakeTimer(
      uint64_t input_seed, ops::Runnable& runnable, bool zero_inputs = false,
      const proto::Perturbation* perturbation = nullptr);
  // What is to be said instead of a time with cold caches, if it is too short.
  absl::optional<proto::WorkerReply> TooShort(const Sampling& sampling) const;
  void FillReply(int64_t started_unix_ns, Sampling sampling,
                 proto::WorkerReply* reply) const;
  // Adds what the meters say to a measurement that is OK. FailedPrecondition or
  // Unimplemented, with the reason, where they must not be believed or calls
  // cannot be metered.
  absl::Status Meter(const proto::Metering& metering, bool zero_inputs,
                     ops::Timer& timer, proto::Measurement* measurement);

  const std::function<void(const proto::WorkerReply&)> tell_;
  const std::function<absl::StatusOr<proto::WorkerRequest>()> listen_;
  const ops::OperatorEntry* entry_ = nullptr;
  const ops::Backend* backend_ = nullptr;
  proto::Task task_;
  std::string shared_folder_;
  ops::Target target_;
  absl::optional<TakenPages> taken_;
  std::unique_ptr<ops::Device> device_;
  std::unique_ptr<ops::CheckedOperands> operands_;
  std::unique_ptr<ReferencesAhead>
      references_;  // null: none are computed ahead
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_WORKER_H_
