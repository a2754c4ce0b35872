#ifndef OPTRAIL_GRAPH_MEMORY_GREEDY_H_
#define OPTRAIL_GRAPH_MEMORY_GREEDY_H_

// First fit: blocks are placed one after another, each at the lowest offset
// where it overlaps no placed block.
//
//   Placer placer(problem);
//   placer.Reset();
//   for (const int b : OrderBlocks(problem, BlockOrder::kSize)) {
//     placer.Place(b, placer.LowestOffset(b));
//   }

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/memory/offset_list.h"
#include "graph/memory/problem.h"

namespace optrail::graph {

// By what blocks are sorted, the largest first. Blocks that are equal in that
// keep the order of their starts, which packs blocks of one size perfectly
// (they are an interval graph that is coloured from left to right).
enum class BlockOrder {
  kSize,
  kArea,          // size x lifetime
  kSizeLifetime,  // lifetime x sqrt(size)
  kLifetime,
  kPeak,      // those at the heaviest section by lifetime, then by size
  kSizeRoot,  // size x sqrt(lifetime)
  kTightest,  // by the heaviest section they are live in, then by lifetime
};
// The order of trial: what left the least to mend on recorded models is first.
inline constexpr BlockOrder kBlockOrders[] = {
    BlockOrder::kPeak,     BlockOrder::kSize,     BlockOrder::kArea,
    BlockOrder::kSizeRoot, BlockOrder::kTightest, BlockOrder::kSizeLifetime,
    BlockOrder::kLifetime,
};
inline constexpr int kNumBlockOrders =
    sizeof(kBlockOrders) / sizeof(kBlockOrders[0]);
// "first fit by size" and so on.
const char* BlockOrderName(BlockOrder order);

std::vector<int> OrderBlocks(const MemoryProblem& problem, BlockOrder order);

// Offsets of the placed blocks, and where others fit between them. Blocks with
// a fixed offset are placed by Reset.
class Placer {
 public:
  // `problem` must outlive it.
  explicit Placer(const MemoryProblem& problem);

  void Reset();
  bool IsPlaced(int b) const { return offsets_[b] != kNotPlaced; }
  void Place(int b, int64_t offset);
  void Remove(int b);

  // The lowest offset where b overlaps no placed block; there always is one.
  int64_t LowestOffset(int b);

  const std::vector<int64_t>& offsets() const { return offsets_; }
  const OverlapIndex& overlaps() const { return overlaps_; }

 private:
  PlacedBlock At(int b, int64_t offset) const;
  int64_t LowestByWalk(int b) const;
  int64_t LowestByNeighbours(int b);

  const MemoryProblem& problem_;
  OverlapIndex overlaps_;
  OffsetList placed_;
  std::vector<int64_t> offsets_;
  std::vector<std::pair<int64_t, int64_t>> taken_;  // scratch
};

// The largest offset + size of the placed blocks.
int64_t HeightOf(const MemoryProblem& problem,
                 const std::vector<int64_t>& offsets);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_GREEDY_H_
