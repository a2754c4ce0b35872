// The CUDA kernel of softmax: what to compile for a config, how to launch it.

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/lib/rows_cuda.h"

namespace optrail::ops {
namespace {

// Of a row, in the registers of a thread; as the space says, and what rounding
// up to whole accesses adds, of which a row that starts in the middle of one
// may take one more.
constexpr int64_t kMostElements = 64;
constexpr int64_t kMaxElements = kMostElements + 8;
constexpr int64_t kInFlight = 4;

// How threads and blocks share rows.
struct Threads {
  int64_t per_row, rows_per_block, cluster;
  bool must_fit;  // else rows that they cannot hold are read twice
  bool may_keep;  // exponentials, which take registers
};

// Applies the rule for threads_per_row of 0. Its constants are of 50 or 60
// random configs each of 21 shapes of bfloat16 on an H200.
Threads ByFormula(const RowLayout& layout, int64_t rows,
                  int64_t multiprocessors, int64_t most_blocks) {
  constexpr int64_t kInBlock = 512, kMostInBlock = 1024, kLeastInBlock = 128;
  constexpr int64_t kInSharedBlock = 256;
  // Blocks share a row where others would leave multiprocessors idle, and
  // where it is too long for one.
  const int64_t per_block = kMostInBlock * kMostElements;
  if (layout.words * layout.vector <= per_block) {
    while (most_blocks > 1 && most_blocks * rows > multiprocessors) {
      most_blocks /= 2;
    }
  }
  const bool few = rows <= 2 * multiprocessors;
  int64_t threads = ThreadsOfRow(layout.words, rows, multiprocessors,
                                 kMostInBlock * (few ? most_blocks : 1),
                                 /*most_accesses=*/8);
  // Up to five accesses a thread are quicker than larger blocks, of which one
  // waits for the slowest of its warps.
  if (rows >= multiprocessors && layout.words <= 5 * kInSharedBlock) {
    threads = std::min(threads, kInSharedBlock);
  }
  const bool fits = threads * kMostElements >= layout.words * layout.vector;
  if (threads <= kInBlock || most_blocks == 1 || (!few && fits)) {
    // Several blocks on a multiprocessor have no registers to spare.
    const bool may_keep = rows <= multiprocessors || threads < kInBlock ||
                          layout.words <= 2 * threads;
    return {threads, std::max<int64_t>(1, kLeastInBlock / threads), 1, false,
            may_keep};
  }
  // Blocks of 256 threads with four accesses each; of 512 and 1024 where rows
  // are longer.
  constexpr int64_t kAccesses = 4;
  const int64_t cluster =
      std::min(most_blocks, std::max<int64_t>(threads / kInSharedBlock, 2));
  threads = kInSharedBlock;
  while (threads < kMostInBlock &&
         threads * cluster *
                 std::min(kAccesses * threads / kInSharedBlock,
                          kMostElements / layout.vector) <
             layout.words) {
    threads *= 2;
  }
  return {threads, 1, cluster, false, true};
}

Threads ThreadsOf(const proto::Config& config, const RowLayout& layout,
                  int64_t rows, int64_t multiprocessors) {
  const int64_t per_row = cuda::Knob(config, "threads_per_row");
  const int64_t cluster = cuda::Knob(config, "cluster");
  if (per_row == 0) return ByFormula(layout, rows, multiprocessors, cluster);
  return {per_row, cuda::Knob(config, "rows_per_block"), cluster,
          cuda::Knob(config, "resident") != 0, true};
}

class SoftmaxCuda : public ElementsCuda {
 protected:
  absl::StatusOr<cuda::CudaPlan> PlanFor(const proto::Shape& shape,
                                         const proto::Config& config,
                                         const proto::Hardware& hardware,
                                         int64_t element_bytes) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t columns = shape.dims(1).value();
    const RowLayout layout = RowLayoutOf(columns, element_bytes);
    const Threads threads = ThreadsOf(config, layout, rows, hardware.cores());
    const int64_t items =
        CeilDiv(layout.words, threads.per_row * threads.cluster);
    const bool fits = items * layout.vector <= kMaxElements;
    if (!fits && threads.must_fit) {
      return absl::InvalidArgumentError(
          absl::StrCat("a thread would hold ", items * layout.vector,
                       " elements, at most ", kMaxElements));
    }
    const bool resident = fits && cuda::Knob(config, "resident") != 0;
    const bool keep =
        resident && threads.may_keep && cuda::Knob(config, "keep") != 0;
    cuda::CudaPlan plan;
    plan.source = "softmax_cuda.cu";
    plan.function = "softmax";
    plan.defines = {absl::StrCat("THREADS_PER_ROW=", threads.per_row),
                    absl::StrCat("ROWS_PER_BLOCK=", threads.rows_per_block),
                    absl::StrCat("CLUSTER=", threads.cluster),
                    layout.VectorDefine(), layout.OddDefine(),
                    absl::StrCat("RESIDENT=", resident ? 1 : 0),
                    absl::StrCat("KEEP=", keep ? 1 : 0),
                    absl::StrCat("PAST_L1=", cuda::Knob(config, "past_l1")),
                    absl::StrCat("STREAMING=", cuda::Knob(config, "streaming")),
                    // For rows that are read twice: those in flight.
                    absl::StrCat("ITEMS=", resident ? items : kInFlight)};
    plan.cluster = static_cast<int>(threads.cluster);
    plan.grid_x = static_cast<unsigned>(CeilDiv(rows, threads.rows_per_block) *
                                        threads.cluster);
    plan.block_x =
        static_cast<unsigned>(threads.per_row * threads.rows_per_block);
    return plan;
  }

  void AddNumbers(const proto::Shape& shape, int64_t element_bytes,
                  cuda::CudaArguments* arguments) const override {
    arguments->Add<long long>(shape.dims(0).value());
    arguments->Add(static_cast<int>(shape.dims(1).value()));
  }
};

OPTRAIL_REGISTER_BACKEND("softmax", SoftmaxCuda)

}  // namespace
}  // namespace optrail::ops
