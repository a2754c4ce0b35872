// Rules that mark loops of one stage: as vectors, unrolled, parallel.

#include "tuning/schedule/loop_rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tuning/schedule/rule.h"

namespace optrail::tuning {

using Origin = StagePlan::Origin;
using Where = StagePlan::Where;

int VectorAxis(const Program& program, int s) {
  const std::vector<int>& storage = program.plan(s).storage;
  const bool by_storage =
      !storage.empty() && program.plan(s).origin == Origin::kRfactor;
  return by_storage ? storage[0] : 0;
}

int64_t NearestBelow(const std::vector<int64_t>& options, int64_t wanted) {
  int64_t best = options[0];
  for (const int64_t option : options) {
    if (option <= wanted && (option > best || best > wanted)) best = option;
  }
  return best;
}

bool MergesPartialResults(const Program& program, int s) {
  const Definition& last = program.stage(s).definitions.back();
  return last.reads.size() == 1 && !last.reads[0].of_input &&
         last.reductions.size() == 1 &&
         program.plan(last.reads[0].source).origin == Origin::kRfactor;
}

namespace {

// Partial results that are added up become vectors, else the innermost loop
// over the contiguous axis.
class Vectorize : public SketchRule {
 public:
  std::string name() const override { return "vectorize"; }
  int version() const override { return 2; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    const int axis = VectorAxis(program, s);
    const int last = static_cast<int>(plan.nests.size()) - 1;
    const Loop* const loop = InnerLoop(program, s, last, axis);
    // Whole vectors only, but where a tail can be shifted inwards.
    std::vector<int64_t> options;
    for (const int64_t lanes : {4, 8, 16, 32}) {
      if (loop != nullptr &&
          (loop->extent % lanes == 0 ||
           (plan.nests.size() == 1 && loop->extent >= lanes))) {
        options.push_back(lanes);
      }
    }
    if (MergeAsLanes(s, last, decisions, program) || options.empty()) return;
    // Short ones only where there is nothing better.
    if (options.size() > 2) options.erase(options.begin());
    options.push_back(0);
    const int64_t usual = 64 / program.stage(s).element_bytes;
    std::vector<int64_t> drawn(options.begin(), options.end() - 1);
    drawn.insert(drawn.end(), 8, NearestBelow(drawn, usual));
    const int64_t lanes = decisions.Choose(DecisionName(s, "lanes"), options,
                                           NearestBelow(options, usual), drawn);
    if (lanes == 0) return;
    for (int d = 0; d <= last; ++d) {
      const Loop* const inner = InnerLoop(program, s, d, axis);
      if (inner == nullptr) continue;
      const bool fits = d == last || inner->extent % lanes == 0;
      if (!fits) continue;
      if (inner->extent == lanes) {
        program.Mark(s, d, std::string(inner->name), LoopKind::kVector);
        continue;
      }
      const LoopNames names =
          program.Split(s, d, std::string(inner->name), lanes);
      program.Mark(s, d, names.inner, LoopKind::kVector);
    }
  }

 private:
  // Partial results are added up pair by pair, not one after the other.
  static bool MergeAsLanes(int s, int d, Decisions& decisions,
                           Program& program) {
    if (!MergesPartialResults(program, s)) return false;
    const auto axes = static_cast<int>(program.stage(s).extents.size());
    const Nest& nest = program.nest(s, d);
    const auto loop =
        std::find_if(nest.begin(), nest.end(),
                     [&](const Loop& loop) { return loop.axis == axes; });
    const bool is_power =
        loop != nest.end() && (loop->extent & (loop->extent - 1)) == 0;
    if (!is_power) return false;
    if (decisions.Choose(DecisionName(s, "merge"), {0, 1}, 1,
                         {0, 1, 1, 1, 1, 1}) == 0) {
      return false;
    }
    program.Mark(s, d, std::string(loop->name), LoopKind::kVector);
    return true;
  }

  static const Loop* InnerLoop(const Program& program, int s, int d, int axis) {
    const Nest& nest = program.nest(s, d);
    for (auto loop = nest.rbegin(); loop != nest.rend(); ++loop) {
      if (loop->axis == axis) return &*loop;
    }
    return nullptr;
  }
};

// What is left of the innermost level becomes straight code, so that sums stay
// in registers.
class Unroll : public SketchRule {
 public:
  std::string name() const override { return "unroll"; }
  int version() const override { return 3; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    // Code grows most where vectors are taken apart, and what keeps no sums
    // gains little.
    const int last = static_cast<int>(plan.nests.size()) - 1;
    const bool sums = program.stage(s).HasReduction() ||
                      plan.origin == Origin::kCacheWrite ||
                      program.ReadsReduction(s);
    const int64_t most_unrolled = Gathers(program, s, last) ? 8
                                  : sums                    ? kMostUnrolled
                                                            : 16;
    if (CountOf(program, s, last) == 1) return;
    if (CountOf(program, s, last) > most_unrolled) return;
    if (decisions.Choose(DecisionName(s, "unroll"), {0, 1}, 1,
                         {0, 1, 1, 1, 1, 1, 1, 1}) == 0) {
      return;
    }
    for (int d = 0; d <= last; ++d) {
      if (CountOf(program, s, d) > most_unrolled) continue;
      const Nest nest = program.nest(s, d);
      for (const Loop& loop : nest) {
        if (IsCandidate(loop)) {
          program.Mark(s, d, loop.name, LoopKind::kUnrolled);
        }
      }
    }
  }

 private:
  // Returns true if vectors are gathered from elements that are not contiguous.
  static bool Gathers(const Program& program, int s, int d) {
    const StagePlan& plan = program.plan(s);
    if (!plan.storage.empty() && plan.origin == Origin::kCacheRead) return true;
    const auto axis = static_cast<size_t>(VectorAxis(program, s));
    for (const Access& access : program.stage(s).definitions[d].reads) {
      for (size_t i = 0; i < access.dims.size(); ++i) {
        const AccessIndex& index = access.dims[i];
        if (!index.affine || axis >= index.coefficients.size()) continue;
        const int64_t step = index.coefficients[axis];
        if (step != 0 && (i > 0 || std::abs(step) > 1)) return true;
      }
    }
    return false;
  }

  static bool IsCandidate(const Loop& loop) {
    return loop.kind == LoopKind::kSerial && loop.level == kInner &&
           loop.extent > 1;
  }
  static int64_t CountOf(const Program& program, int s, int d) {
    int64_t count = 1;
    const int64_t vector = 64 / program.stage(s).element_bytes;
    for (const Loop& loop : program.nest(s, d)) {
      if (IsCandidate(loop)) count *= loop.extent;
      if (loop.kind == LoopKind::kVector && loop.extent > vector) {
        count *= loop.extent / vector;
      }
      if (count > (1 << 20)) break;
    }
    // A logarithm or an error function is a page of code.
    const double flop = program.stage(s).definitions[d].flop;
    return count * std::max<int64_t>(1, static_cast<int64_t>(flop / 8));
  }
};

// The outermost loops become one parallel loop.
class Parallelize : public SketchRule {
 public:
  std::string name() const override { return "parallelize"; }
  int version() const override { return 2; }
  void Apply(const Machine& machine, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot) return;
    const int last = static_cast<int>(plan.nests.size()) - 1;
    const int axes = static_cast<int>(program.stage(s).extents.size());
    int64_t outer = 0;
    for (const Loop& loop : program.nest(s, last)) {
      if (loop.kind != LoopKind::kSerial || loop.axis >= axes ||
          loop.level == kInner) {
        break;
      }
      ++outer;
    }
    if (outer == 0) return;
    std::vector<int64_t> options(std::min<int64_t>(outer, 3) + 1);
    std::iota(options.begin(), options.end(), 0);
    // The fewest tasks that give every thread its share: loops inside are
    // places where other stages can be computed.
    constexpr int64_t kTasks = 4;
    int64_t usual = 0;
    for (int64_t tasks = 1; usual < options.back() && tasks < kTasks; ++usual) {
      tasks *= program.nest(s, last)[usual].extent;
    }
    const bool threads = machine.threads > 1;
    const int64_t fused = decisions.Choose(
        DecisionName(s, "parallel"), options, usual,
        absl::MakeSpan(options).first(threads ? options.size() : 1));
    if (fused == 0) return;
    std::string name = program.nest(s, last)[0].name;
    for (int64_t i = 1; i < fused; ++i) name = program.FuseOuter(s, last);
    program.Mark(s, last, name, LoopKind::kParallel);
  }
};

OPTRAIL_REGISTER_SKETCH_RULE(60, Vectorize)
OPTRAIL_REGISTER_SKETCH_RULE(70, Unroll)
OPTRAIL_REGISTER_SKETCH_RULE(80, Parallelize)

}  // namespace
}  // namespace optrail::tuning
