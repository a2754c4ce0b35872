#include "graph/memory/ejection.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/random.h"

namespace optrail::graph {
namespace {

class Ejection {
 public:
  Ejection(const MemoryProblem& problem, int64_t limit, uint64_t seed,
           Placer* placer)
      : problem_(problem), limit_(limit), rng_(seed), placer_(*placer) {
    for (const MemoryBlock& block : problem.blocks) {
      weight_.push_back(static_cast<double>(block.size) *
                        (block.end - block.begin));
    }
    failures_.assign(problem.blocks.size(), 1);
  }

  // False where the time ran out.
  bool FirstFit(const std::vector<int>& order,
                const ProcessorDeadline& deadline);
  // The fewest blocks that were unplaced.
  int Run(const ProcessorDeadline& deadline);

 private:
  bool TryPlace(int b);
  bool Insert(int b);
  int64_t CheapestOffset(int b);
  int TakeFromPool();

  const MemoryProblem& problem_;
  const int64_t limit_;
  Rng rng_;
  Placer& placer_;
  std::vector<double> weight_;
  std::vector<double> failures_;
  std::vector<int> pool_;  // blocks that are not placed
  bool latest_first_ = false;
  // Scratch: {offset, weight} of the placed neighbours, and offsets to try.
  std::vector<std::pair<int64_t, double>> begins_, ends_;
  std::vector<int64_t> candidates_;
};

bool Ejection::TryPlace(int b) {
  const int64_t offset = placer_.LowestOffset(b);
  if (offset + problem_.blocks[b].size > limit_) return false;
  placer_.Place(b, offset);
  return true;
}

bool Ejection::FirstFit(const std::vector<int>& order,
                        const ProcessorDeadline& deadline) {
  placer_.Reset();
  int count = 0;
  for (const int b : order) {
    if (++count % 64 == 0 && deadline.Passed()) return false;
    if (!placer_.IsPlaced(b) && !TryPlace(b)) pool_.push_back(b);
  }
  return true;
}

// The offset where the blocks in the way have the least weight. A best offset
// touches a neighbour, the bottom or the limit.
int64_t Ejection::CheapestOffset(int b) {
  const int64_t size = problem_.blocks[b].size;
  begins_.clear();
  ends_.clear();
  candidates_ = {0, limit_ - size};
  placer_.overlaps().ForEach(b, [&](int c) {
    if (!placer_.IsPlaced(c)) return;
    const double weight = problem_.blocks[c].fixed != kNotPlaced
                              ? std::numeric_limits<float>::max()
                              : weight_[c] * failures_[c];
    const int64_t begin = placer_.offsets()[c];
    const int64_t end = begin + problem_.blocks[c].size;
    begins_.emplace_back(begin, weight);
    ends_.emplace_back(end, weight);
    if (begin >= size) candidates_.push_back(begin - size);
    if (end + size <= limit_) candidates_.push_back(end);
  });
  std::sort(begins_.begin(), begins_.end());
  std::sort(ends_.begin(), ends_.end());
  std::sort(candidates_.begin(), candidates_.end());
  // Weight in the way = what begins below the block's end - what ends below
  // its begin.
  double below_end = 0, below_begin = 0;
  double least = std::numeric_limits<double>::infinity();
  size_t i = 0, j = 0;
  int64_t best = 0, ties = 0;
  for (const int64_t offset : candidates_) {
    while (i < begins_.size() && begins_[i].first < offset + size) {
      below_end += begins_[i++].second;
    }
    while (j < ends_.size() && ends_[j].first <= offset) {
      below_begin += ends_[j++].second;
    }
    const double weight = below_end - below_begin;
    if (weight < least * (1 - 1e-9)) {
      least = weight;
      best = offset;
      ties = 1;
    } else if (weight <= least * (1 + 1e-9) && rng_.UniformInt(++ties) == 0) {
      best = offset;
    }
  }
  return best;
}

// False where only fixed blocks are in the way.
bool Ejection::Insert(int b) {
  if (TryPlace(b)) return true;
  failures_[b] += 1;
  const int64_t offset = CheapestOffset(b);
  const int64_t end = offset + problem_.blocks[b].size;
  bool possible = true;
  placer_.overlaps().ForEach(b, [&](int c) {
    const int64_t other = placer_.offsets()[c];
    if (other == kNotPlaced || other >= end ||
        other + problem_.blocks[c].size <= offset) {
      return;
    }
    if (problem_.blocks[c].fixed != kNotPlaced) {
      possible = false;
      return;
    }
    placer_.Remove(c);
    pool_.push_back(c);
  });
  if (possible) placer_.Place(b, offset);
  return possible;
}

int Ejection::TakeFromPool() {
  size_t k = pool_.size() - 1;
  if (!latest_first_) {
    for (size_t i = 0; i < pool_.size(); ++i) {
      if (weight_[pool_[i]] > weight_[pool_[k]]) k = i;
    }
  }
  std::swap(pool_[k], pool_.back());
  const int b = pool_.back();
  pool_.pop_back();
  return b;
}

int Ejection::Run(const ProcessorDeadline& deadline) {
  latest_first_ = rng_.UniformInt(2) == 0;
  size_t fewest = pool_.size();
  while (!pool_.empty()) {
    if (deadline.Passed() || !Insert(TakeFromPool())) break;
    fewest = std::min(fewest, pool_.size());
  }
  return static_cast<int>(fewest);
}

}  // namespace

int Eject(const MemoryProblem& problem, int64_t limit,
          const std::vector<int>& order, const ProcessorDeadline& deadline,
          uint64_t seed, Placer* placer) {
  const int blocks = static_cast<int>(problem.blocks.size());
  for (const MemoryBlock& block : problem.blocks) {
    if (block.size > limit) return blocks;
  }
  Ejection ejection(problem, limit, seed, placer);
  if (!ejection.FirstFit(order, deadline)) return blocks;
  return ejection.Run(deadline);
}

}  // namespace optrail::graph
