#ifndef OPTRAIL_GRAPH_MEMORY_OFFSET_LIST_H_
#define OPTRAIL_GRAPH_MEMORY_OFFSET_LIST_H_

// OffsetList holds placed blocks sorted by their offsets, in chunks, so that an
// insertion moves few of them and a walk from the bottom reads memory in order.
//
//   OffsetList list;
//   list.Insert({offset, offset + size, begin, end, b});
//   list.Walk([&](const PlacedBlock& placed) { return placed.offset < limit;
//   });

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace optrail::graph {

struct PlacedBlock {
  int64_t offset = 0;
  int64_t top = 0;  // offset + size
  int begin = 0;    // sections, as in MemoryBlock
  int end = 0;
  int block = 0;
};

class OffsetList {
 public:
  void Clear() {
    chunks_.clear();
    size_ = 0;
  }
  size_t size() const { return size_; }

  void Insert(const PlacedBlock& placed) {
    ++size_;
    if (chunks_.empty()) chunks_.emplace_back();
    const size_t c = ChunkOf(placed);
    std::vector<PlacedBlock>& chunk = chunks_[c];
    chunk.insert(std::lower_bound(chunk.begin(), chunk.end(), placed, Before),
                 placed);
    if (chunk.size() < kChunk) return;
    std::vector<PlacedBlock> upper(chunk.begin() + kChunk / 2, chunk.end());
    chunk.resize(kChunk / 2);
    chunks_.insert(chunks_.begin() + c + 1, std::move(upper));
  }

  // `placed` must be in the list.
  void Remove(const PlacedBlock& placed) {
    --size_;
    const size_t c = ChunkOf(placed);
    std::vector<PlacedBlock>& chunk = chunks_[c];
    chunk.erase(std::lower_bound(chunk.begin(), chunk.end(), placed, Before));
    if (chunk.empty()) chunks_.erase(chunks_.begin() + c);
  }

  // Calls visit(placed) by rising offset until it returns false.
  template <typename Visit>
  void Walk(Visit visit) const {
    for (const std::vector<PlacedBlock>& chunk : chunks_) {
      for (const PlacedBlock& placed : chunk) {
        if (!visit(placed)) return;
      }
    }
  }

 private:
  static constexpr size_t kChunk = 512;

  static bool Before(const PlacedBlock& a, const PlacedBlock& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.block < b.block;
  }

  // The last chunk that does not begin behind `placed`.
  size_t ChunkOf(const PlacedBlock& placed) const {
    const auto behind = std::upper_bound(
        chunks_.begin(), chunks_.end(), placed,
        [](const PlacedBlock& p, const std::vector<PlacedBlock>& chunk) {
          return !chunk.empty() && Before(p, chunk.front());
        });
    return behind == chunks_.begin() ? 0 : behind - chunks_.begin() - 1;
  }

  std::vector<std::vector<PlacedBlock>> chunks_;
  size_t size_ = 0;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_OFFSET_LIST_H_
