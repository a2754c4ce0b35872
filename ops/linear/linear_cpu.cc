// The CPU kernel of linear: matmul's product, whose tiles are finished while
// they are in cache. Weights are packed before calls, as a layer would keep
// them; those of bfloat16 are widened in blocks by every call where they are
// not multiplied in pairs.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/lib/packed_operand.h"
#include "ops/linear/linear_knobs.h"
#include "ops/matmul/product_tasks.h"
#include "ops/matmul/widened_tasks.h"

namespace optrail::ops {
namespace {

class LinearCpu : public KnobKernel<LinearKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const LinearKnobs& knobs,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(Blocking blocking,
                             BlockingOf(knobs, shape.dims(2).value()));
    blocking.pack_b = false;
    blocking.prefetch_a |= knobs.prefetch_a;
    ProductTasks::Cut cut;
    cut.size = {shape.dims(0).value(), shape.dims(1).value(),
                shape.dims(2).value()};
    cut.task_rows = knobs.task_rows;
    cut.task_columns = knobs.task_columns;
    Activation activation = Activation::kNone;
    if (!shape.attributes().empty()) {
      activation = shape.attributes(0).variant() == "relu" ? Activation::kRelu
                                                           : Activation::kGelu;
    }
    const MatmulSize size = cut.size;
    if (shape.data_types(0) == proto::BF16) {
      return BindWidened(blocking, cut, activation, device);
    }
    // Few rows are bound by reading the weights, which may be best as they lie.
    constexpr int64_t kFewRows = 8;
    const bool packs = size.m > kFewRows || knobs.pack_b;
    blocking.b_in_panels = packs;
    if (packs) ReadInStreams(size.m, size.k, blocking);
    OPTRAIL_ASSIGN_OR_RETURN(const ProductTasks tasks,
                             ProductTasks::Plan(blocking, cut, device));
    const RegisterTile tile = blocking.tile;
    const auto weights = std::make_shared<PackedOperand>(
        device, RightFactorFloats(tile.columns, size.n, size.k));
    return MakePackingInvocation(
        [=](absl::Span<void* const> operands) {
          if (!packs) return;
          PackRightFactor(tile.columns, size.n, size.k,
                          static_cast<const float*>(operands[1]), size.n,
                          weights->Keep(operands[1]));
        },
        [=, &device](absl::Span<void* const> operands) {
          const auto* x = static_cast<const float*>(operands[0]);
          const auto* w = packs ? weights->Find(operands[1])
                                : static_cast<const float*>(operands[1]);
          const auto* bias = static_cast<const float*>(operands[2]);
          tasks.Run(
              device,
              [&](int64_t, int64_t row, int64_t, float*) {
                return BlockView{x + row * size.k, size.k};
              },
              [&](int64_t, int64_t column) {
                if (!packs) return BlockView{w + column, size.n};
                const int64_t step = PanelFloats(tile.columns, size.k);
                return BlockView{w + column / tile.columns * step, step};
              },
              static_cast<float*>(operands[3]), {nullptr, bias, activation});
        },
        tasks.workspaces());
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const LinearKnobs& knobs) const override {
    return {{"m", knobs.mr},
            {"m", knobs.task_rows},
            {"n", knobs.nr_vectors * TileLanes()},
            {"n", knobs.task_columns},
            {"k", knobs.kc}};
  }

 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 private:
  // Of bfloat16; the bias is widened with every call.
  static absl::StatusOr<std::unique_ptr<Invocation>> BindWidened(
      const Blocking& blocking, const ProductTasks::Cut& cut,
      Activation activation, CpuDevice& device) {
    OPTRAIL_ASSIGN_OR_RETURN(const WidenedTasks tasks,
                             WidenedTasks::Plan(blocking, cut, device,
                                                /*may_keep=*/true));
    const int64_t n = cut.size.n;
    OPTRAIL_ASSIGN_OR_RETURN(const auto widened,
                             Workspaces::Create(device, 1, n));
    const auto weights = std::make_shared<PackedOperand>(
        device, tasks.keeps() ? tasks.KeptFloats() : 0);
    return MakePackingInvocation(
        [=](absl::Span<void* const> operands) {
          if (!tasks.keeps()) return;
          tasks.Keep(static_cast<const uint16_t*>(operands[1]),
                     weights->Keep(operands[1]));
        },
        [=, &device](absl::Span<void* const> operands) {
          float* const bias = widened->at(0);
          Widen(static_cast<const uint16_t*>(operands[2]), 1, n, n, bias, n);
          tasks.Run(
              device, static_cast<const uint16_t*>(operands[0]),
              tasks.keeps() ? WidenedTasks::Right(weights->Find(operands[1]))
                            : static_cast<const uint16_t*>(operands[1]),
              static_cast<uint16_t*>(operands[3]), {nullptr, bias, activation});
        },
        tasks.workspaces(), widened);
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("linear", LinearCpu)

}  // namespace
}  // namespace optrail::ops
