// The CPU kernel of softmax: reads the knobs and spreads rows over threads.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/lib/cpu_frame.h"
#include "ops/softmax/row_softmax.h"
#include "ops/softmax/softmax_knobs.h"

namespace optrail::ops {
namespace {

class SoftmaxCpu : public KnobKernel<SoftmaxKnobs> {
 protected:
  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const SoftmaxKnobs& knobs) const override {
    // The widest vectors have so many floats, and the narrowest.
    return {{"rows", knobs.rows_per_task},
            {"cols", knobs.unroll * 16},
            {"cols", knobs.unroll * 4}};
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const SoftmaxKnobs& knobs,
      CpuDevice& device) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const bool streaming = knobs.stores == SoftmaxKnobs::Stores::kStreaming;
    if (streaming && cols % 16 != 0) {
      return absl::InvalidArgumentError(
          "streaming stores need rows of whole cache lines");
    }
    if (streaming && knobs.algorithm == SoftmaxAlgorithm::kThreePass &&
        cols > kMostStreamedCols) {
      return absl::InvalidArgumentError(absl::StrCat(
          "three passes keep a row in place of y where they stream: at most ",
          kMostStreamedCols, " columns"));
    }
    const RowSoftmax softmax =
        FindRowSoftmax(knobs.algorithm, static_cast<int>(knobs.unroll));
    if (softmax == nullptr) return NotCompiled();
    return MakeInvocation([=](const Call& call) {
      const auto* x = static_cast<const float*>(call.operands[0]);
      auto* y = static_cast<float*>(call.operands[1]);
      const bool stream = streaming && IsAligned(y);
      ForBlocks(call, rows, knobs.rows_per_task,
                [&](int64_t row, int64_t count) {
                  SoftmaxRows work;
                  work.x = x + row * cols;
                  work.y = y + row * cols;
                  work.rows = count;
                  work.cols = cols;
                  work.stream = stream;
                  work.rows_left = rows - row;
                  softmax(work);
                });
    });
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("softmax", SoftmaxCpu)

}  // namespace
}  // namespace optrail::ops
