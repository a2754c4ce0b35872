// The CPU kernel of the matrix product: reads the knobs, cuts the product into
// tasks for threads, and leaves each task to MultiplyBlocked.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/cpu_kernel.h"
#include "ops/matmul/blocked_matmul.h"
#include "ops/matmul/matmul_knobs.h"
#include "ops/matmul/product_tasks.h"
#include "ops/matmul/register_tile.h"
#include "ops/matmul/widened_tasks.h"

namespace optrail::ops {
namespace {

// [begin, end) of part `part` out of `parts`, as equal as whole units allow.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

Range PartOf(int64_t length, int64_t unit, int64_t parts, int64_t part) {
  const int64_t units = CeilDiv(length, unit);
  return {std::min(length, units * part / parts * unit),
          std::min(length, units * (part + 1) / parts * unit)};
}

// Into how many parts each dimension is cut.
struct Split {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  int64_t tasks() const { return rows * columns * depth; }
};

// The factors of `tasks` that make a task read least of A and B.
Split GridSplit(const MatmulSize& size, int64_t tasks) {
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
               const MatmulSize& size, int threads) {
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

class MatmulCpuInvocation : public Invocation {
 public:
  MatmulCpuInvocation(const MatmulSize& size, const Blocking& blocking,
                      const Split& split, CpuDevice& device)
      : size_(size), blocking_(blocking), split_(split), device_(device) {}

  absl::Status Allocate() {
    const MatmulSize largest = {
        CeilDiv(CeilDiv(size_.m, blocking_.tile.rows), split_.rows) *
            blocking_.tile.rows,
        CeilDiv(CeilDiv(size_.n, blocking_.tile.columns), split_.columns) *
            blocking_.tile.columns,
        CeilDiv(CeilDiv(size_.k, blocking_.tile.k_unroll), split_.depth) *
            blocking_.tile.k_unroll};
    const auto workspaces =
        std::min<int64_t>(device_.threads(), split_.tasks());
    for (int64_t i = 0; i < workspaces; ++i) {
      OPTRAIL_ASSIGN_OR_RETURN(float* workspace, AllocateFloats(WorkspaceFloats(
                                                     blocking_, largest)));
      free_workspaces_.push_back(workspace);
    }
    if (split_.depth > 1) {
      OPTRAIL_ASSIGN_OR_RETURN(
          partial_sums_,
          AllocateFloats((split_.depth - 1) * size_.m * size_.n));
    }
    return absl::OkStatus();
  }

  void Run(absl::Span<void* const> operands) override {
    const auto* a = static_cast<const float*>(operands[0]);
    const auto* b = static_cast<const float*>(operands[1]);
    auto* c = static_cast<float*>(operands[2]);
    if (split_.tasks() == 1) {
      MultiplyBlocked(blocking_, size_, a, size_.k, b, size_.n, c, size_.n,
                      free_workspaces_[0]);
      return;
    }
    device_.ParallelFor(split_.tasks(),
                        [&](int64_t task) { RunTask(task, a, b, c); });
    if (split_.depth > 1) AddPartialSums(c);
  }

  int64_t workspace_bytes() const override {
    int64_t bytes = 0;
    for (const std::unique_ptr<Buffer>& buffer : buffers_) {
      bytes += static_cast<int64_t>(buffer->size_bytes());
    }
    return bytes;
  }

 private:
  absl::StatusOr<float*> AllocateFloats(int64_t count) {
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                             device_.Allocate(count * sizeof(float)));
    buffers_.push_back(std::move(buffer));
    return static_cast<float*>(buffers_.back()->data());
  }

  void RunTask(int64_t task, const float* a, const float* b, float* c) {
    const int64_t depth_part = task % split_.depth;
    const int64_t column_part = task / split_.depth % split_.columns;
    const int64_t row_part = task / split_.depth / split_.columns;
    const Range rows =
        PartOf(size_.m, blocking_.tile.rows, split_.rows, row_part);
    const Range columns =
        PartOf(size_.n, blocking_.tile.columns, split_.columns, column_part);
    const Range depth =
        PartOf(size_.k, blocking_.tile.k_unroll, split_.depth, depth_part);
    float* to = depth_part == 0
                    ? c
                    : partial_sums_ + (depth_part - 1) * size_.m * size_.n;

    float* const workspace = TakeWorkspace();
    MultiplyBlocked(blocking_, {rows.size(), columns.size(), depth.size()},
                    a + rows.begin * size_.k + depth.begin, size_.k,
                    b + depth.begin * size_.n + columns.begin, size_.n,
                    to + rows.begin * size_.n + columns.begin, size_.n,
                    workspace);
    ReturnWorkspace(workspace);
  }

  // Always in the same order, so that results do not depend on who was first.
  void AddPartialSums(float* c) {
    const int64_t elements = size_.m * size_.n;
    device_.ParallelFor(device_.threads(), [&](int64_t part) {
      const Range range = PartOf(elements, 64, device_.threads(), part);
      for (int64_t sum = 0; sum < split_.depth - 1; ++sum) {
        const float* from = partial_sums_ + sum * elements;
        for (int64_t i = range.begin; i < range.end; ++i) c[i] += from[i];
      }
    });
  }

  // At most device.threads() tasks run at a time; a task lasts so long that a
  // lock does not show.
  float* TakeWorkspace() {
    const std::lock_guard<std::mutex> lock(mutex_);
    float* workspace = free_workspaces_.back();
    free_workspaces_.pop_back();
    return workspace;
  }

  void ReturnWorkspace(float* workspace) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_workspaces_.push_back(workspace);
  }

  const MatmulSize size_;
  const Blocking blocking_;
  const Split split_;
  CpuDevice& device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  float* partial_sums_ = nullptr;
  std::mutex mutex_;
  std::vector<float*> free_workspaces_;
};

class MatmulCpu : public CpuKernel {
 public:
  absl::StatusOr<int> Instantiation(
      const proto::Config& config) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const MatmulKnobs knobs,
                             MatmulKnobs::From(config));
    return knobs.InstantiationIndex();
  }

  std::vector<std::pair<std::string, int64_t>> Blocks(
      const proto::Config& config) const override {
    const absl::StatusOr<MatmulKnobs> knobs = MatmulKnobs::From(config);
    if (!knobs.ok()) return {};
    const int64_t columns = knobs->nr_vectors * TileLanes();
    return {{"m", knobs->mr},       {"m", knobs->mr * knobs->m_tiles},
            {"n", columns},         {"n", columns * knobs->n_tiles},
            {"k", knobs->k_unroll}, {"k", knobs->kc}};
  }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::BF16}};
  }

  absl::StatusOr<std::unique_ptr<Invocation>> Prepare(
      const proto::Shape& shape, const proto::Config& config,
      CpuDevice& device) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const MatmulKnobs knobs,
                             MatmulKnobs::From(config));
    Blocking blocking;
    blocking.tile = FindRegisterTile(static_cast<int>(knobs.mr),
                                     static_cast<int>(knobs.nr_vectors),
                                     static_cast<int>(knobs.k_unroll));
    if (blocking.tile.plain_a == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a register tile of mr=", knobs.mr, " by nr_vectors=",
          knobs.nr_vectors, " with k_unroll=", knobs.k_unroll,
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

    const MatmulSize size = {shape.dims(0).value(), shape.dims(1).value(),
                             shape.dims(2).value()};
    blocking.prefetch_c =
        PrefetchPays(size.m * size.n, size.k, device.hardware().l2_bytes());
    const Split split = SplitFor(knobs, blocking.tile, size, device.threads());
    if (shape.data_types(0) == proto::BF16) {
      ProductTasks::Cut cut;
      cut.size = size;
      cut.task_rows = CeilDiv(size.m, split.rows);
      cut.task_columns = CeilDiv(size.n, split.columns * split.depth);
      OPTRAIL_ASSIGN_OR_RETURN(const WidenedTasks tasks,
                               WidenedTasks::Plan(blocking, cut, device,
                                                  /*may_keep=*/false));
      return MakeInvocation(
          [=, &device](absl::Span<void* const> operands) {
            tasks.Run(device, static_cast<const uint16_t*>(operands[0]),
                      static_cast<const uint16_t*>(operands[1]),
                      static_cast<uint16_t*>(operands[2]), Epilogue());
          },
          tasks.workspaces());
    }
    auto invocation =
        std::make_unique<MatmulCpuInvocation>(size, blocking, split, device);
    OPTRAIL_RETURN_IF_ERROR(invocation->Allocate());
    return invocation;
  }
};

OPTRAIL_REGISTER_CPU_KERNEL("matmul", MatmulCpu)

}  // namespace
}  // namespace optrail::ops
