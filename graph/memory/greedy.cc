#include "graph/memory/greedy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace optrail::graph {
namespace {

std::vector<int64_t> SectionLoads(const MemoryProblem& problem) {
  std::vector<int64_t> loads(problem.sections + 1, 0);
  for (const MemoryBlock& block : problem.blocks) {
    loads[block.begin] += block.size;
    loads[block.end] -= block.size;
  }
  for (int s = 1; s < problem.sections; ++s) loads[s] += loads[s - 1];
  loads.resize(problem.sections);
  return loads;
}

// Maxima over ranges in constant time: a table of those over 2^k sections.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<int64_t> values) {
    table_.push_back(std::move(values));
    for (size_t width = 1; 2 * width <= table_[0].size(); width *= 2) {
      const std::vector<int64_t>& half = table_.back();
      std::vector<int64_t> next(half.size() - width);
      for (size_t i = 0; i < next.size(); ++i) {
        next[i] = std::max(half[i], half[i + width]);
      }
      table_.push_back(std::move(next));
    }
  }
  int64_t Of(int begin, int end) const {
    int level = 0;
    while ((2 << level) <= end - begin) ++level;
    return std::max(table_[level][begin], table_[level][end - (1 << level)]);
  }

 private:
  std::vector<std::vector<int64_t>> table_;
};

int HeaviestSection(const MemoryProblem& problem) {
  const std::vector<int64_t> loads = SectionLoads(problem);
  return static_cast<int>(std::max_element(loads.begin(), loads.end()) -
                          loads.begin());
}

}  // namespace

const char* BlockOrderName(BlockOrder order) {
  static constexpr const char* kNames[] = {"first fit by size",
                                           "first fit by area",
                                           "first fit by lifetime and size",
                                           "first fit by lifetime",
                                           "first fit from the peak",
                                           "first fit by size and lifetime",
                                           "first fit by load and lifetime"};
  return kNames[static_cast<size_t>(order)];
}

std::vector<int> OrderBlocks(const MemoryProblem& problem, BlockOrder order) {
  const int peak = HeaviestSection(problem);
  const RangeMaximum loads(SectionLoads(problem));
  std::vector<double> key;
  for (const MemoryBlock& block : problem.blocks) {
    const double size = static_cast<double>(block.size);
    const double time = static_cast<double>(block.duration);
    const bool at_peak = block.begin <= peak && peak < block.end;
    switch (order) {
      case BlockOrder::kSize:
        key.push_back(size);
        break;
      case BlockOrder::kArea:
        key.push_back(size * time);
        break;
      case BlockOrder::kSizeLifetime:
        key.push_back(time * std::sqrt(size));
        break;
      case BlockOrder::kLifetime:
        key.push_back(time);
        break;
      case BlockOrder::kPeak:
        // Sizes are below 2^60.
        key.push_back(at_peak ? 0x1p61 + time * 0x1p9 : size);
        break;
      case BlockOrder::kSizeRoot:
        key.push_back(size * std::sqrt(time));
        break;
      case BlockOrder::kTightest:
        // The load decides, unless it is almost equal.
        key.push_back(
            std::pow(static_cast<double>(loads.Of(block.begin, block.end)) /
                         static_cast<double>(problem.lower_bound),
                     20) *
            time);
        break;
    }
  }
  std::vector<int> blocks(problem.blocks.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::stable_sort(blocks.begin(), blocks.end(),
                   [&](int a, int b) { return key[a] > key[b]; });
  return blocks;
}

Placer::Placer(const MemoryProblem& problem)
    : problem_(problem), overlaps_(problem) {
  Reset();
}

void Placer::Reset() {
  placed_.Clear();
  offsets_.assign(problem_.blocks.size(), kNotPlaced);
  for (size_t b = 0; b < problem_.blocks.size(); ++b) {
    const int64_t fixed = problem_.blocks[b].fixed;
    if (fixed != kNotPlaced) Place(static_cast<int>(b), fixed);
  }
}

PlacedBlock Placer::At(int b, int64_t offset) const {
  const MemoryBlock& block = problem_.blocks[b];
  return {offset, offset + block.size, block.begin, block.end, b};
}

void Placer::Place(int b, int64_t offset) {
  offsets_[b] = offset;
  placed_.Insert(At(b, offset));
}

void Placer::Remove(int b) {
  placed_.Remove(At(b, offsets_[b]));
  offsets_[b] = kNotPlaced;
}

// Sorting the neighbours takes longer than to walk past a few others, which
// often ends at the bottom of the arena.
int64_t Placer::LowestOffset(int b) {
  constexpr int kOthersPerNeighbour = 8;
  const int64_t neighbours = overlaps_.MostNeighbours(b);
  return static_cast<int64_t>(placed_.size()) < kOthersPerNeighbour * neighbours
             ? LowestByWalk(b)
             : LowestByNeighbours(b);
}

int64_t Placer::LowestByWalk(int b) const {
  const MemoryBlock& block = problem_.blocks[b];
  int64_t offset = 0;
  placed_.Walk([&](const PlacedBlock& placed) {
    if (placed.begin >= block.end || placed.end <= block.begin) return true;
    if (placed.offset - offset >= block.size) return false;
    offset = std::max(offset, placed.top);
    return true;
  });
  return offset;
}

int64_t Placer::LowestByNeighbours(int b) {
  taken_.clear();
  overlaps_.ForEach(b, [&](int c) {
    if (!IsPlaced(c)) return;
    taken_.emplace_back(offsets_[c], offsets_[c] + problem_.blocks[c].size);
  });
  std::sort(taken_.begin(), taken_.end());
  int64_t offset = 0;
  for (const auto& [begin, end] : taken_) {
    if (begin - offset >= problem_.blocks[b].size) break;
    offset = std::max(offset, end);
  }
  return offset;
}

int64_t HeightOf(const MemoryProblem& problem,
                 const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t b = 0; b < offsets.size(); ++b) {
    if (offsets[b] == kNotPlaced) continue;
    height = std::max(height, offsets[b] + problem.blocks[b].size);
  }
  return height;
}

}  // namespace optrail::graph
