// The kernels that need a workspace: "copies" transposes the input into it,
// computes there, and transposes back.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "diagnosis/evaluation/planted/planted_knobs.h"
#include "ops/core/attributes.h"
#include "ops/core/cpu_kernel.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

using Cause = PlantedKnobs::Cause;

void Transpose(const float* from, int64_t rows, int64_t cols, float* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t r = 0; r < rows; r += kBlock) {
    for (int64_t c = 0; c < cols; c += kBlock) {
      for (int64_t i = r; i < std::min(r + kBlock, rows); ++i) {
        for (int64_t j = c; j < std::min(c + kBlock, cols); ++j) {
          to[j * rows + i] = from[i * cols + j];
        }
      }
    }
  }
}

class PlantedInvocation : public Invocation {
 public:
  PlantedInvocation(int64_t rows, int64_t cols, int64_t depth, bool copies)
      : rows_(rows), cols_(cols), depth_(depth), copies_(copies) {}

  int64_t workspace_bytes() const override {
    return copies_ ? rows_ * cols_ * 4 : 0;
  }

  absl::Status Run(const Call& call) const override {
    const auto* x = static_cast<const float*>(call.operands[0]);
    auto* const y = static_cast<float*>(call.operands[1]);
    auto* const s = static_cast<float*>(call.operands[2]);
    auto* const workspace = static_cast<float*>(call.workspace);
    if (copies_) {
      Transpose(x, rows_, cols_, workspace);
      Map(workspace, workspace);
      Transpose(workspace, cols_, rows_, y);
    } else {
      Map(x, y);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      float sums[16] = {};
      for (int64_t c = 0; c < cols_; c += 16) {
        for (int64_t lane = 0; lane < std::min<int64_t>(16, cols_ - c);
             ++lane) {
          sums[lane] += y[r * cols_ + c + lane];
        }
      }
      s[r] = 0;
      for (const float sum : sums) s[r] += sum;
    }
    return absl::OkStatus();
  }

 private:
  void Map(const float* x, float* y) const {
    for (int64_t i = 0; i < rows_ * cols_; ++i) {
      float v = x[i];
      for (int64_t step = 0; step < depth_; ++step) v = v * x[i] * .5f + .5f;
      y[i] = v;
    }
  }

  const int64_t rows_, cols_, depth_;
  const bool copies_;
};

class PlantedCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const PlantedKnobs knobs,
                             PlantedKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const PlantedKnobs knobs,
                             PlantedKnobs::From(config));
    const Operator& op = *Registry::Get().Find("planted")->op;
    return std::make_unique<PlantedInvocation>(
        shape.dims(0).value(), shape.dims(1).value(),
        IntAttributeOf(op, shape, "depth"), knobs.cause == Cause::kCopies);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("planted", PlantedCpu)

}  // namespace
}  // namespace optrail::ops
