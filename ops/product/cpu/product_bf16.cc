#include "ops/product/cpu/product_bf16.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/product/cpu/pairs.h"
#include "ops/product/cpu/short_sums.h"
#include "ops/product/cpu/widened_rows.h"

namespace optrail::ops {
namespace {

// Sums of so many rows are near L2 until they are rounded.
constexpr int64_t kMostRows = 1024;
constexpr int64_t kLeastColumns = 512;
constexpr int64_t kMostSteps = 512;
constexpr int64_t kSumsInL1 = 8192;
// To copy B takes longer than so few rows do.
constexpr int64_t kFewRows = 16;
constexpr int64_t kFewRowsForPairs = 4;

void CopyRows(const uint16_t* x, int64_t rows, int64_t count, int64_t stride,
              uint16_t* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * to_stride, x + i * stride, count * sizeof(uint16_t));
  }
}

// Makes columns of B, 2 * `pairs` elements apart, which are rows of B joined to
// pairs, and transposed. `space` holds 16 floats for each pair.
constexpr int64_t kPairLanes = 16;
void TransposePairs(const uint16_t* b, int64_t k, int64_t n, float* space,
                    float* to) {
  PackPairPanels(kPairLanes, n, k, b, n, /*step=*/0, space);
  TransposeFewColumns(space, CeilDiv(k, 2), n, kPairLanes, to);
}

// Sums that are near until they are rounded.
constexpr int64_t kSumsOfFewColumns = 2048;

// The blocks of a task of pairs. What is copied of B takes half of L2, copies
// of A a quarter.
void FitPairs(int64_t l2_bytes, const TaskSize& task, Blocking& blocking) {
  const RegisterTile& tile = blocking.tile;
  blocking.b_in_panels = true;
  blocking.prefetch_c = false;
  constexpr int64_t kFloat = sizeof(float);
  const int64_t panels = l2_bytes / 2 / (blocking.kc * tile.columns * kFloat);
  blocking.nc = std::min(
      {blocking.nc, std::max<int64_t>(panels, 1) * tile.columns, task.columns});
  const int64_t rows = l2_bytes / 4 / kFloat / blocking.kc;
  blocking.mc = std::min(blocking.mc, rows / tile.rows * tile.rows);
}

}  // namespace

template <>
int64_t Product<uint16_t>::PlanBlocks(const ProductSpec& spec,
                                      CpuDevice& device) {
  PlanTasks(spec, kMostRows, device.threads());
  Blocking blocking = spec.blocking;
  const int64_t pairs = CeilDiv(size_.k, 2);
  packs_b_ = spec.may_pack_b;
  const bool transposes = !packs_b_ && size_.n > 1;
  // Columns that fill no vector are computed one by one where rows are few.
  if (!spec.gathers_a && size_.n < kPairLanes && PairsPay() &&
      FindPairTile(1, 1).plain_a != nullptr &&
      ((task_.rows <= kFewRowsForPairs && !packs_b_) ||
       LongSumsOfPairsPay({task_.rows, size_.n, pairs}, transposes))) {
    few_columns_ = FewColumns::kLongSums;
    panels_ = {kPairLanes, pairs};
    b_at_ = WholeLines(transposes ? kPairLanes * pairs : 0);
    c_at_ = b_at_ + WholeLines(transposes ? size_.n * pairs : 0);
    return c_at_ + WholeLines(std::max(kSumsOfFewColumns, size_.n));
  }
  if (PairsPay() && (spec.may_pack_b || task_.rows > kFewRowsForPairs)) {
    const RegisterTile tile =
        FindPairTile(blocking.tile.rows, blocking.tile.columns / TileLanes());
    pairs_ = tile.plain_a != nullptr;
    if (pairs_) blocking.tile = tile;
  }
  packs_b_ = spec.may_pack_b && pairs_;
  few_rows_ = !pairs_ && task_.rows <= kFewRows;
  // Blocks are copies already, or read in place.
  blocking.pack_a = false;
  blocking.pack_b = false;
  blocking.rows_outermost = false;
  int64_t rows_ended = task_.rows;
  if (pairs_) {
    panels_ = {blocking.tile.columns, pairs};
    blocking.kc = std::min(blocking.kc, pairs);
    if (packs_b_) blocking.ReadInStreams(task_.rows, pairs);
    FitPairs(device.hardware().l2_bytes(), task_, blocking);
    // Sums that a pass ends are rounded before they leave L1.
    const int64_t tiles = kSumsInL1 / blocking.nc / blocking.tile.rows;
    rows_ended =
        std::min(std::max<int64_t>(tiles, 1) * blocking.tile.rows, task_.rows);
    blocking.mc = std::clamp(blocking.mc, rows_ended, task_.rows);
  } else {
    blocking.mc = few_rows_ ? task_.rows : std::min(blocking.mc, task_.rows);
    // A is converted again for each block of columns, so that broad and short
    // ones are better here than for floats.
    blocking.nc = std::min(std::max(blocking.nc, kLeastColumns), task_.columns);
    blocking.kc = std::min({blocking.kc, size_.k, kMostSteps});
    rows_ended = blocking.mc;
  }
  const ProductSize block = {task_.rows, blocking.nc, task_steps_};
  blocked_ = BlockedProduct(blocking, block);
  const int64_t panels = CeilDiv(blocking.nc, blocking.tile.columns);
  a_at_ = WholeLines(blocked_.workspace_floats());
  b_at_ = a_at_ + WholeLines(blocking.mc * blocking.kc);
  c_at_ =
      b_at_ + (few_rows_
                   ? 0
                   : WholeLines(blocking.kc * panels * blocking.tile.columns));
  blocking.mc = rows_ended;
  finished_later_ = BlockedProduct(blocking, block);
  return c_at_ + WholeLines(task_.rows * blocking.nc);
}

template <>
void Product<uint16_t>::PackB(const uint16_t* b, float* to) const {
  if (few_columns_ != FewColumns::kNone) {
    std::vector<float> space(kPairLanes * CeilDiv(size_.k, 2));
    return TransposePairs(b, size_.k, size_.n, space.data(), to);
  }
  PackPairPanels(panels_.columns, size_.n, size_.k, b, size_.n,
                 panels_.panel_floats(), to);
}

// Steps of k of the micro-kernel, which are pairs, from a step on.
template <>
MatrixView Product<uint16_t>::BlockOfA(const Left& a, int64_t row, int64_t rows,
                                       int64_t step, int64_t steps,
                                       float* space) const {
  const int64_t k = size_.k;
  const auto copy = [&](int64_t first, int64_t count, int64_t stride,
                        auto* to) {
    if (a.rows != nullptr) {
      a.rows->Copy(row, rows, first, count, stride, to);
    } else if constexpr (std::is_same_v<decltype(to), float*>) {
      Widen(a.data + row * k + first, rows, count, k, to, stride);
    } else {
      CopyRows(a.data + row * k + first, rows, count, k, to, stride);
    }
  };
  if (!pairs_) {
    copy(step, steps, steps, space);
    return {space, steps};
  }
  if (a.rows == nullptr && k % 2 == 0) {
    return {reinterpret_cast<const float*>(a.data + row * k) + step, k / 2};
  }
  auto* const to = reinterpret_cast<uint16_t*>(space);
  const int64_t count = std::min(2 * steps, k - 2 * step);
  copy(2 * step, count, 2 * steps, to);
  if (count % 2 != 0) {
    for (int64_t i = 0; i < rows; ++i) to[2 * i * steps + count] = 0;
  }
  return {space, steps};
}

template <>
MatrixView Product<uint16_t>::BlockOfB(const uint16_t* b, int64_t column,
                                       int64_t columns, int64_t step,
                                       int64_t steps, float* space) const {
  const int64_t n = size_.n;
  if (!pairs_) {
    Widen(b + step * n + column, steps, columns, n, space, columns);
    return {space, columns};
  }
  const int64_t width = panels_.columns;
  const int64_t panel = width * blocked_.blocking().kc;
  PackPairPanels(width, columns, std::min(2 * steps, size_.k - 2 * step),
                 b + 2 * step * n + column, n, panel, space);
  return {space, panel};
}

template <>
void Product<uint16_t>::MultiplyFewRows(const Task& task, const Left& a,
                                        const uint16_t* b, uint16_t* c,
                                        const Epilogue& epilogue,
                                        float* space) const {
  const int64_t n = size_.n, kc = blocked_.blocking().kc;
  float* const sums = space + c_at_;
  for (int64_t p = 0; p < size_.k; p += kc) {
    const int64_t steps = std::min(kc, size_.k - p);
    const MatrixView rows =
        BlockOfA(a, task.row, task.rows, p, steps, space + a_at_);
    AddRowsTimesBf16(rows.data, rows.stride, task.rows, b + p * n + task.column,
                     n, steps, task.columns,
                     /*accumulate=*/p > 0, sums, task.columns);
  }
  ScaleShiftActivate(epilogue, sums, task.rows, task.columns, task.columns);
  RoundToBf16(sums, task.rows, task.columns, task.columns,
              c + task.row * n + task.column, n);
}

template <>
void Product<uint16_t>::MultiplyColumns(const Task& task, const Left& a,
                                        const Right& b, uint16_t* c,
                                        const Epilogue& epilogue,
                                        float* space) const {
  const auto left = [&](int64_t row, int64_t rows, int64_t step,
                        int64_t steps) {
    return BlockOfA(a, task.row + row, rows, step, steps, space + a_at_);
  };
  const auto right = [&](int64_t column, int64_t columns, int64_t step,
                         int64_t steps) {
    return BlockOfB(b.data, task.column + column, columns, step, steps,
                    space + b_at_);
  };
  const Factor::Block left_block = left, right_block = right;
  Factor rows, columns;
  rows.block = &left_block;
  if (packs_b_) {
    columns.stored = panels_.From(b.packed, task.column);
  } else {
    columns.block = &right_block;
  }
  Result result;
  result.data = space + c_at_;
  result.stride = task.columns;
  result.epilogue = epilogue;
  result.rounded = c + task.row * size_.n + task.column;
  result.rounded_stride = size_.n;
  const BlockedProduct& product =
      EndsInRegisters(epilogue) ? blocked_ : finished_later_;
  product.Multiply(
      {task.rows, task.columns, pairs_ ? CeilDiv(size_.k, 2) : size_.k}, rows,
      columns, result, space);
}

template <>
void Product<uint16_t>::MultiplyFewColumns(const Task& task, const Left& a,
                                           const Right& b, uint16_t* to,
                                           const Epilogue& epilogue,
                                           float* space) const {
  const auto& [m, n, k] = size_;
  const float* packed = b.packed;
  if (!packs_b_ && n > 1) {
    TransposePairs(b.data, k, n, space, space + b_at_);
    packed = space + b_at_;
  }
  const bool as_stored = packed == nullptr;
  const int64_t stride = as_stored ? k : 2 * CeilDiv(k, 2);
  const uint16_t* const columns =
      (as_stored ? b.data : reinterpret_cast<const uint16_t*>(packed)) +
      task.column * stride;
  const Epilogue ending = epilogue.From(task.column);
  float* const sums = space + c_at_;
  const int64_t rows = std::max<int64_t>(kSumsOfFewColumns / task.columns, 1);
  for (int64_t i = 0; i < task.rows; i += rows) {
    const int64_t count = std::min(rows, task.rows - i);
    ops::MultiplyFewColumns({count, task.columns, k},
                            a.data + (task.row + i) * k, k, columns, stride,
                            sums, task.columns);
    if (!ending.changes_nothing()) {
      ScaleShiftActivate(ending, sums, count, task.columns, task.columns);
    }
    uint16_t* const rounded = to + (task.row + i) * n + task.column;
    if (task.columns == n) {
      RoundPairSums(sums, 1, count * n, 0, rounded, 0);
    } else {
      RoundPairSums(sums, count, task.columns, task.columns, rounded, n);
    }
  }
}

template <>
void Product<uint16_t>::RunTask(const Task& task, const Left& a, const Right& b,
                                uint16_t* c, const Epilogue& epilogue,
                                float* space, float*) const {
  if (few_columns_ != FewColumns::kNone) {
    return MultiplyFewColumns(task, a, b, c, epilogue, space);
  }
  const int64_t nc = blocked_.blocking().nc;
  for (int64_t j = 0; j < task.columns; j += nc) {
    Task columns = task;
    columns.column += j;
    columns.columns = std::min(nc, task.columns - j);
    const Epilogue ending = epilogue.From(columns.column);
    if (few_rows_) {
      MultiplyFewRows(columns, a, b.data, c, ending, space);
    } else {
      MultiplyColumns(columns, a, b, c, ending, space);
    }
  }
}

// Plan() has one part.
template <>
void Product<uint16_t>::AddPartialSums(const Call&, uint16_t*) const {}

}  // namespace optrail::ops
