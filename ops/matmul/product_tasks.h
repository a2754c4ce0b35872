#ifndef OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_
#define OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_

// Operators that are matrix products at heart: linear, batched_matmul, conv2d.
// A product is cut into tasks; each gets its rows of A and columns of B from
// the operator (as they lie in memory, or gathered into a workspace), leaves
// them to MultiplyBlocked, which finishes its tiles of C while they are in
// cache.
//
//   OPTRAIL_ASSIGN_OR_RETURN(ProductTasks tasks, ProductTasks::Plan(...));
//   tasks.Run(device, rows_of_a, columns_of_b, c, epilogue);

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/blocked_matmul.h"

namespace optrail::ops {

// The knobs that these operators have in common, for sums of `depth` steps.
// Tiles are those that matmul instantiates.
template <class Knobs>
absl::StatusOr<Blocking> BlockingOf(const Knobs& knobs, int64_t depth) {
  Blocking blocking;
  blocking.tile = FindRegisterTile(static_cast<int>(knobs.mr),
                                   static_cast<int>(knobs.nr_vectors),
                                   /*k_unroll=*/4);
  if (blocking.tile.plain_a == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a register tile of mr=", knobs.mr, " by nr_vectors=", knobs.nr_vectors,
        " does not fit into the vector registers of this machine"));
  }
  blocking.mc = knobs.m_tiles * blocking.tile.rows;
  blocking.nc = knobs.n_tiles * blocking.tile.columns;
  blocking.kc = knobs.kc;
  blocking.pack_a = knobs.pack_a;
  // The panel of the left factor had better stay unless that of the right one
  // fits into L1 whole.
  constexpr int64_t kMostOfL1 = (32 << 10) / sizeof(float);
  const bool b_stays =
      std::min(blocking.kc, depth) * blocking.tile.columns <= kMostOfL1;
  blocking.a_panel_stays = !b_stays;
  blocking.prefetch_a = !knobs.pack_a && b_stays;
  return blocking;
}

// What of a product a task computes, at most.
struct TaskSize {
  int64_t rows = 0;
  int64_t columns = 0;
};

// A dimension of a product that is shared out.
struct Shared {
  int64_t length = 0;
  int64_t unit = 1;  // what is never taken apart
  int64_t most = 0;  // of a task, roughly
  // What reading one of them takes: as much as so many multiplications for each
  // step of the sum.
  double reading = 12;
};

// The tasks of `batch` products that end first on `threads` threads: as few as
// `most` allows where that is one, else equal ones, so that none is waited for.
inline TaskSize ShareOut(int64_t batch, const Shared& rows,
                         const Shared& columns, int64_t threads) {
  const auto least = [](const Shared& of) {
    return CeilDiv(of.length, std::max(of.most, of.unit));
  };
  const auto size = [](const Shared& of, int64_t parts) {
    return CeilDiv(CeilDiv(of.length, of.unit), parts) * of.unit;
  };
  TaskSize best;
  double shortest = std::numeric_limits<double>::infinity();
  for (int64_t r = least(rows); r < least(rows) + threads; ++r) {
    for (int64_t c = least(columns); c < least(columns) + threads; ++c) {
      const TaskSize task = {size(rows, r), size(columns, c)};
      const int64_t tasks = batch * CeilDiv(rows.length, task.rows) *
                            CeilDiv(columns.length, task.columns);
      const auto down = static_cast<double>(std::min(task.rows, rows.length));
      const auto across =
          static_cast<double>(std::min(task.columns, columns.length));
      const double time =
          static_cast<double>(CeilDiv(tasks, threads)) *
          (down * across + rows.reading * down + columns.reading * across);
      if (time < shortest) {
        shortest = time;
        best = task;
      }
    }
  }
  return best;
}

// A block of an operand.
struct BlockView {
  const float* data = nullptr;
  int64_t stride = 0;  // floats from one row to the next
};

class ProductTasks {
 public:
  struct Cut {
    int64_t batch = 1;
    MatmulSize size;        // of one of the batch
    int64_t task_rows = 0;  // at most, roughly
    int64_t task_columns = 0;
    bool gathers_a = false;  // [task_rows, k] floats for them
  };

  // ResourceExhausted if there is not enough memory for the workspaces.
  static absl::StatusOr<ProductTasks> Plan(const Blocking& blocking,
                                           const Cut& cut, CpuDevice& device) {
    ProductTasks tasks;
    tasks.blocking_ = blocking;
    tasks.blocking_.prefetch_c =
        PrefetchPays(cut.batch * cut.size.m * cut.size.n, cut.size.k,
                     device.hardware().l2_bytes());
    tasks.cut_ = cut;
    const TaskSize task =
        ShareOut(cut.batch, {cut.size.m, blocking.tile.rows, cut.task_rows},
                 {cut.size.n, blocking.tile.columns, cut.task_columns},
                 device.threads());
    tasks.cut_.task_rows = std::min(task.rows, cut.size.m);
    tasks.cut_.task_columns = std::min(task.columns, cut.size.n);
    const MatmulSize largest = {tasks.cut_.task_rows, tasks.cut_.task_columns,
                                cut.size.k};
    // Every part begins on a cache line.
    const auto lines = [](int64_t floats) { return CeilDiv(floats, 16) * 16; };
    tasks.a_space_ = lines(WorkspaceFloats(blocking, largest));
    const int64_t floats =
        tasks.a_space_ + (cut.gathers_a ? lines(largest.m * largest.k) : 0);
    OPTRAIL_ASSIGN_OR_RETURN(
        tasks.workspaces_,
        Workspaces::Create(device,
                           std::min<int64_t>(device.threads(), tasks.count()),
                           floats));
    return tasks;
  }

  int64_t count() const { return cut_.batch * row_parts() * column_parts(); }
  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // rows_of_a(batch, row, rows, space) gives a BlockView, of `space` or not,
  // columns_of_b(batch, column) another; both lie as the blocking says. C is
  // [batch, m, n].
  template <class RowsOfA, class ColumnsOfB>
  void Run(CpuDevice& device, const RowsOfA& rows_of_a,
           const ColumnsOfB& columns_of_b, float* c,
           const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const MatmulSize& size = cut_.size;
      const int64_t column = task % column_parts() * cut_.task_columns;
      const int64_t row = task / column_parts() % row_parts() * cut_.task_rows;
      const int64_t batch = task / column_parts() / row_parts();
      const int64_t rows = std::min(cut_.task_rows, size.m - row);
      const int64_t columns = std::min(cut_.task_columns, size.n - column);
      const Workspaces::Lease lease(*workspaces_);
      const BlockView a = rows_of_a(batch, row, rows, lease.data() + a_space_);
      const BlockView b = columns_of_b(batch, column);
      float* const block = c + (batch * size.m + row) * size.n + column;
      MultiplyBlocked(blocking_, {rows, columns, size.k}, a.data, a.stride,
                      b.data, b.stride, block, size.n, lease.data(),
                      /*accumulate=*/false, epilogue.From(column));
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
  std::shared_ptr<Workspaces> workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_PRODUCT_TASKS_H_
