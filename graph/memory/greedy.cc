#include "graph/memory/greedy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace optrail::graph {
namespace {

int HeaviestSection(const MemoryProblem& problem) {
  std::vector<int64_t> change(problem.sections + 1, 0);
  for (const MemoryBlock& block : problem.blocks) {
    change[block.begin] += block.size;
    change[block.end] -= block.size;
  }
  int heaviest = 0;
  int64_t load = 0, most = 0;
  for (int s = 0; s < problem.sections; ++s) {
    load += change[s];
    if (load > most) {
      most = load;
      heaviest = s;
    }
  }
  return heaviest;
}

}  // namespace

const char* BlockOrderName(BlockOrder order) {
  switch (order) {
    case BlockOrder::kSize:
      return "first fit by size";
    case BlockOrder::kArea:
      return "first fit by area";
    case BlockOrder::kSizeLifetime:
      return "first fit by lifetime and size";
    case BlockOrder::kLifetime:
      return "first fit by lifetime";
    case BlockOrder::kPeak:
      return "first fit from the peak";
    case BlockOrder::kSizeRoot:
      return "first fit by size and lifetime";
  }
  return "";
}

std::vector<int> OrderBlocks(const MemoryProblem& problem, BlockOrder order) {
  const int peak = HeaviestSection(problem);
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
  offsets_.clear();
  for (const MemoryBlock& block : problem_.blocks) {
    offsets_.push_back(block.fixed);
  }
}

int64_t Placer::LowestOffset(int b) {
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
