#ifndef OPTRAIL_SUITES_WORKER_OPENED_TASK_H_
#define OPTRAIL_SUITES_WORKER_OPENED_TASK_H_

// The task of a worker process: its backend, the device, operands and
// references, and what can be done with one of its configs. measure.h puts the
// steps of a measurement together.
//
//   OpenedTask task;
//   OPTRAIL_RETURN_IF_ERROR(task.Open(request));
//   std::unique_ptr<ops::Runnable> runnable;
//   proto::Evaluation loaded = task.Load("", config, {}, &runnable);
//
// Used by one thread. Opening another task keeps the device.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/core/backend.h"
#include "ops/core/device.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/runnable.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/references_ahead.h"
#include "suites/worker/taken_pages.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// Describes this machine's device of `kind` to a compiler. If `hardware` is
// known already, its driver is not asked.
absl::StatusOr<ops::Target> LocalTarget(
    proto::DeviceKind kind,
    const absl::optional<proto::Hardware>& hardware = absl::nullopt);

// A kernel that works in place gets this many prefilled operand sets, so that
// several calls fit into a sample; fewer if they would not fit into memory.
inline constexpr int kInPlaceSets = 32;

// Folders below WorkerRequest.Open.shared_folder.
inline constexpr char kCompiledFolder[] = "compiled";
inline constexpr char kReferencesFolder[] = "references";

// Sorted by name.
void AddFacts(const ops::Artifact& artifact, proto::Trial* trial);

// Fills the compile cache with one config's code, for hardware that may be
// elsewhere; needs no device.
proto::Evaluation Compile(const proto::WorkerRequest::Compile& request);

class OpenedTask {
 public:
  // Options that are added to a recipe (Perturbation.compile_options).
  using CompileOptions = google::protobuf::RepeatedPtrField<std::string>;

  absl::Status Open(const proto::WorkerRequest::Open& request);
  bool is_open() const { return operands_ != nullptr; }
  // Makes the inputs of these seeds and their references.
  absl::Status MakeReady(
      const google::protobuf::RepeatedField<uint64_t>& input_seeds);

  // OK, with the time that loading took and the facts of the code, or why it
  // cannot be launched. `backend` is named as in a task.
  proto::Evaluation Load(const std::string& backend,
                         const proto::Config& config,
                         const CompileOptions& compile_options,
                         std::unique_ptr<ops::Runnable>* runnable);
  // The results of one call with hard values; DataLoss says what a call must
  // not do and this one did.
  absl::StatusOr<ops::CheckedOperands::Results> RunChecked(
      uint64_t input_seed, ops::Runnable& runnable);
  // A hash of the bits of a call's results on hard values of the seed, also
  // where these are far from the host.
  absl::StatusOr<uint64_t> BitsOfResults(uint64_t input_seed,
                                         ops::Runnable& runnable);
  // Returns true if a row of the results has the same bits however many rows a
  // call of the config computes, on typical values of the seed: all of the
  // task's are held against a few numbers of fewer (ops/core/batch_rows.h).
  // nullopt: the operator has no such rows, or none of these calls can be made.
  absl::StatusOr<absl::optional<bool>> IsBatchInvariant(
      uint64_t input_seed, const std::string& backend,
      const proto::Config& config, ops::Runnable& runnable);
  // Whether a call is still right after those that were timed: a kernel may
  // keep something between calls, and be wrong, and quick, in all but the
  // first.
  absl::Status CheckLaterCall(uint64_t input_seed, ops::Runnable& runnable);
  // Checks that timed calls left inputs and guards alone.
  absl::Status CheckInputsAndGuards();
  absl::StatusOr<std::unique_ptr<ops::Timer>> MakeTimer(
      uint64_t input_seed, ops::Runnable& runnable, bool zero_inputs = false,
      const proto::Perturbation* perturbation = nullptr);
  // Adds what the meters say to a measurement that is OK. FailedPrecondition or
  // Unimplemented, with the reason, where they must not be believed or calls
  // cannot be metered.
  absl::Status Meter(const proto::Metering& metering, bool zero_inputs,
                     ops::Timer& timer, proto::Measurement* measurement);
  proto::Evaluation Profile(const proto::WorkerRequest::Profile& request);

  const proto::Task& task() const { return task_; }
  ops::Device& device() { return *device_; }
  const ops::CheckedOperands& operands() const { return *operands_; }

 private:
  // Adopts what another thread makes of the seed, if it does.
  void TakeMadeAhead(uint64_t input_seed);
  // The named backend, which computes the task's shape here.
  absl::StatusOr<const ops::Backend*> BackendNamed(
      const std::string& name) const;

  const ops::OperatorEntry* entry_ = nullptr;
  const ops::Backend* backend_ = nullptr;
  proto::Task task_;
  std::string shared_folder_;
  ops::Target target_;
  absl::optional<TakenPages> taken_;
  std::unique_ptr<ops::Device> device_;
  std::unique_ptr<ops::CheckedOperands> operands_;
  // null: none are computed ahead
  std::unique_ptr<ReferencesAhead> references_;
  // Calls of fewer rows, made when they are first asked for; of one backend.
  struct FewerRows {
    proto::Shape shape;
    std::unique_ptr<tuning::BoundSpace> space;
    std::unique_ptr<ops::CheckedOperands> operands;
  };
  absl::Status MakeFewerRows(const ops::Backend& backend);
  std::string fewer_rows_of_;  // the backend's name
  absl::optional<std::vector<FewerRows>> fewer_rows_;
  std::unique_ptr<tuning::Space> space_of_rows_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKER_OPENED_TASK_H_
