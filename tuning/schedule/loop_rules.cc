// Rules about the loops of one stage: cut, ordered, then marked.

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tuning/schedule/rule.h"

namespace optrail::tuning {
namespace {

using Origin = StagePlan::Origin;
using Where = StagePlan::Where;

constexpr int kInner = 0, kMiddle = 1, kOuter = 2;

// The axis that lies contiguously in memory, which vectors run along.
int VectorAxis(const Program& program, int s) {
  const std::vector<int>& storage = program.plan(s).storage;
  const bool by_storage =
      !storage.empty() && program.plan(s).origin == Origin::kRfactor;
  return by_storage ? storage[0] : 0;
}

std::vector<int64_t> UpTo(int64_t most, std::vector<int64_t> options) {
  options.erase(std::remove_if(options.begin(), options.end(),
                               [&](int64_t value) { return value > most; }),
                options.end());
  return options;
}

// The option that is nearest below `wanted`, or the first.
int64_t NearestBelow(const std::vector<int64_t>& options, int64_t wanted) {
  int64_t best = options[0];
  for (const int64_t option : options) {
    if (option <= wanted && (option > best || best > wanted)) best = option;
  }
  return best;
}

std::vector<int64_t> DivisorsBetween(int64_t of, int64_t least, int64_t most) {
  std::vector<int64_t> divisors;
  for (int64_t d = least; d <= std::min(most, of - 1); ++d) {
    if (of % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// `count` of them, evenly.
std::vector<int64_t> Thinned(const std::vector<int64_t>& values, size_t count) {
  if (values.size() <= count) return values;
  std::vector<int64_t> thinned;
  for (size_t i = 0; i < count; ++i) {
    thinned.push_back(values[i * (values.size() - 1) / (count - 1)]);
  }
  return thinned;
}

// Names of loops of one level that an order moves: the index-th permutation of
// at most four, the last loops first where it is 0.
std::vector<std::string> Permuted(std::vector<std::string> loops,
                                  int64_t index) {
  std::vector<std::string> order;
  while (!loops.empty()) {
    const auto n = static_cast<int64_t>(loops.size());
    order.push_back(loops[index % n]);
    loops.erase(loops.begin() + index % n);
    index /= n;
  }
  return order;
}

std::vector<int64_t> Permutations(size_t loops) {
  int64_t count = 1;
  for (size_t i = 2; i <= std::min<size_t>(loops, 4); ++i) {
    count *= static_cast<int64_t>(i);
  }
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Axes are cut into as many levels as there are caches, and the loops ordered
// outside to inside: axes, cut reductions, axes, reductions, what is unrolled
// of them, axes (Ansor's SSRSRS).
class MultiLevelTiling : public SketchRule {
 public:
  std::string name() const override { return "multi_level_tiling"; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    const int definitions = static_cast<int>(plan.nests.size());
    // Only the last definition does the work; the others set up.
    const int d = definitions - 1;
    const int axes = static_cast<int>(program.stage(s).extents.size());
    const Nest before = program.nest(s, d);
    const bool reuses =
        program.stage(s).HasReduction() || program.ReadsReduction(s);
    const int vector_axis = VectorAxis(program, s);
    std::vector<std::string> levels[3], reductions[3];
    for (auto loop = before.rbegin(); loop != before.rend(); ++loop) {
      if (loop->axis >= axes) continue;
      CutAxis(s, d, *loop, reuses, loop->axis == vector_axis, decisions,
              program, levels);
    }
    for (auto loop = before.rbegin(); loop != before.rend(); ++loop) {
      if (loop->axis < axes) continue;
      CutReduction(s, d, loop->axis - axes, *loop, decisions, program,
                   reductions);
    }
    // The vector's axis is innermost.
    std::vector<std::string>& inner = levels[kInner];
    for (size_t i = 0; i < inner.size(); ++i) {
      const int axis = AxisOf(program.nest(s, d), inner[i]);
      if (axis == vector_axis) {
        std::rotate(inner.begin(), inner.begin() + i, inner.begin() + i + 1);
      }
    }
    std::reverse(inner.begin(), inner.end());
    std::vector<std::string> order;
    const auto append = [&](const std::vector<std::string>& loops) {
      order.insert(order.end(), loops.begin(), loops.end());
    };
    append(Ordered(s, kOuter, levels[kOuter], decisions));
    append(reductions[kOuter]);
    append(Ordered(s, kMiddle, levels[kMiddle], decisions));
    append(reductions[kMiddle]);
    append(reductions[kInner]);
    append(inner);
    program.Reorder(s, d, order);
  }

 private:
  static int AxisOf(const Nest& nest, const std::string& name) {
    for (const Loop& loop : nest) {
      if (loop.name == name) return loop.axis;
    }
    return -1;
  }

  static std::vector<std::string> Ordered(int s, int level,
                                          std::vector<std::string> loops,
                                          Decisions& decisions) {
    if (loops.size() < 2) return loops;
    std::reverse(loops.begin(), loops.end());  // axis 0 innermost
    return Permuted(loops, decisions.Choose(DecisionName(s, "order", level),
                                            Permutations(loops.size()), 0));
  }

  static void CutAxis(int s, int d, const Loop& loop, bool reuses,
                      bool is_vector, Decisions& decisions, Program& program,
                      std::vector<std::string>* levels) {
    const int64_t extent = loop.extent;
    std::vector<int64_t> options =
        is_vector ? UpTo(extent, {8, 16, 32, 48, 64, 96, 128})
                  : UpTo(extent, {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16});
    constexpr int64_t kWholeAtMost = 128;
    if (options.empty() ||
        (options.back() < extent && extent <= kWholeAtMost)) {
      options.push_back(extent);
    }
    // Updates take no tail (Program::Split).
    const bool whole = program.stage(s).definitions.size() > 1;
    const auto has_tail = [&](int64_t factor) {
      return whole && extent % factor != 0;
    };
    options.erase(std::remove_if(options.begin(), options.end(), has_tail),
                  options.end());
    if (options.empty()) options.push_back(extent);
    const int64_t usual_inner = is_vector ? 32 : reuses ? 6 : 1;
    int64_t tile = options[0];
    if (options.size() > 1) {
      // A stage that is computed in a tile is most often one tile itself.
      std::vector<int64_t> drawn = options;
      if (options.back() == extent) drawn.insert(drawn.end(), 4, extent);
      tile = decisions.Choose(DecisionName(s, "tile", loop.axis), options,
                              NearestBelow(options, usual_inner), drawn);
    }
    if (tile == extent) {
      program.SetLevel(s, d, loop.name, kInner);
      levels[kInner].push_back(loop.name);
      return;
    }
    // The middle level: what is computed together in a cache.
    int64_t middle = 1;
    if (reuses && program.plan(s).where == Where::kRoot) {
      std::vector<int64_t> times = {1};
      for (const int64_t m : {2, 4, 8, 16, 32}) {
        if (tile * m < extent && !has_tail(tile * m)) times.push_back(m);
      }
      times.push_back(0);  // all of it
      middle = decisions.Choose(DecisionName(s, "block", loop.axis), times,
                                is_vector ? NearestBelow(times, 4) : 0);
    } else if (reuses) {
      middle = 0;
    }
    std::string rest = loop.name;
    if (middle > 1) {
      const LoopNames names = program.Split(s, d, rest, tile * middle);
      program.SetLevel(s, d, names.outer, kOuter);
      levels[kOuter].push_back(names.outer);
      rest = names.inner;
    }
    const int level = middle == 1 ? kOuter : kMiddle;
    if (tile == 1) {
      program.SetLevel(s, d, rest, level);
      levels[level].push_back(rest);
      return;
    }
    const LoopNames names = program.Split(s, d, rest, tile);
    program.SetLevel(s, d, names.outer, level);
    levels[level].push_back(names.outer);
    program.SetLevel(s, d, names.inner, kInner);
    levels[kInner].push_back(names.inner);
  }

  // Only by divisors: a tail inside a reduction costs more than it brings.
  static void CutReduction(int s, int d, int number, const Loop& loop,
                           Decisions& decisions, Program& program,
                           std::vector<std::string>* levels) {
    std::string rest = loop.name;
    std::vector<int64_t> blocks =
        Thinned(DivisorsBetween(loop.extent, 32, 1024), 5);
    if (!blocks.empty()) {
      blocks.insert(blocks.begin(), 0);
      const int64_t block =
          decisions.Choose(DecisionName(s, "rblock", number), blocks, 0);
      if (block > 0) {
        const LoopNames names = program.Split(s, d, rest, block);
        program.SetLevel(s, d, names.outer, kOuter);
        levels[kOuter].push_back(names.outer);
        rest = names.inner;
      }
    }
    std::vector<int64_t> unrolls = DivisorsBetween(loop.extent, 2, 8);
    // Of what is left inside.
    const Nest& nest = program.nest(s, d);
    const auto inside =
        std::find_if(nest.begin(), nest.end(),
                     [&](const Loop& l) { return l.name == rest; });
    unrolls.erase(std::remove_if(unrolls.begin(), unrolls.end(),
                                 [&](int64_t u) {
                                   return inside->extent % u != 0 ||
                                          u >= inside->extent;
                                 }),
                  unrolls.end());
    unrolls.insert(unrolls.begin(), 1);
    const int64_t unroll =
        unrolls.size() == 1
            ? 1
            : decisions.Choose(DecisionName(s, "rtile", number), unrolls, 1);
    if (unroll > 1) {
      const LoopNames names = program.Split(s, d, rest, unroll);
      program.SetLevel(s, d, names.inner, kInner);
      levels[kInner].push_back(names.inner);
      rest = names.outer;
    }
    program.SetLevel(s, d, rest, kMiddle);
    levels[kMiddle].push_back(rest);
  }
};

// The innermost loop over the contiguous axis becomes vectors.
class Vectorize : public SketchRule {
 public:
  std::string name() const override { return "vectorize"; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    const int axis = VectorAxis(program, s);
    const int last = static_cast<int>(plan.nests.size()) - 1;
    const Loop* const loop = InnerLoop(program, s, last, axis);
    if (loop == nullptr) return;
    // Whole vectors only, but where a tail can be shifted inwards.
    std::vector<int64_t> options;
    for (const int64_t lanes : {4, 8, 16, 32}) {
      if (loop->extent % lanes == 0 ||
          (plan.nests.size() == 1 && loop->extent >= lanes)) {
        options.push_back(lanes);
      }
    }
    // Short ones only where there is nothing better.
    if (options.size() > 2) options.erase(options.begin());
    options.push_back(0);
    if (options.size() == 1) return;
    const int64_t usual = 64 / program.stage(s).element_bytes;
    std::vector<int64_t> drawn(options.begin(), options.end() - 1);
    drawn.insert(drawn.end(), 3, NearestBelow(drawn, usual));
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
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    // Beyond the registers of any machine code only grows.
    constexpr int64_t kMostUnrolled = 128;
    const int last = static_cast<int>(plan.nests.size()) - 1;
    if (CountOf(program, s, last) == 1) return;
    if (CountOf(program, s, last) > kMostUnrolled) return;
    if (decisions.Choose(DecisionName(s, "unroll"), {0, 1}, 1, {0, 1, 1, 1}) ==
        0) {
      return;
    }
    for (int d = 0; d <= last; ++d) {
      if (CountOf(program, s, d) > kMostUnrolled) continue;
      const Nest nest = program.nest(s, d);
      for (const Loop& loop : nest) {
        if (IsCandidate(loop)) {
          program.Mark(s, d, loop.name, LoopKind::kUnrolled);
        }
      }
    }
  }

 private:
  static bool IsCandidate(const Loop& loop) {
    return loop.kind == LoopKind::kSerial && loop.level == kInner &&
           loop.extent > 1;
  }
  static int64_t CountOf(const Program& program, int s, int d) {
    int64_t count = 1;
    for (const Loop& loop : program.nest(s, d)) {
      if (IsCandidate(loop)) count *= loop.extent;
      if (count > (1 << 20)) break;
    }
    return count;
  }
};

// The outermost loops become one parallel loop.
class Parallelize : public SketchRule {
 public:
  std::string name() const override { return "parallelize"; }
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
    // As few as give every thread its share; loops inside are places where
    // others can be computed.
    constexpr int64_t kTasks = 64;
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

OPTRAIL_REGISTER_SKETCH_RULE(50, MultiLevelTiling)
OPTRAIL_REGISTER_SKETCH_RULE(60, Vectorize)
OPTRAIL_REGISTER_SKETCH_RULE(70, Unroll)
OPTRAIL_REGISTER_SKETCH_RULE(80, Parallelize)

}  // namespace
}  // namespace optrail::tuning
