#ifndef OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_H_
#define OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_H_

// The one driver of matrix products on CPUs: matmul, linear, batched_matmul and
// convolutions as implicit products; attention uses its middle, BlockedProduct.
//
//   ProductSpec spec;
//   spec.size = {m, n, k};
//   spec.blocking = blocking;
//   spec.task_rows = spec.task_columns = 4096;
//   WorkspaceLayout layout;
//   const auto product = Product<float>::Plan(spec, device, layout);
//   product.Run(call, {a}, {b}, c, Epilogue());
//
// The files, from the outside to the inside:
//
//   tasks           tasks.h, product.cc    what a thread computes at a time
//   small products  direct_product.h       calls written down beforehand
//   few columns     few_columns.h,         vectors along k, or along rows
//                   short_sums.h
//   short sums      strips.h               B in registers, rows stream past it
//   blocking        blocking.h,            three loops over blocks for caches
//                   blocked_product.h
//   packing         packing.h, pairs.h     blocks as panels; PackedB: weights
//   tiles           block_walk.h           two loops over a block's tiles
//   remainder       tiles.h                last rows and columns
//   prefetching     prefetch.h             the next block, while tiles run
//   micro-kernel    micro_kernel.h         one tile, all steps of a block
//   epilogue        micro_kernel.cc        scale, shift, relu, rounding
//                   block_walk.cc          gelu, once tiles are in L1
//   bfloat16        product_bf16.h,        pairs (vdpbf16ps), or conversion to
//                   pairs.h                f32 block by block
//                   widened_rows.h         few rows: in registers
//
// Plan() does everything that does not depend on operands; a Product never
// changes afterwards. T is float or uint16_t, which holds bfloat16: sums are
// f32 and rounded once.

#include <cstdint>

#include "absl/types/optional.h"
#include "ops/lib/blocks.h"
#include "ops/lib/cpu_frame.h"
#include "ops/product/cpu/blocked_product.h"
#include "ops/product/cpu/direct_product.h"
#include "ops/product/cpu/few_columns.h"
#include "ops/product/cpu/packing.h"
#include "ops/product/cpu/tasks.h"

namespace optrail::ops {

struct ProductSpec {
  int64_t batch = 1;  // 1 with bfloat16
  ProductSize size;   // of one of the batch
  Blocking blocking;
  // The size of a task: at most, roughly (ShareOut), or exactly, in whole
  // tiles.
  int64_t task_rows = 0;
  int64_t task_columns = 0;
  bool exact_tasks = false;
  // Tasks that share the sum of one place of C; 1 with bfloat16.
  int64_t depth_parts = 1;
  // The caller calls PackB() before Run() wherever packs_b() says so: always
  // with float, where it pays with bfloat16.
  bool may_pack_b = false;
  // Rows of A do not exist and are gathered (Left::rows).
  bool gathers_a = false;
};

// Rows of A that are computed when they are needed. Thread-safe.
class GatheredRows {
 public:
  virtual ~GatheredRows() = default;
  // Steps [step, step + steps) of rows [row, row + rows), which come to be
  // `stride` elements apart: floats, or the elements that they were.
  virtual void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
                    int64_t stride, float* to) const = 0;
  virtual void Copy(int64_t row, int64_t rows, int64_t step, int64_t steps,
                    int64_t stride, uint16_t* to) const = 0;
};

template <class T>
class Product {
 public:
  // A [batch, m, k], or its rows, and B [batch, k, n], or what PackB() made of
  // it if packs_b(). Both are dense; Blocking says whether their last two
  // dimensions are transposed.
  struct Left {
    const T* data = nullptr;
    const GatheredRows* rows = nullptr;
  };
  struct Right {
    const T* data = nullptr;
    const float* packed = nullptr;
  };

  // For calls whose workspace has the layout.
  static Product Plan(const ProductSpec& spec, CpuDevice& device,
                      WorkspaceLayout& layout);

  bool packs_b() const { return packs_b_; }
  // Floats that B takes when it is packed.
  int64_t packed_floats() const { return panels_.floats(size_.n); }
  void PackB(const T* b, float* to) const;

  // Into how many parts Run() divides its work, for a thread each at a time; 1:
  // the caller computes all of it.
  int64_t claims() const { return CeilDiv(task_count_, at_once_); }

  // C [batch, m, n] = what `epilogue` makes of A * B.
  void Run(const Call& call, const Left& a, const Right& b, T* c,
           const Epilogue& epilogue) const;

 private:
  struct Task {
    int64_t batch = 0;
    int64_t row = 0, rows = 0;
    int64_t column = 0, columns = 0;
    int64_t step = 0, steps = 0;
  };

  void PlanTasks(const ProductSpec& spec, int64_t most_rows, int64_t threads);
  Task TaskAt(int64_t index) const;

  // These differ between the types: product_f32.cc, product_bf16.cc.
  // Returns the floats of a workspace.
  int64_t PlanBlocks(const ProductSpec& spec, CpuDevice& device);
  void RunTask(const Task& task, const Left& a, const Right& b, T* c,
               const Epilogue& epilogue, float* space,
               float* partial_sums) const;
  void AddPartialSums(const Call& call, T* c) const;

  // bfloat16: some columns of a task whose sums are in `space`.
  void MultiplyColumns(const Task& task, const Left& a, const Right& b, T* c,
                       const Epilogue& epilogue, float* space) const;
  void MultiplyFewRows(const Task& task, const Left& a, const T* b, T* c,
                       const Epilogue& epilogue, float* space) const;
  MatrixView BlockOfA(const Left& a, int64_t row, int64_t rows, int64_t step,
                      int64_t steps, float* space) const;
  MatrixView BlockOfB(const T* b, int64_t column, int64_t columns, int64_t step,
                      int64_t steps, float* space) const;

  int64_t batch_ = 1;
  ProductSize size_;
  // The most that a task computes, and into how many parts that cuts.
  TaskSize task_;
  int64_t task_steps_ = 0;
  int64_t row_parts_ = 1;
  int64_t column_parts_ = 1;
  int64_t depth_parts_ = 1;
  int64_t task_count_ = 1;
  int64_t at_once_ = 1;  // tasks that a thread claims together
  bool packs_b_ = false;
  PackedB panels_;
  BlockedProduct blocked_;
  // Offsets of the parts of a workspace after that of blocked_: blocks of A
  // and, with bfloat16, blocks of B and sums.
  int64_t a_at_ = 0;
  int64_t b_at_ = 0;
  int64_t c_at_ = 0;
  Workspaces workspaces_;
  bool has_workspaces_ = false;
  void MultiplyFewColumns(const Task& task, const Left& a, const Right& b,
                          T* to, const Epilogue& epilogue, float* space) const;
  FewColumns few_columns_ = FewColumns::kNone;
  // f32:
  bool b_transposed_ = false;
  void MultiplyLastColumns(const Task& task, const float* a, const float* b,
                           float* to, const Epilogue& epilogue,
                           float* space) const;
  // So few beyond whole vectors that MultiplyFewColumns computes them sooner.
  int64_t last_columns_ = 0;
  int64_t last_at_ = 0;  // offset of their copy in a workspace
  absl::optional<DirectProduct> direct_;
  Workspaces partial_sums_;
  // bfloat16:
  bool pairs_ = false;
  bool few_rows_ = false;
  BlockedProduct finished_later_;  // where a pass over sums ends them
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CPU_PRODUCT_H_
