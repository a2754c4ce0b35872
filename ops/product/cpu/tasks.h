#ifndef OPTRAIL_OPS_PRODUCT_CPU_TASKS_H_
#define OPTRAIL_OPS_PRODUCT_CPU_TASKS_H_

// How a product is shared out among threads.
//
//   const TaskSize task = ShareOut(batch, {m, tile.rows, 512},
//                                  {n, tile.columns, 1024}, k, threads);

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocking.h"

namespace optrail::ops {

// A task has at least so many multiplications: to wake a thread and to claim a
// task takes as long as some ten thousand of them.
constexpr int64_t kLeastWork = 1 << 16;

// The multiplications of a product, and as many as take as long as moving its
// floats, which is most of products of short sums.
inline int64_t WorkOf(const ProductSize& size) {
  constexpr int64_t kOfFloat = 4;
  const auto& [m, n, k] = size;
  return m * n * k + kOfFloat * (m * k + k * n + m * n);
}

// How many of `tasks`, which are worth `work` together, a thread claims at a
// time: equally many where threads claim once, and kLeastWork at least.
inline int64_t TasksAtOnce(int64_t tasks, int64_t work, int64_t threads) {
  int64_t claims = std::max<int64_t>(work / kLeastWork, 1);
  if (claims >= tasks) return 1;
  if (claims > threads) claims = claims / threads * threads;
  return CeilDiv(tasks, claims);
}

// The most that a task computes of a product.
struct TaskSize {
  int64_t rows = 0;
  int64_t columns = 0;
};

// A dimension of a product that is shared out.
struct Shared {
  int64_t length = 0;
  int64_t unit = 1;  // is never divided
  int64_t most = 0;  // of a task, roughly
  // The cost of reading one of them, in multiplications for each step of the
  // sum.
  double reading = 12;
};

// The tasks of `batch` products, whose sums have so many steps, that end first
// on `threads` threads: as few as `most` allows where that is one, else equal
// ones, so that none is waited for. More than `most` asks for are worth
// kLeastWork each.
inline TaskSize ShareOut(int64_t batch, const Shared& rows,
                         const Shared& columns, int64_t steps,
                         int64_t threads) {
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
      const bool fewest = r == least(rows) && c == least(columns);
      if (!fewest && WorkOf({std::min(task.rows, rows.length),
                             std::min(task.columns, columns.length), steps}) <
                         kLeastWork) {
        continue;
      }
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

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_TASKS_H_
