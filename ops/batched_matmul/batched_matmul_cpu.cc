// The CPU kernel of batched_matmul: matmul's product per block; what lies
// transposed is turned as its blocks are copied.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/batched_matmul/batched_matmul_knobs.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/product_tasks.h"

namespace optrail::ops {
namespace {

class BatchedMatmulCpu : public KnobKernel<BatchedMatmulKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const BatchedMatmulKnobs& knobs,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(Blocking blocking,
                             BlockingOf(knobs, shape.dims(3).value()));
    const std::string transposed =
        shape.attributes().empty() ? "" : shape.attributes(0).variant();
    const bool turn_a = transposed == "a";
    const bool turn_b = transposed == "b";
    blocking.a_transposed = turn_a;
    blocking.b_transposed = turn_b;
    blocking.pack_b = knobs.pack_b;
    blocking.prefetch_a |= knobs.prefetch_a;
    ProductTasks::Cut cut;
    cut.batch = shape.dims(0).value();
    cut.size = {shape.dims(1).value(), shape.dims(2).value(),
                shape.dims(3).value()};
    cut.task_rows = knobs.task_rows;
    cut.task_columns = knobs.task_columns;
    OPTRAIL_ASSIGN_OR_RETURN(const ProductTasks tasks,
                             ProductTasks::Plan(blocking, cut, device));
    const auto [m, n, k] = cut.size;
    return MakeInvocation(
        [=, m = m, n = n, k = k, &device](absl::Span<void* const> operands) {
          const auto* a = static_cast<const float*>(operands[0]);
          const auto* b = static_cast<const float*>(operands[1]);
          tasks.Run(
              device,
              [&](int64_t batch, int64_t row, int64_t, float*) {
                const float* const from = a + batch * m * k;
                return turn_a ? BlockView{from + row, m}
                              : BlockView{from + row * k, k};
              },
              [&](int64_t batch, int64_t column) {
                const float* const from = b + batch * k * n;
                return turn_b ? BlockView{from + column * k, k}
                              : BlockView{from + column, n};
              },
              static_cast<float*>(operands[2]), Epilogue());
        },
        tasks.workspaces());
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const BatchedMatmulKnobs& knobs) const override {
    return {{"m", knobs.mr},
            {"m", knobs.task_rows},
            {"n", knobs.nr_vectors * TileLanes()},
            {"n", knobs.task_columns},
            {"k", knobs.kc}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("batched_matmul", BatchedMatmulCpu)

}  // namespace
}  // namespace optrail::ops
