// "copies" computes pixel by pixel: it transposes the channels of a row into a
// workspace, and the results back from another one.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "diagnosis/evaluation/channel_mix/channel_mix_knobs.h"
#include "ops/core/attributes.h"
#include "ops/core/cpu_kernel.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

using Cause = ChannelMixKnobs::Cause;

class ChannelMixInvocation : public Invocation {
 public:
  ChannelMixInvocation(int64_t rows, int64_t cols, int64_t channels,
                       bool copies)
      : rows_(rows), cols_(cols), channels_(channels), copies_(copies) {}

  int64_t workspace_bytes() const override {
    return copies_ ? 2 * rows_ * channels_ * cols_ * 4 : 0;
  }

  absl::Status Run(const Call& call) const override {
    const auto* const x = static_cast<const float*>(call.operands[0]);
    const auto* const w = static_cast<const float*>(call.operands[1]);
    auto* const y = static_cast<float*>(call.operands[2]);
    auto* const e = static_cast<float*>(call.operands[3]);
    if (!copies_) {
      for (int64_t r = 0; r < rows_; ++r) Mix(x, w, y, r);
    } else {
      auto* const pixels = static_cast<float*>(call.workspace);
      float* const mixed = pixels + rows_ * channels_ * cols_;
      for (int64_t r = 0; r < rows_; ++r) {
        for (int64_t k = 0; k < channels_; ++k) {
          for (int64_t c = 0; c < cols_; ++c) {
            pixels[(r * cols_ + c) * channels_ + k] =
                x[(r * channels_ + k) * cols_ + c];
          }
        }
      }
      for (int64_t p = 0; p < rows_ * cols_; ++p) {
        for (int64_t i = 0; i < channels_; ++i) {
          float v = 0;
          for (int64_t k = 0; k < channels_; ++k) {
            v += w[i * channels_ + k] * pixels[p * channels_ + k];
          }
          mixed[p * channels_ + i] = v;
        }
      }
      for (int64_t r = 0; r < rows_; ++r) {
        for (int64_t i = 0; i < channels_; ++i) {
          for (int64_t c = 0; c < cols_; ++c) {
            y[(r * channels_ + i) * cols_ + c] =
                mixed[(r * cols_ + c) * channels_ + i];
          }
        }
      }
    }
    for (int64_t r = 0; r < rows_; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < channels_ * cols_; ++i) {
        sum += y[r * channels_ * cols_ + i];
      }
      e[r] = static_cast<float>(sum);
    }
    return absl::OkStatus();
  }

 private:
  void Mix(const float* x, const float* w, float* y, int64_t r) const {
    for (int64_t i = 0; i < channels_; ++i) {
      float* const to = y + (r * channels_ + i) * cols_;
      for (int64_t c = 0; c < cols_; ++c) to[c] = 0;
      for (int64_t k = 0; k < channels_; ++k) {
        const float* const from = x + (r * channels_ + k) * cols_;
        for (int64_t c = 0; c < cols_; ++c) {
          to[c] += w[i * channels_ + k] * from[c];
        }
      }
    }
  }

  const int64_t rows_, cols_, channels_;
  const bool copies_;
};

class ChannelMixCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ChannelMixKnobs knobs,
                             ChannelMixKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ChannelMixKnobs knobs,
                             ChannelMixKnobs::From(config));
    const Operator& op = *Registry::Get().Find("channel_mix")->op;
    return std::make_unique<ChannelMixInvocation>(
        shape.dims(0).value(), shape.dims(1).value(),
        IntAttributeOf(op, shape, "channels"), knobs.cause == Cause::kCopies);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("channel_mix", ChannelMixCpu)

}  // namespace
}  // namespace optrail::ops
