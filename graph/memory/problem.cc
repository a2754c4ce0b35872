#include "graph/memory/problem.h"

#include <time.h>

#include <algorithm>
#include <numeric>

namespace optrail::graph {
namespace {

int64_t ThreadNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

std::vector<int64_t> SortedUnique(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The starts after which a block ends before another begins: there, and only
// there, the set of live blocks is maximal.
std::vector<int64_t> SectionTimes(const std::vector<LifetimeBlock>& blocks) {
  std::vector<int64_t> lowers, uppers;
  for (const LifetimeBlock& block : blocks) {
    lowers.push_back(block.lower);
    uppers.push_back(block.upper);
  }
  lowers = SortedUnique(std::move(lowers));
  uppers = SortedUnique(std::move(uppers));
  std::vector<int64_t> times;
  for (size_t i = 0; i < lowers.size(); ++i) {
    const auto end = std::upper_bound(uppers.begin(), uppers.end(), lowers[i]);
    if (i + 1 == lowers.size() || *end <= lowers[i + 1]) {
      times.push_back(lowers[i]);
    }
  }
  return times;
}

}  // namespace

MemoryProblem MakeProblem(const std::vector<LifetimeBlock>& lifetimes,
                          std::vector<int>* order) {
  const std::vector<int64_t> times = SectionTimes(lifetimes);
  const auto section = [&](int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) -
                            times.begin());
  };
  order->resize(lifetimes.size());
  std::iota(order->begin(), order->end(), 0);
  std::stable_sort(order->begin(), order->end(), [&](int a, int b) {
    return lifetimes[a].lower < lifetimes[b].lower;
  });
  MemoryProblem problem;
  problem.sections = static_cast<int>(times.size());
  std::vector<int64_t> change(times.size() + 1, 0);
  for (const int i : *order) {
    const LifetimeBlock& from = lifetimes[i];
    MemoryBlock block;
    block.begin = section(from.lower);
    block.end = section(from.upper);
    block.size = from.size;
    block.fixed = from.fixed;
    block.duration = from.upper - from.lower;
    change[block.begin] += block.size;
    change[block.end] -= block.size;
    if (block.fixed != kNotPlaced) {
      problem.lower_bound =
          std::max(problem.lower_bound, block.fixed + block.size);
    }
    problem.blocks.push_back(block);
  }
  int64_t load = 0;
  for (const int64_t delta : change) {
    load += delta;
    problem.lower_bound = std::max(problem.lower_bound, load);
  }
  return problem;
}

OverlapIndex::OverlapIndex(const MemoryProblem& problem) : problem_(problem) {
  const std::vector<MemoryBlock>& blocks = problem.blocks;
  first_block_.assign(problem.sections + 1, static_cast<int>(blocks.size()));
  for (int b = static_cast<int>(blocks.size()) - 1; b >= 0; --b) {
    first_block_[blocks[b].begin] = b;
  }
  for (int s = problem.sections - 1; s >= 0; --s) {
    first_block_[s] = std::min(first_block_[s], first_block_[s + 1]);
  }
  std::vector<int> live;
  for (int s = 0; s < problem.sections; s += kStride) {
    if (s > 0) {
      for (int b = first_block_[s - kStride]; b < first_block_[s]; ++b) {
        live.push_back(b);
      }
    }
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&](int b) { return blocks[b].end <= s; }),
               live.end());
    live_begin_.push_back(static_cast<int>(live_.size()));
    live_.insert(live_.end(), live.begin(), live.end());
  }
  live_begin_.push_back(static_cast<int>(live_.size()));
}

ProcessorDeadline::ProcessorDeadline(absl::Duration limit)
    : start_ns_(ThreadNs()), limit_(limit) {}

absl::Duration ProcessorDeadline::Used() const {
  return absl::Nanoseconds(ThreadNs() - start_ns_);
}

ProcessorDeadline ProcessorDeadline::Slice(absl::Duration slice) const {
  return ProcessorDeadline(std::min(slice, Left()));
}

}  // namespace optrail::graph
