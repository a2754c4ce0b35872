#ifndef OPTRAIL_LIB_PLAN_H_
#define OPTRAIL_LIB_PLAN_H_

// A kernel that is ready for any number of threads to run.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto plan,
//                            Plan::Create(store, problem, options));
//   absl::Status status = plan->Run(call);
//
// Immutable but for memory that it lends to calls which bring none.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda_context.h"
#include "lib/observer.h"
#include "lib/operands.h"
#include "lib/optrail.h"
#include "lib/store.h"
#include "lib/threads.h"
#include "ops/core/device.h"
#include "ops/core/invocation.h"

namespace optrail::lib {

// Blocks of memory of one size, kept from call to call. Lock-free.
class Blocks {
 public:
  Blocks(const optrail_allocator& allocator, size_t bytes, size_t zeroed)
      : allocator_(allocator), bytes_(bytes), zeroed_(zeroed) {}
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  size_t bytes() const { return bytes_; }

  // One that nobody else has; ResourceExhausted without memory.
  absl::StatusOr<void*> Take();
  // `reusable`: its zeroed bytes are zero again.
  void Give(void* block, bool reusable);

 private:
  static constexpr int kKept = 16;

  const optrail_allocator allocator_;
  const size_t bytes_, zeroed_;
  std::array<std::atomic<void*>, kKept> kept_ = {};
};

class Plan {
 public:
  // Implements optrail_plan_create(); `store` may be null.
  static absl::StatusOr<std::unique_ptr<Plan>> Create(
      const Store* store, const optrail_problem& problem,
      const optrail_plan_options& options);

  const Choice& choice() const { return choice_; }
  size_t operand_count() const { return operands_.size(); }
  // InvalidArgument for an index of no operand.
  absl::StatusOr<optrail_operand> operand(size_t index) const;
  size_t workspace_bytes() const { return workspaces_->bytes(); }
  size_t packed_bytes() const { return packed_->bytes(); }

  absl::Status Pack(const optrail_call& call, void* packed) const;
  absl::Status Run(const optrail_call& call) const;

 private:
  class Lease;
  class StreamLease;

  Plan() = default;
  absl::Status RunUncounted(const optrail_call& call) const;
  absl::Status Check(const optrail_call& call) const;
  absl::Status CheckMemory(const char* name, const void* memory, size_t bytes,
                           size_t needed) const;
  absl::Status CheckApart(const char* name, const void* memory, size_t bytes,
                          const optrail_call& call, bool from_inputs) const;
  absl::Status CheckThreads(const optrail_call& call) const;
  absl::Status CheckStream(const optrail_call& call) const;
  absl::Status Refuse(const optrail_call& call) const;
  absl::Status RunWith(const optrail_call& call, void* workspace,
                       void* packed) const;
  absl::Status Launch(const optrail_call& call) const;

  std::string name_;  // for messages: "softmax rows=4,cols=4/f32"
  Choice choice_;
  std::vector<Operand> operands_;
  int threads_ = 1;
  std::unique_ptr<ops::Device> device_;  // outlives the invocation
  const CudaContext* gpu_ = nullptr;     // the device, unless it is the CPU
  std::unique_ptr<const ops::Invocation> invocation_;
  std::unique_ptr<Blocks> workspaces_, packed_;
  tuning::ObservedKey observed_key_;
  LazyCounter counter_;
};

}  // namespace optrail::lib

#endif  // OPTRAIL_LIB_PLAN_H_
