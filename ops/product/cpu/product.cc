#include "ops/product/cpu/product.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/product/cpu/product_bf16.h"
#include "ops/product/cpu/short_sums.h"

namespace optrail::ops {

template <class T>
Product<T> Product<T>::Plan(const ProductSpec& spec, CpuDevice& device,
                            WorkspaceLayout& layout) {
  Product product;
  product.batch_ = spec.batch;
  product.size_ = spec.size;
  const int64_t floats = product.PlanBlocks(spec, device);
  if (floats > 0) {
    product.workspaces_ = Workspaces(
        layout, std::min<int64_t>(device.threads(), product.claims()), floats);
    product.has_workspaces_ = true;
  }
  if (product.depth_parts_ > 1) {
    product.partial_sums_ = Workspaces(
        layout, 1, (product.depth_parts_ - 1) * spec.size.m * spec.size.n);
  }
  return product;
}

template <class T>
void Product<T>::Run(const Call& call, const Left& a, const Right& b, T* c,
                     const Epilogue& epilogue) const {
  if (direct_.has_value()) {
    if constexpr (std::is_same_v<T, float>) {
      if (batch_ == 1) {
        return direct_->Multiply(a.data, packs_b_ ? b.packed : b.data, c,
                                 epilogue);
      }
    }
  }
  float* const partial_sums =
      depth_parts_ > 1 ? partial_sums_.at(call, 0) : nullptr;
  const auto run = [&](int64_t first, int64_t count, float* space) {
    for (int64_t i = first; i < first + count; ++i) {
      RunTask(TaskAt(i), a, b, c, epilogue, space, partial_sums);
    }
  };
  if (at_once_ >= task_count_) {
    run(0, task_count_, has_workspaces_ ? workspaces_.at(call, 0) : nullptr);
  } else if (!has_workspaces_) {
    ForBlocks(call, task_count_, at_once_, [&](int64_t first, int64_t count) {
      run(first, count, nullptr);
    });
  } else {
    Workspaces::Shared shared(workspaces_, call);
    ForBlocks(call, task_count_, at_once_, [&](int64_t first, int64_t count) {
      const Workspaces::Lease lease(shared);
      run(first, count, lease.data());
    });
  }
  if (depth_parts_ > 1) AddPartialSums(call, c);
}

// Plans tasks of at most so many rows.
template <class T>
void Product<T>::PlanTasks(const ProductSpec& spec, int64_t most_rows,
                           int64_t threads) {
  const RegisterTile& tile = spec.blocking.tile;
  task_ = {std::min(spec.task_rows, most_rows), spec.task_columns};
  if (!spec.exact_tasks) {
    task_ = ShareOut(spec.batch, {size_.m, tile.rows, task_.rows},
                     {size_.n, tile.columns, task_.columns}, size_.k, threads);
  }
  int64_t depth_parts = spec.depth_parts;
  if (spec.exact_tasks && WorkOf(size_) < 2 * kLeastWork) {
    task_ = {std::min(size_.m, most_rows), size_.n};
    depth_parts = 1;
  }
  task_ = {std::min(task_.rows, size_.m), std::min(task_.columns, size_.n)};
  const int64_t unit = tile.k_unroll;
  task_steps_ =
      std::min(CeilDiv(CeilDiv(size_.k, unit), depth_parts) * unit, size_.k);
  row_parts_ = CeilDiv(size_.m, task_.rows);
  column_parts_ = CeilDiv(size_.n, task_.columns);
  depth_parts_ = CeilDiv(size_.k, task_steps_);
  task_count_ = batch_ * row_parts_ * column_parts_ * depth_parts_;
  at_once_ = TasksAtOnce(
      task_count_,
      task_count_ * WorkOf({task_.rows, task_.columns, task_steps_}), threads);
}

template <class T>
typename Product<T>::Task Product<T>::TaskAt(int64_t index) const {
  Task task;
  if (task_count_ == batch_) {
    // Divisions take as long as a small product.
    task.rows = size_.m;
    task.columns = size_.n;
    task.steps = size_.k;
    task.batch = index;
    return task;
  }
  task.step = index % depth_parts_ * task_steps_;
  task.steps = std::min(task_steps_, size_.k - task.step);
  index /= depth_parts_;
  task.column = index % column_parts_ * task_.columns;
  task.columns = std::min(task_.columns, size_.n - task.column);
  index /= column_parts_;
  task.row = index % row_parts_ * task_.rows;
  task.rows = std::min(task_.rows, size_.m - task.row);
  task.batch = index / row_parts_;
  return task;
}

// Products of float: A and B are read as they are stored.

template <>
int64_t Product<float>::PlanBlocks(const ProductSpec& spec, CpuDevice& device) {
  PlanTasks(spec, std::numeric_limits<int64_t>::max(), device.threads());
  Blocking blocking = spec.blocking;
  packs_b_ = spec.may_pack_b;
  blocking.b_in_panels = packs_b_;
  blocking.prefetch_c = PrefetchPays(batch_ * size_.m * size_.n, size_.k,
                                     device.hardware().l2_bytes());
  panels_ = {blocking.tile.columns, size_.k};
  b_transposed_ = blocking.b_transposed;
  // One thread gains nothing by several tasks.
  const bool whole =
      row_parts_ * column_parts_ * depth_parts_ == 1 || device.threads() == 1;
  if (whole && !spec.gathers_a) {
    direct_ = DirectProduct::Plan(
        blocking, size_,
        {size_.k, packs_b_ ? panels_.panel_floats() : size_.n, size_.n});
  }
  const bool transposes = !packs_b_ && !blocking.b_transposed && size_.n > 1;
  if (!spec.gathers_a && !blocking.a_transposed) {
    few_columns_ =
        FewColumnsFor({task_.rows, size_.n, task_steps_}, transposes,
                      direct_.has_value() && direct_->is_of_strips());
  }
  if (few_columns_ != FewColumns::kNone) {
    direct_.reset();
    return few_columns_ == FewColumns::kLongSums && transposes
               ? WholeLines(size_.n * task_steps_)
               : 0;
  }
  if (direct_.has_value()) {
    task_ = {size_.m, size_.n};
    task_count_ = batch_;
    at_once_ = std::min(at_once_, batch_);
    return 0;
  }
  const int64_t last = size_.n % TileLanes();
  const bool b_is_near = size_.k * size_.n * int64_t{sizeof(float)} <=
                         device.hardware().l2_bytes();
  if (last > 0 && size_.n > TileLanes() && task_.columns == size_.n &&
      b_is_near && transposes && !spec.gathers_a && !blocking.a_transposed &&
      FewColumnsFor({task_.rows, last, task_steps_}, transposes) ==
          FewColumns::kLongSums) {
    last_columns_ = last;
  }
  blocked_ = BlockedProduct(
      blocking, {task_.rows, task_.columns - last_columns_, task_steps_});
  a_at_ = WholeLines(blocked_.workspace_floats());
  last_at_ = a_at_ + (spec.gathers_a ? WholeLines(task_.rows * size_.k) : 0);
  return last_at_ + WholeLines(last_columns_ * task_steps_);
}

template <>
void Product<float>::PackB(const float* b, float* to) const {
  if (few_columns_ != FewColumns::kNone) {
    return TransposeFewColumns(b, size_.k, size_.n, size_.n, to);
  }
  panels_.Pack(size_.n, b, size_.n, to);
}

// Long sums need columns of B in one piece, as they are stored or packed, or
// copy them to `space`. Short ones read B wherever it is.
template <>
void Product<float>::MultiplyFewColumns(const Task& task, const Left& a,
                                        const Right& b, float* to,
                                        const Epilogue& epilogue,
                                        float* space) const {
  const auto& [m, n, k] = size_;
  const ProductSize size = {task.rows, task.columns, task.steps};
  const float* const rows =
      a.data + (task.batch * m + task.row) * k + task.step;
  const float* columns = packs_b_ ? b.packed : b.data + task.batch * n * k;
  const bool transposed = packs_b_ || b_transposed_ || n == 1;
  Epilogue ending = epilogue.From(task.column);
  if (few_columns_ == FewColumns::kShortSums) {
    const ShortSums strides = transposed ? ShortSums{1, k} : ShortSums{n, 1};
    // A pass over C takes longer than such a product.
    const float* const shift = ending.scale == nullptr ? ending.shift : nullptr;
    if (shift != nullptr) ending.shift = nullptr;
    ops::MultiplyShortSums(
        size, rows, k,
        columns + task.step * strides.step + task.column * strides.column,
        strides, shift, to, n);
  } else {
    int64_t stride = k;
    if (transposed) {
      columns += task.step;
    } else {
      TransposeFewColumns(columns + task.step * n, task.steps, n, n, space);
      columns = space;
      stride = task.steps;
    }
    ops::MultiplyFewColumns(size, rows, k, columns + task.column * stride,
                            stride, to, n);
  }
  if (!ending.changes_nothing()) {
    ScaleShiftActivate(ending, to, task.rows, task.columns, n);
  }
}

template <>
void Product<float>::MultiplyLastColumns(const Task& task, const float* a,
                                         const float* b, float* to,
                                         const Epilogue& epilogue,
                                         float* space) const {
  const auto& [m, n, k] = size_;
  TransposeFewColumns(b, task.steps, last_columns_, n, space);
  ops::MultiplyFewColumns({task.rows, last_columns_, task.steps}, a, k, space,
                          task.steps, to, n);
  if (!epilogue.changes_nothing()) {
    ScaleShiftActivate(epilogue, to, task.rows, last_columns_, n);
  }
}

template <>
void Product<float>::RunTask(const Task& task, const Left& a, const Right& b,
                             float* c, const Epilogue& epilogue, float* space,
                             float* partial_sums) const {
  const auto& [m, n, k] = size_;
  const float* const left = a.data + task.batch * m * k;
  const float* const right = b.data + task.batch * k * n;
  float* const to = c + task.batch * m * n;
  if (direct_.has_value()) {
    return direct_->Multiply(left, packs_b_ ? b.packed : right, to, epilogue);
  }
  float* const at =
      (task.step == 0 ? to
                      : partial_sums + (task.step / task_steps_ - 1) * m * n) +
      task.row * n + task.column;
  if (few_columns_ != FewColumns::kNone) {
    return MultiplyFewColumns(task, a, b, at, epilogue, space);
  }
  const Blocking& blocking = blocked_.blocking();
  Factor rows, columns;
  if (a.rows != nullptr) {
    float* const gathered = space + a_at_;
    a.rows->Copy(task.row, task.rows, 0, k, k, gathered);
    rows.stored = {gathered, k};
  } else if (blocking.a_transposed) {
    rows.stored = {left + task.step * m + task.row, m};
  } else {
    rows.stored = {left + task.row * k + task.step, k};
  }
  if (packs_b_) {
    columns.stored = panels_.From(b.packed, task.column);
  } else if (blocking.b_transposed) {
    columns.stored = {right + task.column * k + task.step, k};
  } else {
    columns.stored = {right + task.step * n + task.column, n};
  }
  Result result;
  result.data = at;
  result.stride = n;
  result.epilogue = epilogue.From(task.column);
  blocked_.Multiply({task.rows, task.columns - last_columns_, task.steps}, rows,
                    columns, result, space);
  if (last_columns_ > 0) {
    const int64_t first = n - last_columns_;
    MultiplyLastColumns(task, rows.stored.data, columns.stored.data + first,
                        at + first, epilogue.From(first), space + last_at_);
  }
}

// Always in the same order, so that results do not depend on which task was
// first.
template <>
void Product<float>::AddPartialSums(const Call& call, float* c) const {
  constexpr int64_t kPart = 4096;
  const int64_t elements = size_.m * size_.n;
  ForBlocks(call, elements, kPart, [&](int64_t begin, int64_t count) {
    for (int64_t part = 0; part < depth_parts_ - 1; ++part) {
      const float* const from = partial_sums_.at(call, 0) + part * elements;
      for (int64_t i = begin; i < begin + count; ++i) c[i] += from[i];
    }
  });
}

template class Product<float>;
template class Product<uint16_t>;

}  // namespace optrail::ops
