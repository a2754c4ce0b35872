// The CPU kernel of the matrix product: reads the knobs and shares the product
// out among threads.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/core/cpu_kernel.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/matmul_knobs.h"
#include "ops/product/cpu/product.h"

namespace optrail::ops {
namespace {

// Into how many parts each dimension is cut.
struct Split {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
};

// The factors of `tasks` that make a task read least of A and B.
Split GridSplit(const ProductSize& size, int64_t tasks) {
  Split best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= tasks; ++rows) {
    if (tasks % rows != 0) continue;
    const int64_t columns = tasks / rows;
    const double read =
        static_cast<double>(size.m) / static_cast<double>(rows) +
        static_cast<double>(size.n) / static_cast<double>(columns);
    if (read < least) {
      least = read;
      best = {rows, columns, 1};
    }
  }
  return best;
}

Split SplitFor(const MatmulKnobs& knobs, const RegisterTile& tile,
               const ProductSize& size, int threads) {
  const int64_t tasks = threads > 1 ? threads * knobs.tasks_per_thread : 1;
  Split split;
  switch (knobs.thread_split) {
    case MatmulKnobs::ThreadSplit::kRows:
      split.rows = tasks;
      break;
    case MatmulKnobs::ThreadSplit::kColumns:
      split.columns = tasks;
      break;
    case MatmulKnobs::ThreadSplit::kGrid:
      split = GridSplit(size, tasks);
      break;
    case MatmulKnobs::ThreadSplit::kDepth:
      split.depth = tasks;
      break;
  }
  split.rows = std::min(split.rows, CeilDiv(size.m, tile.rows));
  split.columns = std::min(split.columns, CeilDiv(size.n, tile.columns));
  split.depth = std::min(split.depth, CeilDiv(size.k, tile.k_unroll));
  return split;
}

absl::StatusOr<Blocking> BlockingOf(const MatmulKnobs& knobs) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(static_cast<int>(knobs.mr),
                                   static_cast<int>(knobs.nr_vectors),
                                   static_cast<int>(knobs.k_unroll));
  if (blocking.tile.plain_a == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a register tile of mr=", knobs.mr, " by nr_vectors=", knobs.nr_vectors,
        " with k_unroll=", knobs.k_unroll,
        " does not fit into the vector registers of this machine"));
  }
  blocking.mc = knobs.m_tiles * blocking.tile.rows;
  blocking.nc = knobs.n_tiles * blocking.tile.columns;
  blocking.kc = knobs.kc;
  blocking.pack_a = knobs.pack_a;
  blocking.pack_b = knobs.pack_b;
  blocking.rows_outermost = knobs.outer_loop == MatmulKnobs::OuterLoop::kRows;
  blocking.a_panel_stays = knobs.stays_in_l1 == MatmulKnobs::StaysInL1::kA;
  blocking.prefetch_a = knobs.prefetch_a;
  blocking.prefetch = knobs.prefetch_steps;
  return blocking;
}

template <class T>
std::unique_ptr<Invocation> BindProduct(const ProductSpec& spec,
                                        CpuDevice& device) {
  WorkspaceLayout layout;
  const auto product = Product<T>::Plan(spec, device, layout);
  return MakeInvocation(layout, [=](const Call& call) {
    product.Run(call, {static_cast<const T*>(call.operands[0])},
                {static_cast<const T*>(call.operands[1])},
                static_cast<T*>(call.operands[2]), Epilogue());
  });
}

class MatmulCpu : public KnobKernel<MatmulKnobs> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> Bind(
      const proto::Shape& shape, const MatmulKnobs& knobs,
      CpuDevice& device) const override {
    ProductSpec spec;
    spec.size = {shape.dims(0).value(), shape.dims(1).value(),
                 shape.dims(2).value()};
    OPTRAIL_ASSIGN_OR_RETURN(spec.blocking, BlockingOf(knobs));
    const RegisterTile& tile = spec.blocking.tile;
    const Split split = SplitFor(knobs, tile, spec.size, device.threads());
    if (shape.data_types(0) == proto::BF16) {
      spec.task_rows = CeilDiv(spec.size.m, split.rows);
      spec.task_columns = CeilDiv(spec.size.n, split.columns * split.depth);
      return BindProduct<uint16_t>(spec, device);
    }
    const auto part = [](int64_t length, int64_t unit, int64_t parts) {
      return CeilDiv(CeilDiv(length, unit), parts) * unit;
    };
    spec.exact_tasks = true;
    spec.task_rows = part(spec.size.m, tile.rows, split.rows);
    spec.task_columns = part(spec.size.n, tile.columns, split.columns);
    spec.depth_parts = split.depth;
    return BindProduct<float>(spec, device);
  }

  std::vector<std::pair<std::string, int64_t>> BlocksOf(
      const MatmulKnobs& knobs) const override {
    const int64_t columns = knobs.nr_vectors * TileLanes();
    return {{"m", knobs.mr},       {"m", knobs.mr * knobs.m_tiles},
            {"n", columns},        {"n", columns * knobs.n_tiles},
            {"k", knobs.k_unroll}, {"k", knobs.kc}};
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("matmul", MatmulCpu)

}  // namespace
}  // namespace optrail::ops
