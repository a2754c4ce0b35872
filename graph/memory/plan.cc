#include "graph/memory/plan.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "graph/memory/check.h"
#include "graph/memory/ejection.h"
#include "graph/memory/exact.h"
#include "graph/memory/greedy.h"
#include "graph/memory/problem.h"

namespace optrail::graph {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 60;

// The buffers as blocks: those of a group are one, empty ones are left out.
struct Blocks {
  std::vector<LifetimeBlock> lifetimes;
  std::vector<int> block_of;  // of each buffer; -1: it is empty
};

absl::Status BufferError(const MemoryBuffer& buffer, absl::string_view field,
                         int64_t value, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("buffer \"", buffer.id,
                                                 "\": ", field, " ", value,
                                                 ", expected ", expected));
}

absl::Status CheckBuffer(const MemoryBuffer& buffer, int64_t alignment) {
  if (buffer.lower >= buffer.upper) {
    return BufferError(buffer, "lower", buffer.lower,
                       absl::StrCat("less than its upper ", buffer.upper));
  }
  // Their difference must not overflow.
  for (const int64_t time : {buffer.lower, buffer.upper}) {
    if (time >= -kMostBytes && time <= kMostBytes) continue;
    return BufferError(buffer, "time", time, "-2^60 to 2^60");
  }
  if (buffer.size_bytes < 0 || buffer.size_bytes > kMostBytes) {
    return BufferError(buffer, "size", buffer.size_bytes,
                       absl::StrCat("0 to ", kMostBytes));
  }
  if (!buffer.fixed_offset.has_value()) return absl::OkStatus();
  const int64_t fixed = *buffer.fixed_offset;
  if (fixed < 0 || fixed > kMostBytes || fixed % alignment != 0) {
    return BufferError(
        buffer, "fixed offset", fixed,
        absl::StrCat("a multiple of ", alignment, " from 0 to ", kMostBytes));
  }
  return absl::OkStatus();
}

absl::Status MergeIntoGroup(const MemoryBuffer& buffer, int64_t size,
                            LifetimeBlock* block) {
  if (buffer.fixed_offset.has_value()) {
    if (block->fixed != kNotPlaced && block->fixed != *buffer.fixed_offset) {
      return BufferError(buffer, "fixed offset", *buffer.fixed_offset,
                         absl::StrCat(block->fixed, " as others of group \"",
                                      buffer.group, "\""));
    }
    block->fixed = *buffer.fixed_offset;
  }
  block->lower = std::min(block->lower, buffer.lower);
  block->upper = std::max(block->upper, buffer.upper);
  block->size = std::max(block->size, size);
  return absl::OkStatus();
}

absl::StatusOr<Blocks> MakeBlocks(const std::vector<MemoryBuffer>& buffers,
                                  int64_t alignment) {
  Blocks blocks;
  absl::flat_hash_map<std::string, int> groups;
  int64_t sum = 0;
  for (const MemoryBuffer& buffer : buffers) {
    OPTRAIL_RETURN_IF_ERROR(CheckBuffer(buffer, alignment));
    // Offsets that are sums of such sizes are aligned.
    const int64_t size =
        (buffer.size_bytes + alignment - 1) / alignment * alignment;
    sum += size;
    if (sum > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer \"", buffer.id,
                       "\": the sizes up to it add up to more than 2^60 "
                       "bytes, expected less"));
    }
    int block = static_cast<int>(blocks.lifetimes.size());
    if (!buffer.group.empty()) {
      block = groups.emplace(buffer.group, block).first->second;
    } else if (size == 0) {
      block = -1;
    }
    blocks.block_of.push_back(block);
    if (block < 0) continue;
    if (block == static_cast<int>(blocks.lifetimes.size())) {
      blocks.lifetimes.push_back({buffer.lower, buffer.upper, size,
                                  buffer.fixed_offset.value_or(kNotPlaced)});
    } else {
      OPTRAIL_RETURN_IF_ERROR(
          MergeIntoGroup(buffer, size, &blocks.lifetimes[block]));
    }
  }
  for (LifetimeBlock& block : blocks.lifetimes) {
    block.size = std::max(block.size, alignment);  // a group of empty buffers
  }
  return blocks;
}

// Tries one method after another and keeps the best placement.
class Planner {
 public:
  Planner(const MemoryProblem& problem, const MemoryPlanOptions& options,
          const ProcessorDeadline& deadline)
      : problem_(problem),
        options_(options),
        deadline_(deadline),
        placer_(problem),
        lower_bound_(problem.lower_bound) {}

  void Run();

  const std::vector<int64_t>& offsets() const { return best_; }
  MemoryPlan Summary() const;

 private:
  bool Done() const {
    return height_ <= lower_bound_ ||
           (options_.capacity_bytes.has_value() &&
            (height_ <= *options_.capacity_bytes ||
             lower_bound_ > *options_.capacity_bytes));
  }
  bool TimeIsUp() const { return deadline_.Passed(); }
  // A limit between the lower bound and the capacity.
  int64_t Aligned(int64_t limit) const {
    return std::max(lower_bound_, limit / options_.alignment_bytes *
                                      options_.alignment_bytes);
  }
  int64_t Capacity() const {
    return options_.capacity_bytes.value_or(kMostBytes) /
           options_.alignment_bytes * options_.alignment_bytes;
  }
  void Keep(const std::vector<int64_t>& offsets, absl::string_view method);
  void TryOrders();
  void FitOrder(BlockOrder order);
  int64_t NextLimit(int round) const;
  void SearchWithin(int64_t limit, absl::Duration slice);
  int NextOrder() const;
  bool EjectAbove(int64_t limit, int round, absl::Duration slice);
  void Eject();

  const MemoryProblem& problem_;
  const MemoryPlanOptions& options_;
  const ProcessorDeadline& deadline_;
  Placer placer_;
  std::vector<int64_t> best_;
  int64_t height_ = std::numeric_limits<int64_t>::max();
  int64_t lower_bound_;
  std::string method_;
  int64_t nodes_ = 0;
  // How many blocks each order left over, worse after each failure.
  double promise_[kNumBlockOrders] = {};
};

void Planner::Keep(const std::vector<int64_t>& offsets,
                   absl::string_view method) {
  const int64_t height = HeightOf(problem_, offsets);
  if (height >= height_) return;
  height_ = height;
  best_ = offsets;
  method_ = std::string(method);
}

void Planner::FitOrder(BlockOrder order) {
  placer_.Reset();
  int count = 0;
  for (const int b : OrderBlocks(problem_, order)) {
    // The first order gives a placement however little time there is.
    if (!best_.empty() && ++count % 64 == 0 && TimeIsUp()) return;
    if (!placer_.IsPlaced(b)) placer_.Place(b, placer_.LowestOffset(b));
  }
  Keep(placer_.offsets(), BlockOrderName(order));
}

void Planner::TryOrders() {
  for (const BlockOrder order : kBlockOrders) {
    FitOrder(order);
    // The rest of the time is for the searches, which gain more.
    if (Done() || deadline_.Used() > options_.time_limit / 3) return;
  }
}

// Where the exact search looks next between what is proven and what is found:
// at the bound, then halfway, then closer to what is found.
int64_t Planner::NextLimit(int round) const {
  const int64_t best = std::min(height_ - 1, Capacity());
  const int64_t part = (best - lower_bound_) >> (round % 6);
  return Aligned(round % 6 == 0 ? lower_bound_ : best - part);
}

void Planner::SearchWithin(int64_t limit, absl::Duration slice) {
  const ExactResult result =
      SearchExactly(problem_, limit, deadline_.Slice(slice), options_.seed);
  nodes_ += result.nodes;
  if (result.outcome == ExactOutcome::kFound) {
    Keep(result.offsets, "branch and bound");
  } else if (result.outcome == ExactOutcome::kInfeasible) {
    lower_bound_ = std::min(height_, limit + options_.alignment_bytes);
  }
}

// The order that came closest to a placement, unless it was tried often.
int Planner::NextOrder() const {
  int best = 0;
  for (int i = 1; i < kNumBlockOrders; ++i) {
    if (promise_[i] < promise_[best]) best = i;
  }
  return best;
}

bool Planner::EjectAbove(int64_t limit, int round, absl::Duration slice) {
  const int i = NextOrder();
  const BlockOrder order = kBlockOrders[i];
  const int unplaced =
      graph::Eject(problem_, limit, OrderBlocks(problem_, order),
                   deadline_.Slice(slice), options_.seed + round, &placer_);
  if (unplaced == 0) {
    Keep(placer_.offsets(),
         absl::StrCat(BlockOrderName(order), ", then ejection"));
    promise_[i] = 0;
  } else {
    promise_[i] = std::max<double>(unplaced, promise_[i] * 1.5);
  }
  return unplaced == 0;
}

// Halves the distance to the lower bound. Where that fails it asks for less,
// and begins again with more time where it asked for almost nothing.
void Planner::Eject() {
  const bool fixed_limit = options_.capacity_bytes.has_value();
  absl::Duration slice = std::max(deadline_.Used() / 4, absl::Milliseconds(50));
  double share = 0.5;
  int failures = 0;
  for (int round = 0; !Done() && !TimeIsUp(); ++round) {
    const double gap = static_cast<double>(height_ - lower_bound_);
    int64_t limit =
        fixed_limit ? Capacity()
                    : Aligned(lower_bound_ + static_cast<int64_t>(gap * share));
    // So close that only the bound itself is of interest.
    if (gap * 10000 < static_cast<double>(lower_bound_)) limit = lower_bound_;
    if (EjectAbove(limit, round, slice)) {
      failures = 0;
    } else if (++failures % kNumBlockOrders == 0) {
      share = share > 0.9 ? 0.5 : (1 + share) / 2;
      slice *= 1.5;
    }
  }
}

void Planner::Run() {
  TryOrders();
  if (problem_.blocks.size() > kMostExactBuffers) {
    Eject();
    return;
  }
  const bool fixed_limit = options_.capacity_bytes.has_value();
  for (int round = 0; !Done() && !TimeIsUp(); ++round) {
    SearchWithin(fixed_limit ? Capacity() : NextLimit(round),
                 fixed_limit ? deadline_.Left()
                             : absl::Milliseconds(200) * (1 + round / 6));
  }
}

MemoryPlan Planner::Summary() const {
  MemoryPlan plan;
  plan.arena_bytes = height_;
  plan.lower_bound_bytes = lower_bound_;
  plan.method = method_;
  plan.search_nodes = nodes_;
  const auto& capacity = options_.capacity_bytes;
  if (capacity.has_value() && lower_bound_ > *capacity) {
    plan.proof = PlanProof::kInfeasible;
  } else if (height_ <= lower_bound_) {
    plan.proof = PlanProof::kMinimal;
  } else if (capacity.has_value() && height_ <= *capacity) {
    plan.proof = PlanProof::kFits;
  }
  return plan;
}

absl::Status CheckOptions(const MemoryPlanOptions& options) {
  const int64_t alignment = options.alignment_bytes;
  if (alignment < 1 || alignment > (int64_t{1} << 30) ||
      (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "alignment ", alignment, ", expected a power of two from 1 to 2^30"));
  }
  if (options.capacity_bytes.value_or(0) < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "capacity ", *options.capacity_bytes, ", expected at least 0 bytes"));
  }
  if (options.time_limit < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("time limit ", absl::FormatDuration(options.time_limit),
                     ", expected at least 0"));
  }
  return absl::OkStatus();
}

// Fixed buffers may rule each other out.
absl::Status CheckFixed(const std::vector<MemoryBuffer>& buffers,
                        const Blocks& blocks, int64_t alignment) {
  std::vector<MemoryBuffer> fixed;
  std::vector<int64_t> offsets;
  std::vector<bool> seen(blocks.lifetimes.size(), false);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int b = blocks.block_of[i];
    if (b < 0 || seen[b] || blocks.lifetimes[b].fixed == kNotPlaced) continue;
    seen[b] = true;
    const LifetimeBlock& block = blocks.lifetimes[b];
    fixed.push_back(buffers[i]);
    fixed.back().group.clear();
    fixed.back().lower = block.lower;
    fixed.back().upper = block.upper;
    fixed.back().size_bytes = block.size;
    fixed.back().fixed_offset = block.fixed;
    offsets.push_back(block.fixed);
  }
  const absl::Status status =
      CheckPlan(fixed, offsets, 2 * kMostBytes, alignment);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("fixed offsets: ", status.message()));
}

}  // namespace

absl::StatusOr<MemoryPlan> Plan(const std::vector<MemoryBuffer>& buffers,
                                const MemoryPlanOptions& options) {
  OPTRAIL_RETURN_IF_ERROR(CheckOptions(options));
  const ProcessorDeadline deadline(options.time_limit);
  OPTRAIL_ASSIGN_OR_RETURN(const Blocks blocks,
                           MakeBlocks(buffers, options.alignment_bytes));
  OPTRAIL_RETURN_IF_ERROR(CheckFixed(buffers, blocks, options.alignment_bytes));
  std::vector<int> order;
  const MemoryProblem problem = MakeProblem(blocks.lifetimes, &order);
  Planner planner(problem, options, deadline);
  planner.Run();
  MemoryPlan plan = planner.Summary();
  std::vector<int64_t> offset_of(blocks.lifetimes.size(), 0);
  for (size_t b = 0; b < order.size(); ++b) {
    offset_of[order[b]] = planner.offsets()[b];
  }
  for (const int block : blocks.block_of) {
    plan.offsets.push_back(block < 0 ? 0 : offset_of[block]);
  }
  plan.processor_time = deadline.Used();
  const absl::Status check = CheckPlan(buffers, plan.offsets, plan.arena_bytes,
                                       options.alignment_bytes);
  OPTRAIL_CHECK(check.ok()) << check.message();
  return plan;
}

std::string PlanProofName(PlanProof proof) {
  switch (proof) {
    case PlanProof::kMinimal:
      return "minimal";
    case PlanProof::kFits:
      return "fits";
    case PlanProof::kInfeasible:
      return "infeasible";
    case PlanProof::kNone:
      return "none";
  }
  return "none";
}

}  // namespace optrail::graph
