#ifndef OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_
#define OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_

// Products of bfloat16 whose blocks are widened to float on their way into the
// caches, where the product of floats takes over; results are rounded once.
// The right factor of few rows is widened in registers (widened_rows.h).
// Instructions that multiply pairs of bfloat16 (AVX512_BF16) are no alternative
// where they have half the speed of float's, as on Emerald Rapids: 81 against
// 166 GFLOP/s in one run. They also flush denormals.
//
//   OPTRAIL_ASSIGN_OR_RETURN(WidenedTasks tasks, WidenedTasks::Plan(...));
//   tasks.Run(device, a, b, c, epilogue);

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/blocked_matmul.h"
#include "ops/matmul/product_tasks.h"
#include "ops/matmul/widened_rows.h"

namespace optrail::ops {

class WidenedTasks {
 public:
  // One product, whose tasks are at most as large as `cut` says, roughly.
  // ResourceExhausted if there is not enough memory for the workspaces.
  static absl::StatusOr<WidenedTasks> Plan(Blocking blocking,
                                           const ProductTasks::Cut& cut,
                                           CpuDevice& device) {
    WidenedTasks tasks;
    const MatmulSize& size = cut.size;
    tasks.size_ = size;
    const TaskSize task = ShareOut(
        /*batch=*/1,
        {size.m, blocking.tile.rows, std::min(cut.task_rows, kMostRows)},
        {size.n, blocking.tile.columns, cut.task_columns}, device.threads());
    tasks.task_rows_ = std::min(task.rows, size.m);
    tasks.task_columns_ = std::min(task.columns, size.n);
    // Widened blocks are copies already.
    blocking.pack_a = false;
    blocking.pack_b = false;
    blocking.rows_outermost = false;
    tasks.few_rows_ = tasks.task_rows_ <= kFewRows;
    blocking.mc = tasks.few_rows_ ? tasks.task_rows_
                                  : std::min(blocking.mc, tasks.task_rows_);
    // A is widened anew for each block of columns, so that broad and short ones
    // are better here than for floats.
    blocking.nc =
        std::min(std::max(blocking.nc, kLeastColumns), tasks.task_columns_);
    blocking.kc = std::min({blocking.kc, size.k, kMostSteps});
    tasks.blocking_ = blocking;
    const auto lines = [](int64_t floats) { return CeilDiv(floats, 16) * 16; };
    tasks.a_at_ = lines(
        WorkspaceFloats(blocking, {blocking.mc, blocking.nc, blocking.kc}));
    tasks.b_at_ = tasks.a_at_ + lines(blocking.mc * blocking.kc);
    tasks.c_at_ =
        tasks.b_at_ + (tasks.few_rows_ ? 0 : lines(blocking.kc * blocking.nc));
    OPTRAIL_ASSIGN_OR_RETURN(
        tasks.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), tasks.count()),
            tasks.c_at_ + lines(tasks.task_rows_ * blocking.nc)));
    return tasks;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // widen_a(row, rows, step, steps, to) gives steps [step, step + steps) of
  // some rows of A, one after the other. `epilogue` ends what is not rounded
  // yet.
  template <class WidenA>
  void Run(CpuDevice& device, const WidenA& widen_a, const uint16_t* b,
           uint16_t* c, const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t row = task / column_parts() * task_rows_;
      const int64_t rows = std::min(task_rows_, size_.m - row);
      const int64_t end = std::min(column + task_columns_, size_.n);
      const Workspaces::Lease lease(*workspaces_);
      for (int64_t j = column; j < end; j += blocking_.nc) {
        const int64_t columns = std::min(blocking_.nc, end - j);
        float* const sums = lease.data() + c_at_;
        Sum(widen_a, b + j, row, rows, columns, epilogue.From(j), lease.data());
        RoundToBf16(sums, rows, columns, columns, c + row * size_.n + j,
                    size_.n);
      }
    });
  }

  // A as it lies.
  void Run(CpuDevice& device, const uint16_t* a, const uint16_t* b, uint16_t* c,
           const Epilogue& epilogue) const {
    Run(
        device,
        [&](int64_t row, int64_t rows, int64_t step, int64_t steps, float* to) {
          Widen(a + row * size_.k + step, rows, steps, size_.k, to, steps);
        },
        b, c, epilogue);
  }

 private:
  // Their sums are near L2 until they are rounded.
  static constexpr int64_t kMostRows = 1024;
  static constexpr int64_t kLeastColumns = 512;
  static constexpr int64_t kMostSteps = 512;
  static constexpr int64_t kFewRows = 16;

  int64_t column_parts() const { return CeilDiv(size_.n, task_columns_); }
  int64_t count() const {
    return CeilDiv(size_.m, task_rows_) * column_parts();
  }

  // A block of `rows` and `columns` of C in floats, all of k.
  template <class WidenA>
  void Sum(const WidenA& widen_a, const uint16_t* b, int64_t row, int64_t rows,
           int64_t columns, const Epilogue& epilogue, float* space) const {
    float* const a_space = space + a_at_;
    float* const b_space = space + b_at_;
    float* const c_space = space + c_at_;
    for (int64_t p = 0; p < size_.k; p += blocking_.kc) {
      const int64_t k = std::min(blocking_.kc, size_.k - p);
      if (few_rows_) {
        widen_a(row, rows, p, k, a_space);
        AddRowsTimesBf16(a_space, k, rows, b + p * size_.n, size_.n, k, columns,
                         /*accumulate=*/p > 0, c_space, columns);
        continue;
      }
      Widen(b + p * size_.n, k, columns, size_.n, b_space, columns);
      for (int64_t i = 0; i < rows; i += blocking_.mc) {
        const int64_t count = std::min(blocking_.mc, rows - i);
        widen_a(row + i, count, p, k, a_space);
        MultiplyBlocked(blocking_, {count, columns, k}, a_space, k, b_space,
                        columns, c_space + i * columns, columns, space,
                        /*accumulate=*/p > 0,
                        p + k == size_.k ? epilogue : Epilogue());
      }
    }
    if (few_rows_) {
      ScaleShiftActivate(epilogue, c_space, rows, columns, columns);
    }
  }

  MatmulSize size_;
  Blocking blocking_;
  int64_t task_rows_ = 0;
  int64_t task_columns_ = 0;
  bool few_rows_ = false;
  int64_t a_at_ = 0;  // where widened blocks and sums begin in a workspace
  int64_t b_at_ = 0;
  int64_t c_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_
