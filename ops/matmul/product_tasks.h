#ifndef OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_
#define OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_

// Operators that are matrix products at heart: linear, batched_matmul, conv2d.
// A product is cut into tasks; each gets its rows of A and columns of B from
// the operator (as they lie in memory, or gathered into a workspace), leaves
// them to MultiplyBlocked, and finishes its block of C while that is in cache.
//
//   OPTRAIL_ASSIGN_OR_RETURN(ProductTasks tasks, ProductTasks::Plan(...));
//   tasks.Run(device, rows_of_a, columns_of_b, c, finish);

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/blocked_matmul.h"

namespace optrail::ops {

// The knobs that these operators have in common. Tiles are those that matmul
// instantiates.
template <class Knobs>
absl::StatusOr<Blocking> BlockingOf(const Knobs& knobs) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(static_cast<int>(knobs.mr),
                                   static_cast<int>(knobs.nr_vectors),
                                   /*k_unroll=*/4);
  if (blocking.tile.packed_a == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a register tile of mr=", knobs.mr, " by nr_vectors=", knobs.nr_vectors,
        " does not fit into the vector registers of this machine"));
  }
  blocking.mc = knobs.m_tiles * blocking.tile.rows;
  blocking.nc = knobs.n_tiles * blocking.tile.columns;
  blocking.kc = knobs.kc;
  blocking.pack_a = knobs.pack_a;
  blocking.pack_b = knobs.pack_b;
  // Copied, it streams well; as it lies, its panel had better stay.
  blocking.a_panel_stays = !knobs.pack_a;
  return blocking;
}

// A block of an operand, row-major.
struct BlockView {
  const float* data = nullptr;
  int64_t stride = 0;  // floats from one row to the next
};

class ProductTasks {
 public:
  struct Cut {
    int64_t batch = 1;
    MatmulSize size;        // of one of the batch
    int64_t task_rows = 0;  // at most
    int64_t task_columns = 0;
    bool gathers_a = false;  // [task_rows, k] floats for them
    bool gathers_b = false;  // [k, task_columns]
  };

  // ResourceExhausted if there is not enough memory for the workspaces.
  static absl::StatusOr<ProductTasks> Plan(const Blocking& blocking,
                                           const Cut& cut, CpuDevice& device) {
    ProductTasks tasks;
    tasks.blocking_ = blocking;
    tasks.cut_ = cut;
    tasks.cut_.task_rows = std::min(cut.task_rows, cut.size.m);
    tasks.cut_.task_columns = std::min(cut.task_columns, cut.size.n);
    const MatmulSize largest = {tasks.cut_.task_rows, tasks.cut_.task_columns,
                                cut.size.k};
    // Every part begins on a cache line.
    const auto lines = [](int64_t floats) { return CeilDiv(floats, 16) * 16; };
    tasks.a_space_ = lines(WorkspaceFloats(blocking, largest));
    tasks.b_space_ =
        tasks.a_space_ + (cut.gathers_a ? lines(largest.m * largest.k) : 0);
    const int64_t floats =
        tasks.b_space_ + (cut.gathers_b ? lines(largest.k * largest.n) : 0);
    OPTRAIL_ASSIGN_OR_RETURN(
        tasks.workspaces_,
        Workspaces::Create(device,
                           std::min<int64_t>(device.threads(), tasks.count()),
                           floats));
    return tasks;
  }

  int64_t count() const { return cut_.batch * row_parts() * column_parts(); }
  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // rows_of_a(batch, row, rows, space) and columns_of_b(batch, column, columns,
  // space) give a BlockView, of `space` or not; finish(block of C, rows,
  // columns, first column) ends it. C is [batch, m, n].
  template <class RowsOfA, class ColumnsOfB, class Finish>
  void Run(CpuDevice& device, const RowsOfA& rows_of_a,
           const ColumnsOfB& columns_of_b, float* c,
           const Finish& finish) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const MatmulSize& size = cut_.size;
      const int64_t column = task % column_parts() * cut_.task_columns;
      const int64_t row = task / column_parts() % row_parts() * cut_.task_rows;
      const int64_t batch = task / column_parts() / row_parts();
      const int64_t rows = std::min(cut_.task_rows, size.m - row);
      const int64_t columns = std::min(cut_.task_columns, size.n - column);
      const Workspaces::Lease lease(*workspaces_);
      const BlockView a = rows_of_a(batch, row, rows, lease.data() + a_space_);
      const BlockView b =
          columns_of_b(batch, column, columns, lease.data() + b_space_);
      float* const block = c + (batch * size.m + row) * size.n + column;
      MultiplyBlocked(blocking_, {rows, columns, size.k}, a.data, a.stride,
                      b.data, b.stride, block, size.n, lease.data());
      finish(block, rows, columns, column);
    });
  }

 private:
  int64_t row_parts() const { return CeilDiv(cut_.size.m, cut_.task_rows); }
  int64_t column_parts() const {
    return CeilDiv(cut_.size.n, cut_.task_columns);
  }

  Blocking blocking_;
  Cut cut_;
  int64_t a_space_ = 0;  // where gathered rows begin in a workspace
  int64_t b_space_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_
