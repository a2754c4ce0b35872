// The CPU kernel of batched_matmul: a product per block; what is stored
// transposed is transposed as its blocks are copied.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/batched_matmul/batched_matmul_knobs.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {
namespace {

class BatchedMatmulCpu : public KnobKernel<BatchedMatmulKnobs> {
 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const BatchedMatmulKnobs& knobs,
      CpuDevice& device) const override {
    ProductSpec spec;
    spec.batch = shape.dims(0).value();
    spec.size = {shape.dims(1).value(), shape.dims(2).value(),
                 shape.dims(3).value()};
    OPTRAIL_ASSIGN_OR_RETURN(spec.blocking, BlockingOf(knobs, spec.size.k));
    const std::string transposed =
        shape.attributes().empty() ? "" : shape.attributes(0).variant();
    spec.blocking.a_transposed = transposed == "a";
    spec.blocking.b_transposed = transposed == "b";
    spec.blocking.pack_b = knobs.pack_b;
    spec.blocking.prefetch_a |= knobs.prefetch_a;
    spec.blocking.a_panel_stays |= StoringIsMost(
        spec.size.m * spec.size.n, spec.size.k, device.hardware().l2_bytes());
    spec.task_rows = knobs.task_rows;
    spec.task_columns = knobs.task_columns;
    WorkspaceLayout layout;
    const auto product = Product<float>::Plan(spec, device, layout);
    return MakeInvocation(layout, [=](const Call& call) {
      product.Run(call, {static_cast<const float*>(call.operands[0])},
                  {static_cast<const float*>(call.operands[1])},
                  static_cast<float*>(call.operands[2]), Epilogue());
    });
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
