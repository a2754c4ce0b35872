#ifndef OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_
#define OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_

// Products of bfloat16, whose sums are floats and rounded once. Where
// instructions that multiply pairs (AVX512_BF16) pay, the left factor is read
// as it lies and blocks of the right one become panels of pairs
// (pair_panels.h), which may be kept from call to call; sums are rounded in
// registers. Elsewhere blocks are widened to float on their way into the
// caches: on Emerald Rapids those instructions have half the speed of float's,
// 81 against 166 GFLOP/s in one run. The right factor of few rows is widened in
// registers (widened_rows.h), unless it is kept.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       WidenedTasks tasks,
//       WidenedTasks::Plan(blocking, cut, device, /*may_keep=*/false));
//   tasks.Run(device, a, b, c, epilogue);

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/matmul/blocked_matmul.h"
#include "ops/matmul/pair_panels.h"
#include "ops/matmul/product_tasks.h"
#include "ops/matmul/widened_rows.h"

namespace optrail::ops {

class WidenedTasks {
 public:
  // One product, whose tasks are at most as large as `cut` says, roughly.
  // `may_keep`: the caller calls Keep() where keeps() says so.
  // ResourceExhausted if there is not enough memory for the workspaces.
  static absl::StatusOr<WidenedTasks> Plan(Blocking blocking,
                                           const ProductTasks::Cut& cut,
                                           CpuDevice& device, bool may_keep) {
    WidenedTasks tasks;
    const MatmulSize& size = cut.size;
    tasks.size_ = size;
    const TaskSize task = ShareOut(
        /*batch=*/1,
        {size.m, blocking.tile.rows, std::min(cut.task_rows, kMostRows)},
        {size.n, blocking.tile.columns, cut.task_columns}, device.threads());
    tasks.task_rows_ = std::min(task.rows, size.m);
    tasks.task_columns_ = std::min(task.columns, size.n);
    if (PairsPay() && (may_keep || tasks.task_rows_ > kFewRowsForPairs)) {
      const RegisterTile tile =
          FindPairTile(blocking.tile.rows, blocking.tile.columns / TileLanes());
      tasks.pairs_ = tile.plain_a != nullptr;
      if (tasks.pairs_) blocking.tile = tile;
    }
    tasks.keeps_ = may_keep && tasks.pairs_;
    tasks.few_rows_ = !tasks.pairs_ && tasks.task_rows_ <= kFewRows;
    // Blocks are copies already, or read in place.
    blocking.pack_a = false;
    blocking.pack_b = false;
    blocking.rows_outermost = false;
    if (tasks.pairs_) {
      blocking.b_in_panels = true;
      blocking.prefetch_c = false;
      blocking.kc = std::min(blocking.kc, CeilDiv(size.k, 2));
      if (tasks.keeps_) {
        ReadInStreams(tasks.task_rows_, CeilDiv(size.k, 2), blocking);
      }
      // What is copied of B stays in L2.
      const int64_t panel_bytes =
          PanelFloats(blocking.tile.columns, blocking.kc) * sizeof(float);
      const int64_t panels =
          std::max<int64_t>(device.hardware().l2_bytes() / 2 / panel_bytes, 1);
      blocking.nc = std::min(
          {blocking.nc, panels * blocking.tile.columns, tasks.task_columns_});
      // What is ended by a pass over sums is rounded before it leaves L1.
      const int64_t tiles = kSumsInL1 / blocking.nc / blocking.tile.rows;
      tasks.ended_rows_ = std::min(
          std::max<int64_t>(tiles, 1) * blocking.tile.rows, tasks.task_rows_);
      // Copies of A take a quarter of L2.
      const int64_t rows = device.hardware().l2_bytes() / 4 /
                           static_cast<int64_t>(sizeof(float)) / blocking.kc;
      blocking.mc = std::clamp(
          std::min(blocking.mc, rows / blocking.tile.rows * blocking.tile.rows),
          tasks.ended_rows_, tasks.task_rows_);
    } else {
      blocking.mc = tasks.few_rows_ ? tasks.task_rows_
                                    : std::min(blocking.mc, tasks.task_rows_);
      // A is widened anew for each block of columns, so that broad and short
      // ones are better here than for floats.
      blocking.nc =
          std::min(std::max(blocking.nc, kLeastColumns), tasks.task_columns_);
      blocking.kc = std::min({blocking.kc, size.k, kMostSteps});
    }
    tasks.blocking_ = blocking;
    const int64_t panels = CeilDiv(blocking.nc, blocking.tile.columns);
    const auto lines = [](int64_t floats) { return CeilDiv(floats, 16) * 16; };
    tasks.a_at_ = lines(
        WorkspaceFloats(blocking, {blocking.mc, blocking.nc, blocking.kc}));
    tasks.b_at_ = tasks.a_at_ + lines(blocking.mc * blocking.kc);
    tasks.c_at_ =
        tasks.b_at_ +
        (tasks.few_rows_ ? 0
                         : lines(blocking.kc * panels * blocking.tile.columns));
    OPTRAIL_ASSIGN_OR_RETURN(
        tasks.workspaces_,
        Workspaces::Create(
            device, std::min<int64_t>(device.threads(), tasks.count()),
            tasks.c_at_ + lines(tasks.task_rows_ * blocking.nc)));
    return tasks;
  }

  const std::shared_ptr<Workspaces>& workspaces() const { return workspaces_; }

  // The right factor as it lies, or, if these tasks keep it, as Keep() left it.
  struct Right {
    Right(const uint16_t* b) : b(b) {}
    Right(const float* kept) : kept(kept) {}
    const uint16_t* b = nullptr;
    const float* kept = nullptr;
  };

  // Whether all of it can be made panels of pairs before calls, and the floats
  // that they take.
  bool keeps() const { return keeps_; }
  int64_t KeptFloats() const {
    return RightFactorFloats(blocking_.tile.columns, size_.n,
                             CeilDiv(size_.k, 2));
  }
  void Keep(const uint16_t* b, float* to) const {
    PackPairPanels(blocking_.tile.columns, size_.n, size_.k, b, size_.n,
                   KeptPanel(), to);
  }

  // copy_a(row, rows, step, steps, stride, to) writes steps [step, step +
  // steps) of some rows of A, `stride` elements apart: floats or what they
  // were, as `to` says. `epilogue` ends what is not rounded yet.
  template <class CopyA>
  void Run(CpuDevice& device, const CopyA& copy_a, const Right& b, uint16_t* c,
           const Epilogue& epilogue) const {
    RunTasks(
        device,
        [&](int64_t row, int64_t rows, int64_t step, int64_t steps,
            float* space) {
          if (!pairs_) {
            copy_a(row, rows, step, steps, steps, space);
            return BlockView{space, steps};
          }
          const int64_t pairs = CeilDiv(steps, 2);
          auto* const to = reinterpret_cast<uint16_t*>(space);
          copy_a(row, rows, step, steps, 2 * pairs, to);
          if (steps % 2 != 0) {
            for (int64_t i = 0; i < rows; ++i) to[2 * i * pairs + steps] = 0;
          }
          return BlockView{space, pairs};
        },
        b, c, epilogue);
  }

  // A as it lies.
  void Run(CpuDevice& device, const uint16_t* a, const Right& b, uint16_t* c,
           const Epilogue& epilogue) const {
    const int64_t lda = size_.k;
    if (pairs_ && lda % 2 == 0) {
      RunTasks(
          device,
          [&](int64_t row, int64_t, int64_t step, int64_t, float*) {
            return BlockView{
                reinterpret_cast<const float*>(a + row * lda + step), lda / 2};
          },
          b, c, epilogue);
      return;
    }
    Run(
        device,
        [&](int64_t row, int64_t rows, int64_t step, int64_t steps,
            int64_t stride, auto* to) {
          CopyRows(a + row * lda + step, rows, steps, lda, to, stride);
        },
        b, c, epilogue);
  }

 private:
  // Their sums are near L2 until they are rounded.
  static constexpr int64_t kMostRows = 1024;
  static constexpr int64_t kLeastColumns = 512;
  static constexpr int64_t kMostSteps = 512;
  static constexpr int64_t kSumsInL1 = 8192;
  // To copy B takes longer than so few rows do.
  static constexpr int64_t kFewRows = 16;
  static constexpr int64_t kFewRowsForPairs = 4;

  int64_t column_parts() const { return CeilDiv(size_.n, task_columns_); }
  int64_t count() const {
    return CeilDiv(size_.m, task_rows_) * column_parts();
  }

  static void CopyRows(const uint16_t* x, int64_t rows, int64_t count,
                       int64_t stride, float* to, int64_t to_stride) {
    Widen(x, rows, count, stride, to, to_stride);
  }
  static void CopyRows(const uint16_t* x, int64_t rows, int64_t count,
                       int64_t stride, uint16_t* to, int64_t to_stride) {
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(to + i * to_stride, x + i * stride, count * sizeof(uint16_t));
    }
  }

  // From one kept panel to the next.
  int64_t KeptPanel() const {
    return PanelFloats(blocking_.tile.columns, CeilDiv(size_.k, 2));
  }

  // left(row, rows, step, steps, space) is a block of A, there or where it
  // lies, of floats or of pairs.
  template <class Left>
  void RunTasks(CpuDevice& device, const Left& left, const Right& right,
                uint16_t* c, const Epilogue& epilogue) const {
    device.ParallelFor(count(), [&](int64_t task) {
      const int64_t column = task % column_parts() * task_columns_;
      const int64_t row = task / column_parts() * task_rows_;
      const int64_t rows = std::min(task_rows_, size_.m - row);
      const int64_t end = std::min(column + task_columns_, size_.n);
      const Workspaces::Lease lease(*workspaces_);
      for (int64_t j = column; j < end; j += blocking_.nc) {
        Multiply(left, right, row, rows, j, std::min(blocking_.nc, end - j),
                 epilogue.From(j), lease.data(), c + row * size_.n + j);
      }
    });
  }

  // A block of `rows` and `columns` of C, all of k.
  template <class Left>
  void Multiply(const Left& left, const Right& right, int64_t row, int64_t rows,
                int64_t column, int64_t columns, const Epilogue& epilogue,
                float* space, uint16_t* c) const {
    float* const a_space = space + a_at_;
    float* const sums = space + c_at_;
    const int64_t kc = pairs_ ? 2 * blocking_.kc : blocking_.kc;  // steps
    for (int64_t p = 0; p < size_.k; p += kc) {
      const int64_t steps = std::min(kc, size_.k - p);
      const bool last = p + steps == size_.k;
      if (few_rows_) {
        const BlockView a = left(row, rows, p, steps, a_space);
        AddRowsTimesBf16(a.data, a.stride, rows, right.b + p * size_.n + column,
                         size_.n, steps, columns, /*accumulate=*/p > 0, sums,
                         columns);
        if (!last) continue;
        ScaleShiftActivate(epilogue, sums, rows, columns, columns);
        RoundToBf16(sums, rows, columns, columns, c, size_.n);
        continue;
      }
      const BlockView b =
          BlockOfB(right, p, steps, column, columns, space + b_at_);
      const bool tiles_round = pairs_ && EndsInRegisters(epilogue);
      const int64_t mc = pairs_ && !tiles_round ? ended_rows_ : blocking_.mc;
      for (int64_t i = 0; i < rows; i += mc) {
        const int64_t count = std::min(mc, rows - i);
        const BlockView a = left(row + i, count, p, steps, a_space);
        float* const block = sums + i * columns;
        uint16_t* const to = c + i * size_.n;
        MultiplyBlocked(
            blocking_, {count, columns, pairs_ ? CeilDiv(steps, 2) : steps},
            a.data, a.stride, b.data, b.stride, block, columns, space,
            /*accumulate=*/p > 0, last ? epilogue : Epilogue(),
            last && tiles_round ? RoundedSums{to, size_.n} : RoundedSums());
        if (last && !tiles_round) {
          (pairs_ ? RoundPairSums : RoundToBf16)(block, count, columns, columns,
                                                 to, size_.n);
        }
      }
    }
  }

  // Steps [p, p + steps) of some columns of B, in panels or of floats.
  BlockView BlockOfB(const Right& right, int64_t p, int64_t steps,
                     int64_t column, int64_t columns, float* space) const {
    const int64_t width = blocking_.tile.columns;
    if (right.kept != nullptr) {
      return {right.kept + column / width * KeptPanel() + p / 2 * width,
              KeptPanel()};
    }
    const uint16_t* const from = right.b + p * size_.n + column;
    if (!pairs_) {
      Widen(from, steps, columns, size_.n, space, columns);
      return {space, columns};
    }
    const int64_t panel = PanelFloats(width, blocking_.kc);
    PackPairPanels(width, columns, steps, from, size_.n, panel, space);
    return {space, panel};
  }

  MatmulSize size_;
  Blocking blocking_;
  int64_t task_rows_ = 0;
  int64_t task_columns_ = 0;
  int64_t ended_rows_ = 0;  // at a time, where pairs are not ended by tiles
  bool few_rows_ = false;
  bool pairs_ = false;
  bool keeps_ = false;
  int64_t a_at_ = 0;  // where widened blocks and sums begin in a workspace
  int64_t b_at_ = 0;
  int64_t c_at_ = 0;
  std::shared_ptr<Workspaces> workspaces_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_MATMUL_WIDENED_TASKS_H_
