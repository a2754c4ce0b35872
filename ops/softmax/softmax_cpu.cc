// The CPU kernel of softmax: reads the knobs and spreads rows over threads.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/cpu_kernel.h"
#include "ops/softmax/row_softmax.h"
#include "ops/softmax/softmax_knobs.h"

namespace optrail::ops {
namespace {

class SoftmaxCpuInvocation : public Invocation {
 public:
  SoftmaxCpuInvocation(int64_t rows, int64_t cols, const SoftmaxKnobs& knobs,
                       RowSoftmax softmax)
      : rows_(rows),
        cols_(cols),
        rows_per_task_(knobs.rows_per_task),
        stream_(knobs.stores == SoftmaxKnobs::Stores::kStreaming),
        softmax_(softmax) {}

  absl::Status Run(const Call& call) const override {
    const auto* x = static_cast<const float*>(call.operands[0]);
    auto* y = static_cast<float*>(call.operands[1]);
    const bool stream = stream_ && reinterpret_cast<uintptr_t>(y) % 64 == 0;
    const int64_t tasks = (rows_ + rows_per_task_ - 1) / rows_per_task_;
    call.ParallelFor(tasks, [&](int64_t task) {
      const int64_t row = task * rows_per_task_;
      SoftmaxRows work;
      work.x = x + row * cols_;
      work.y = y + row * cols_;
      work.rows = std::min(rows_per_task_, rows_ - row);
      work.cols = cols_;
      work.stream = stream;
      work.rows_left = rows_ - row;
      softmax_(work);
    });
    return absl::OkStatus();
  }

 private:
  const int64_t rows_;
  const int64_t cols_;
  const int64_t rows_per_task_;
  const bool stream_;
  const RowSoftmax softmax_;
};

class SoftmaxCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const SoftmaxKnobs knobs,
                             SoftmaxKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override {
    const absl::StatusOr<SoftmaxKnobs> knobs = SoftmaxKnobs::From(config);
    if (!knobs.ok()) return {};
    // The widest vectors have so many floats, and the narrowest.
    return {{"rows", knobs->rows_per_task},
            {"cols", knobs->unroll * 16},
            {"cols", knobs->unroll * 4}};
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const SoftmaxKnobs knobs,
                             SoftmaxKnobs::From(config));
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    if (knobs.stores == SoftmaxKnobs::Stores::kStreaming && cols % 16 != 0) {
      return absl::InvalidArgumentError(
          "streaming stores need rows of whole cache lines");
    }
    if (knobs.stores == SoftmaxKnobs::Stores::kStreaming &&
        knobs.algorithm == SoftmaxAlgorithm::kThreePass &&
        cols > kMostStreamedCols) {
      return absl::InvalidArgumentError(absl::StrCat(
          "three passes keep a row in place of y where they stream: at most ",
          kMostStreamedCols, " columns"));
    }
    const RowSoftmax softmax =
        FindRowSoftmax(knobs.algorithm, static_cast<int>(knobs.unroll));
    if (softmax == nullptr) {
      return absl::InvalidArgumentError("config was not compiled");
    }
    return std::make_unique<SoftmaxCpuInvocation>(rows, cols, knobs, softmax);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("softmax", SoftmaxCpu)

}  // namespace
}  // namespace optrail::ops
