#ifndef OPTRAIL_GRAPH_MEMORY_PROBLEM_H_
#define OPTRAIL_GRAPH_MEMORY_PROBLEM_H_

// The form of the input that the planning methods share.
//
// Time is cut into sections: one for every maximal set of blocks that are live
// at the same time. Two blocks overlap in time if and only if they share a
// section, and a block is live in consecutive sections, so nothing else about
// time matters. Blocks are sorted by their first section.

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace optrail::graph {

inline constexpr int64_t kNotPlaced = -1;

struct MemoryBlock {
  int begin = 0;  // first section
  int end = 0;    // behind the last section
  int64_t size = 0;
  int64_t fixed = kNotPlaced;  // the offset it must have, if any
  int64_t duration = 0;        // in the schedule's time, for orders
};

struct MemoryProblem {
  std::vector<MemoryBlock> blocks;
  int sections = 0;
  // Largest live sum of sizes, or the end of a fixed block.
  int64_t lower_bound = 0;
};

struct LifetimeBlock {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size = 0;
  int64_t fixed = kNotPlaced;
};

// `order[i]` is the index in `lifetimes` of block i. Sizes are positive.
MemoryProblem MakeProblem(const std::vector<LifetimeBlock>& lifetimes,
                          std::vector<int>* order);

// Finds the blocks that overlap a block in time, without a list of all pairs:
// a large model has hundreds of millions.
class OverlapIndex {
 public:
  explicit OverlapIndex(const MemoryProblem& problem);

  // At least as many as ForEach visits; in constant time.
  int64_t MostNeighbours(int b) const {
    const MemoryBlock& block = problem_.blocks[b];
    const int checkpoint = block.begin / kStride;
    return live_begin_[checkpoint + 1] - live_begin_[checkpoint] +
           first_block_[block.end] - first_block_[checkpoint * kStride];
  }

  // Calls visit(c) for every block c != b that shares a section with b.
  template <typename Visit>
  void ForEach(int b, Visit visit) const {
    const MemoryBlock& block = problem_.blocks[b];
    const int checkpoint = block.begin / kStride;
    for (int i = live_begin_[checkpoint]; i < live_begin_[checkpoint + 1];
         ++i) {
      const int c = live_[i];
      if (problem_.blocks[c].end > block.begin) visit(c);
    }
    const int first = first_block_[checkpoint * kStride];
    const int last = first_block_[block.end];
    for (int c = first; c < last; ++c) {
      if (problem_.blocks[c].end > block.begin && c != b) visit(c);
    }
  }

 private:
  // Every so many sections the live blocks that began before are listed.
  static constexpr int kStride = 8;

  const MemoryProblem& problem_;
  std::vector<int> first_block_;  // of each section, the first that begins
  std::vector<int> live_begin_;
  std::vector<int> live_;
};

// Processor time of this thread against a limit.
class ProcessorDeadline {
 public:
  explicit ProcessorDeadline(absl::Duration limit);
  bool Passed() const { return Left() <= absl::ZeroDuration(); }
  absl::Duration Used() const;
  absl::Duration Left() const { return limit_ - Used(); }
  // One that ends after `slice`, and not later than this one.
  ProcessorDeadline Slice(absl::Duration slice) const;

 private:
  int64_t start_ns_;
  absl::Duration limit_;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_MEMORY_PROBLEM_H_
