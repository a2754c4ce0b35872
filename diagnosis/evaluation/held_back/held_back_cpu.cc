// "copies" stores every product of a tap in a workspace, and adds them up from
// there.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "diagnosis/evaluation/held_back/held_back_knobs.h"
#include "ops/core/attributes.h"
#include "ops/core/cpu_kernel.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

using Cause = HeldBackKnobs::Cause;

class HeldBackInvocation : public Invocation {
 public:
  HeldBackInvocation(int64_t rows, int64_t cols, int64_t taps, bool copies)
      : rows_(rows), cols_(cols), taps_(taps), copies_(copies) {}

  int64_t workspace_bytes() const override {
    return copies_ ? taps_ * rows_ * cols_ * 4 : 0;
  }

  absl::Status Run(const Call& call) const override {
    const auto* const x = static_cast<const float*>(call.operands[0]);
    const auto* const w = static_cast<const float*>(call.operands[1]);
    auto* const y = static_cast<float*>(call.operands[2]);
    auto* const m = static_cast<float*>(call.operands[3]);
    const int64_t count = rows_ * cols_;
    if (copies_) {
      auto* const products = static_cast<float*>(call.workspace);
      for (int64_t k = 0; k < taps_; ++k) {
        for (int64_t i = 0; i < count; ++i) {
          products[k * count + i] = w[k] * x[k * cols_ + i];
        }
      }
      for (int64_t i = 0; i < count; ++i) y[i] = products[i];
      for (int64_t k = 1; k < taps_; ++k) {
        for (int64_t i = 0; i < count; ++i) y[i] += products[k * count + i];
      }
    } else {
      for (int64_t i = 0; i < count; ++i) {
        y[i] = 0;
        for (int64_t k = 0; k < taps_; ++k) y[i] += w[k] * x[k * cols_ + i];
      }
    }
    for (int64_t r = 0; r < rows_; ++r) {
      m[r] = *std::max_element(y + r * cols_, y + (r + 1) * cols_);
    }
    return absl::OkStatus();
  }

 private:
  const int64_t rows_, cols_, taps_;
  const bool copies_;
};

class HeldBackCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const HeldBackKnobs knobs,
                             HeldBackKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const HeldBackKnobs knobs,
                             HeldBackKnobs::From(config));
    const Operator& op = *Registry::Get().Find("held_back")->op;
    return std::make_unique<HeldBackInvocation>(
        shape.dims(0).value(), shape.dims(1).value(),
        IntAttributeOf(op, shape, "taps"), knobs.cause == Cause::kCopies);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("held_back", HeldBackCpu)

}  // namespace
}  // namespace optrail::ops
