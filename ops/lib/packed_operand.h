#ifndef OPTRAIL_OPS_LIB_PACKED_OPERAND_H_
#define OPTRAIL_OPS_LIB_PACKED_OPERAND_H_

// Operands that a kernel for CPUs keeps from call to call in a layout of its
// own: a layer's weights.
//
//   const auto filters = std::make_shared<PackedOperand>(device, floats);
//   return MakePackingInvocation(
//       [=](absl::Span<void* const> operands) {
//         Transform(operands[1], filters->Keep(operands[1]));
//       },
//       [=](absl::Span<void* const> operands) {
//         Multiply(operands[0], filters->Find(operands[1]), operands[2]);
//       });

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "ops/core/cpu_kernel.h"
#include "ops/lib/cpu_frame.h"

namespace optrail::ops {

// An operand in another layout, as a layer would keep it (Invocation::Pack),
// for each address that it lies at.
class PackedOperand {
 public:
  PackedOperand(CpuDevice& device, int64_t floats)
      : device_(device), floats_(floats) {}

  // Where that of `operand` is to be written.
  float* Keep(const void* operand) {
    std::unique_ptr<Buffer>& kept = kept_[operand];
    if (kept == nullptr) {
      absl::StatusOr<std::unique_ptr<Buffer>> allocated =
          device_.Allocate(floats_ * sizeof(float));
      OPTRAIL_CHECK(allocated.ok()) << allocated.status().ToString();
      kept = *std::move(allocated);
    }
    return static_cast<float*>(kept->data());
  }

  const float* Find(const void* operand) const {
    const auto kept = kept_.find(operand);
    OPTRAIL_CHECK(kept != kept_.end()) << "never packed";
    return static_cast<const float*>(kept->second->data());
  }

 private:
  CpuDevice& device_;
  const int64_t floats_;
  std::map<const void*, std::unique_ptr<Buffer>> kept_;
};

// As MakeInvocation, with pack(operands) as Invocation::Pack.
template <class PackFunction, class Function, class... SharedWorkspaces>
std::unique_ptr<Invocation> MakePackingInvocation(
    PackFunction pack, Function run, const SharedWorkspaces&... workspaces) {
  class Made : public Invocation {
   public:
    Made(PackFunction pack, std::unique_ptr<Invocation> run)
        : pack_(std::move(pack)), run_(std::move(run)) {}
    void Pack(absl::Span<void* const> operands) override { pack_(operands); }
    void Run(absl::Span<void* const> operands) override { run_->Run(operands); }
    int64_t workspace_bytes() const override { return run_->workspace_bytes(); }

   private:
    const PackFunction pack_;
    const std::unique_ptr<Invocation> run_;
  };
  return std::make_unique<Made>(std::move(pack),
                                MakeInvocation(std::move(run), workspaces...));
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_LIB_PACKED_OPERAND_H_
