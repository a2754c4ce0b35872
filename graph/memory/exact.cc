#include "graph/memory/exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "graph/memory/failed_states.h"

namespace optrail::graph {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;
// Nodes of the shortest restart; Luby's sequence multiplies it.
constexpr int64_t kRestartNodes = 500;
constexpr int kOrders = 4;
// Spread of the random factor of a priority, as a logarithm.
constexpr double kNoise = 0.6;

// The i-th term (from 1) of 1 1 2 1 1 2 4 ... (Luby, Sinclair and Zuckerman,
// "Optimal speedup of Las Vegas algorithms", 1993).
int64_t Luby(int i) {
  for (;;) {
    int k = 1;
    while ((1 << k) - 1 < i) ++k;
    if ((1 << k) - 1 == i) return int64_t{1} << (k - 1);
    i -= (1 << (k - 1)) - 1;
  }
}

// Some unplaced blocks, best branch first, and the sections that they span.
struct Part {
  std::vector<int> blocks;
  int begin = 0;
  int end = 0;
};

class ExactSearch {
 public:
  ExactSearch(const MemoryProblem& problem, int64_t capacity,
              const ProcessorDeadline& deadline, uint64_t seed);

  ExactResult Run();

 private:
  // An overwritten value, to go back.
  struct Change {
    int64_t* place;
    int64_t value;
  };

  void Set(int64_t& place, int64_t value) {
    trail_.push_back({&place, place});
    place = value;
  }
  void UndoTo(size_t mark);

  std::vector<Part> Split(const Part& part) const;
  ExactOutcome SolvePart(Part part);
  std::vector<int> Order(const Part& part, int restart);
  bool SearchSplit(const Part& part);
  bool Search(const Part& part);
  bool Infer(const Part& part);
  bool LoadsFit(const Part& part);
  bool NoBlockFitsBelow(const Part& part) const;
  int ChooseSection(const Part& part) const;
  bool TryBlock(const Part& part, int section, int b);
  bool BreaksSymmetry(int section, int b) const;
  bool TryGap(const Part& part, int section);
  int64_t LowestNextTo(const Part& part, int section, int b) const;
  uint64_t Hash(const Part& part) const;

  const std::vector<MemoryBlock>& blocks_;
  const int sections_;
  const int64_t capacity_;
  const ProcessorDeadline& deadline_;
  Rng rng_;

  std::vector<std::vector<int>> blocks_at_;  // of each section
  std::vector<int64_t> floor_;               // nothing unplaced can start below
  std::vector<int64_t> top_;                 // the end of what is placed
  std::vector<int64_t> load_;                // the sum of unplaced sizes
  std::vector<int64_t> lowest_;              // of each block, its least offset
  std::vector<int64_t> topmost_;  // the block placed last, per section
  std::vector<int64_t> offset_;
  std::vector<bool> placed_;
  std::vector<int64_t> scratch_;  // per section
  std::vector<Change> trail_;
  FailedStates failed_;
  int64_t nodes_ = 0;
  int64_t node_limit_ = 0;
  bool aborted_ = false;
};

ExactSearch::ExactSearch(const MemoryProblem& problem, int64_t capacity,
                         const ProcessorDeadline& deadline, uint64_t seed)
    : blocks_(problem.blocks),
      sections_(problem.sections),
      capacity_(capacity),
      deadline_(deadline),
      rng_(seed),
      blocks_at_(sections_),
      floor_(sections_, 0),
      top_(sections_, 0),
      load_(sections_, 0),
      lowest_(blocks_.size(), 0),
      topmost_(sections_, -1),
      offset_(blocks_.size(), kNotPlaced),
      placed_(blocks_.size(), false),
      scratch_(sections_, 0) {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    lowest_[b] = std::max<int64_t>(0, blocks_[b].fixed);
    for (int s = blocks_[b].begin; s < blocks_[b].end; ++s) {
      blocks_at_[s].push_back(static_cast<int>(b));
      load_[s] += blocks_[b].size;
    }
  }
}

ExactResult ExactSearch::Run() {
  ExactResult result;
  result.outcome = ExactOutcome::kFound;
  Part all;
  all.blocks.resize(blocks_.size());
  std::iota(all.blocks.begin(), all.blocks.end(), 0);
  all.end = sections_;
  for (Part& part : Split(all)) {
    result.outcome = SolvePart(std::move(part));
    if (result.outcome != ExactOutcome::kFound) break;
  }
  result.nodes = nodes_;
  if (result.outcome == ExactOutcome::kFound) result.offsets = offset_;
  return result;
}

void ExactSearch::UndoTo(size_t mark) {
  while (trail_.size() > mark) {
    *trail_.back().place = trail_.back().value;
    trail_.pop_back();
  }
}

ExactOutcome ExactSearch::SolvePart(Part part) {
  for (int restart = 0; !deadline_.Passed(); ++restart) {
    part.blocks = Order(part, restart);
    node_limit_ = nodes_ + kRestartNodes * Luby(restart + 1);
    aborted_ = false;
    const size_t mark = trail_.size();
    if (Search(part)) return ExactOutcome::kFound;
    if (!aborted_) return ExactOutcome::kInfeasible;
    UndoTo(mark);
    for (const int b : part.blocks) placed_[b] = false;
  }
  return ExactOutcome::kTimeLimit;
}

// The first restarts use one plain order each; later ones disturb them.
std::vector<int> ExactSearch::Order(const Part& part, int restart) {
  std::vector<double> priority(blocks_.size());
  for (const int b : part.blocks) {
    const MemoryBlock& block = blocks_[b];
    const double width = block.end - block.begin;
    const double size = static_cast<double>(block.size);
    const double orders[kOrders] = {
        std::log(width) * 64 + std::log(size),  // width, then size
        std::log(static_cast<double>(block.duration)) + std::log(size),
        std::log(size),
        std::log(width) + std::log(size),
    };
    priority[b] = orders[restart % kOrders];
    if (restart >= kOrders) {
      const double scale = restart % kOrders == 0 ? 64 : 1;
      priority[b] += scale * kNoise * (2 * rng_.UniformReal() - 1);
    }
  }
  std::vector<int> order = part.blocks;
  std::sort(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return priority[a] > priority[b]; });
  return order;
}

// Parts with no section in common, the smallest first: if it is infeasible,
// that is known soonest.
std::vector<Part> ExactSearch::Split(const Part& part) const {
  std::vector<int> crossing(part.end - part.begin + 1, 0);
  for (const int b : part.blocks) {
    // Boundaries behind the first section, up to the one before the last.
    ++crossing[blocks_[b].begin + 1 - part.begin];
    --crossing[blocks_[b].end - part.begin];
  }
  std::vector<Part> parts;
  std::vector<int> part_of(part.end - part.begin, -1);
  int sum = 0;
  for (int s = part.begin; s < part.end; ++s) {
    sum += crossing[s - part.begin];
    if (load_[s] == 0) continue;
    if (sum == 0 || parts.empty()) {
      parts.emplace_back();
      parts.back().begin = s;
    }
    parts.back().end = s + 1;
    part_of[s - part.begin] = static_cast<int>(parts.size()) - 1;
  }
  for (const int b : part.blocks) {
    parts[part_of[blocks_[b].begin - part.begin]].blocks.push_back(b);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) {
                     return a.blocks.size() < b.blocks.size();
                   });
  return parts;
}

bool ExactSearch::SearchSplit(const Part& part) {
  for (const Part& piece : Split(part)) {
    if (!Search(piece)) return false;
  }
  return true;
}

bool ExactSearch::Search(const Part& part) {
  if (++nodes_ > node_limit_ || (nodes_ % 256 == 0 && deadline_.Passed())) {
    aborted_ = true;
    return false;
  }
  const size_t mark = trail_.size();
  uint64_t hash = 0;
  bool open = Infer(part) && LoadsFit(part) && NoBlockFitsBelow(part);
  if (open) {
    hash = Hash(part);
    open = !failed_.Contains(hash);
  }
  if (!open) {
    UndoTo(mark);
    return false;
  }
  const int section = ChooseSection(part);
  for (const int b : part.blocks) {
    if (blocks_[b].begin > section || blocks_[b].end <= section ||
        lowest_[b] != floor_[section] || BreaksSymmetry(section, b)) {
      continue;
    }
    if (TryBlock(part, section, b)) return true;
    if (aborted_) break;
  }
  if (!aborted_ && TryGap(part, section)) return true;
  if (!aborted_) failed_.Insert(hash);
  UndoTo(mark);
  return false;
}

// Raises floors and lowest offsets until nothing changes. False where a block
// or the load of a section no longer fits.
bool ExactSearch::Infer(const Part& part) {
  std::vector<int64_t>& least = scratch_;
  bool changed = true;
  while (changed) {
    changed = false;
    std::fill(least.begin() + part.begin, least.begin() + part.end, kNever);
    for (const int b : part.blocks) {
      const MemoryBlock& block = blocks_[b];
      int64_t lowest = lowest_[b];
      for (int s = block.begin; s < block.end; ++s) {
        lowest = std::max(lowest, floor_[s]);
      }
      if (lowest > lowest_[b]) {
        if (block.fixed != kNotPlaced) return false;
        Set(lowest_[b], lowest);
      }
      for (int s = block.begin; s < block.end; ++s) {
        least[s] = std::min(least[s], lowest);
      }
    }
    for (int s = part.begin; s < part.end; ++s) {
      if (least[s] != kNever && least[s] > floor_[s]) {
        Set(floor_[s], least[s]);
        changed = true;
      }
      if (floor_[s] + load_[s] > capacity_) return false;
    }
  }
  return true;
}

// For every section and height: what cannot start below the height fits above
// it. (The bound of one machine with release dates.)
bool ExactSearch::LoadsFit(const Part& part) {
  std::vector<std::pair<int64_t, int>> by_lowest;
  by_lowest.reserve(part.blocks.size());
  for (const int b : part.blocks) by_lowest.emplace_back(-lowest_[b], b);
  std::sort(by_lowest.begin(), by_lowest.end());
  std::vector<int64_t>& above = scratch_;
  std::fill(above.begin() + part.begin, above.begin() + part.end, 0);
  for (const auto& [negative, b] : by_lowest) {
    for (int s = blocks_[b].begin; s < blocks_[b].end; ++s) {
      above[s] += blocks_[b].size;
      if (above[s] - negative > capacity_) return false;
    }
  }
  return true;
}

// A block that fits into a gap below could be moved there, so another branch
// finds that placement.
bool ExactSearch::NoBlockFitsBelow(const Part& part) const {
  for (const int b : part.blocks) {
    if (blocks_[b].fixed != kNotPlaced) continue;
    int64_t bottom = 0, ceiling = kNever;
    for (int s = blocks_[b].begin; s < blocks_[b].end; ++s) {
      bottom = std::max(bottom, top_[s]);
      ceiling = std::min(ceiling, floor_[s]);
    }
    if (bottom + blocks_[b].size <= ceiling) return false;
  }
  return true;
}

uint64_t ExactSearch::Hash(const Part& part) const {
  uint64_t sum = 0;
  for (const int b : part.blocks) {
    sum += MixBits(MixBits(b + 1) + static_cast<uint64_t>(lowest_[b]));
  }
  // A gap decides what is dominated.
  for (int s = part.begin; s < part.end; ++s) {
    if (load_[s] > 0 && top_[s] < floor_[s]) {
      sum += MixBits(MixBits(~static_cast<uint64_t>(s)) +
                     static_cast<uint64_t>(top_[s]));
    }
  }
  return MixBits(sum);
}

// Returns the section in a valley of the skyline that has the fewest branches.
// A block of a valley that can start at its floor lies within the valley.
int ExactSearch::ChooseSection(const Part& part) const {
  int best = -1, best_branches = std::numeric_limits<int>::max();
  int64_t best_floor = kNever;
  for (int begin = part.begin, end; begin < part.end; begin = end) {
    end = begin;
    while (end < part.end && floor_[end] == floor_[begin]) ++end;
    if ((begin > part.begin && floor_[begin - 1] < floor_[begin]) ||
        (end < part.end && floor_[end] < floor_[begin])) {
      continue;
    }
    for (int s = begin; s < end; ++s) {
      int branches = floor_[s] + load_[s] < capacity_ ? 1 : 0;
      for (const int b : blocks_at_[s]) {
        if (!placed_[b] && lowest_[b] == floor_[s]) ++branches;
      }
      if (branches < best_branches ||
          (branches == best_branches && floor_[s] < best_floor)) {
        best = s;
        best_branches = branches;
        best_floor = floor_[s];
      }
    }
  }
  return best;
}

// Returns true if an equal block, or the block below with the same lifetime,
// makes this branch a copy of another.
bool ExactSearch::BreaksSymmetry(int section, int b) const {
  const MemoryBlock& block = blocks_[b];
  if (block.fixed != kNotPlaced) return false;
  const auto same_lifetime = [&](const MemoryBlock& other) {
    return other.fixed == kNotPlaced && other.begin == block.begin &&
           other.end == block.end;
  };
  for (const int c : blocks_at_[section]) {
    if (c < b && !placed_[c] && same_lifetime(blocks_[c]) &&
        blocks_[c].size == block.size && lowest_[c] == lowest_[b]) {
      return true;
    }
  }
  const int64_t below = topmost_[section];
  if (below < 0 || !same_lifetime(blocks_[below]) ||
      top_[section] != floor_[section]) {
    return false;
  }
  for (int s = block.begin; s < block.end; ++s) {
    if (topmost_[s] != below) return false;
  }
  return block.size > blocks_[below].size ||
         (block.size == blocks_[below].size && b < below);
}

bool ExactSearch::TryBlock(const Part& part, int section, int b) {
  const MemoryBlock& block = blocks_[b];
  const size_t mark = trail_.size();
  const int64_t offset = floor_[section];
  placed_[b] = true;
  offset_[b] = offset;
  for (int s = block.begin; s < block.end; ++s) {
    Set(floor_[s], offset + block.size);
    Set(top_[s], offset + block.size);
    Set(load_[s], load_[s] - block.size);
    Set(topmost_[s], b);
  }
  Part rest;
  rest.begin = part.begin;
  rest.end = part.end;
  rest.blocks.reserve(part.blocks.size());
  for (const int c : part.blocks) {
    if (c != b) rest.blocks.push_back(c);
  }
  if (SearchSplit(rest)) return true;
  // Pieces that were solved before another one failed are unplaced again.
  for (const int c : part.blocks) placed_[c] = false;
  UndoTo(mark);
  return false;
}

// The least offset of b if it is the next block above a gap in `section`: it
// rests on a block that is not in that section.
int64_t ExactSearch::LowestNextTo(const Part& part, int section, int b) const {
  if (lowest_[b] > floor_[section]) return lowest_[b];
  if (blocks_[b].fixed != kNotPlaced) return kNever;
  int64_t lowest = kNever;
  for (const int c : part.blocks) {
    if (c == b || blocks_[c].begin >= blocks_[b].end ||
        blocks_[c].end <= blocks_[b].begin ||
        (blocks_[c].begin <= section && section < blocks_[c].end)) {
      continue;
    }
    lowest = std::min(lowest, lowest_[c] + blocks_[c].size);
  }
  return lowest;
}

// Nothing stands at the floor of the section.
bool ExactSearch::TryGap(const Part& part, int section) {
  if (floor_[section] + load_[section] >= capacity_) return false;
  std::vector<std::pair<int, int64_t>> next;
  int64_t floor = kNever;
  for (const int b : blocks_at_[section]) {
    if (placed_[b]) continue;
    next.emplace_back(b, LowestNextTo(part, section, b));
    floor = std::min(floor, next.back().second);
  }
  if (floor + load_[section] > capacity_) return false;
  const size_t mark = trail_.size();
  bool fits = true;
  for (const auto& [b, offset] : next) {
    int64_t lowest = offset;  // b is the next one, or above the next one
    for (const auto& [c, other] : next) {
      if (c != b) lowest = std::min(lowest, other + blocks_[c].size);
    }
    if (lowest > capacity_ - blocks_[b].size ||
        (blocks_[b].fixed != kNotPlaced && lowest > blocks_[b].fixed)) {
      fits = false;
      break;
    }
    if (lowest > lowest_[b]) Set(lowest_[b], lowest);
  }
  if (fits) {
    Set(floor_[section], floor);
    if (Search(part)) return true;
  }
  UndoTo(mark);
  return false;
}

}  // namespace

ExactResult SearchExactly(const MemoryProblem& problem, int64_t capacity,
                          const ProcessorDeadline& deadline, uint64_t seed) {
  if (capacity < problem.lower_bound) {
    ExactResult result;
    result.outcome = ExactOutcome::kInfeasible;
    return result;
  }
  return ExactSearch(problem, capacity, deadline, seed).Run();
}

}  // namespace optrail::graph
