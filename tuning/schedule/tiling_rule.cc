// The rule that cuts the loops of one stage into tiles, and orders them.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tuning/schedule/loop_rules.h"
#include "tuning/schedule/rule.h"

namespace optrail::tuning {
namespace {

using Where = StagePlan::Where;

std::vector<int64_t> UpTo(int64_t most, std::vector<int64_t> options) {
  options.erase(std::remove_if(options.begin(), options.end(),
                               [&](int64_t value) { return value > most; }),
                options.end());
  return options;
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
  int version() const override { return 3; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const StagePlan& plan = program.plan(s);
    if (plan.where != Where::kRoot && plan.where != Where::kAt) return;
    const int definitions = static_cast<int>(plan.nests.size());
    // Only the last definition does the work; the others set up.
    const int d = definitions - 1;
    const int axes = static_cast<int>(program.stage(s).extents.size());
    const Nest before = program.nest(s, d);
    Cut cut = {s, d, VectorAxis(program, s),
               program.stage(s).HasReduction() || program.ReadsReduction(s)};
    for (const Loop& loop : before) {
      if (loop.axis < axes && loop.axis != cut.vector_axis) {
        cut.rows_at_most = std::min(cut.rows_at_most * loop.extent, kMostRows);
      }
    }
    std::vector<std::string> levels[3], reductions[3];
    // The vector's first: how many rows fit depends on it.
    for (const bool vector : {true, false}) {
      for (auto loop = before.rbegin(); loop != before.rend(); ++loop) {
        if (loop->axis >= axes || (loop->axis == cut.vector_axis) != vector) {
          continue;
        }
        CutAxis(*loop, cut, decisions, program, levels);
      }
    }
    // The last of a reduction's loops moves fastest, as it was written.
    for (const Loop& loop : before) {
      if (loop.axis < axes) continue;
      if (MergesPartialResults(program, s)) {  // few, and may become lanes
        program.SetLevel(s, d, loop.name, kMiddle);
        reductions[kMiddle].push_back(loop.name);
        continue;
      }
      CutReduction(loop.axis - axes, loop, cut, decisions, program, reductions);
    }
    // The vector's axis is innermost.
    std::vector<std::string>& inner = levels[kInner];
    for (size_t i = 0; i < inner.size(); ++i) {
      const int axis = AxisOf(program.nest(s, d), inner[i]);
      if (axis == cut.vector_axis) {
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
  // Limits of the sums (vectors times rows) that are kept in registers. With
  // more of them registers spill; fewer wait for each other.
  static constexpr int64_t kMostSums = 28, kFewestSums = 8, kMostRows = 14;

  struct Cut {
    int stage = 0, definition = 0;
    int vector_axis = 0;
    bool reuses = false;  // else nothing is gained by tiles
    // The rows of all other axes together.
    int64_t rows_at_most = 1;
    // The products over the axes that were cut so far.
    int64_t vectors = 1, rows = 1;
    // Turns of reductions that become straight code.
    int64_t turns = 1;
  };

  static int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

  // How much more is done than must be: turns that overlap, and loads for each
  // multiplication, which tiles that are wide and high share.
  static double CostOf(int64_t extent, int64_t tile, const Cut& cut,
                       bool is_vector) {
    const auto overlap =
        static_cast<double>(DivideUp(extent, tile) * tile) / extent;
    const int64_t lanes = 16;
    const auto vectors =
        static_cast<double>(is_vector ? DivideUp(tile, lanes) : cut.vectors);
    const double rows = is_vector
                            ? std::min(static_cast<double>(cut.rows_at_most),
                                       std::floor(kMostSums / vectors))
                            : static_cast<double>(cut.rows * tile);
    if (is_vector && tile % lanes != 0 && tile > lanes) return 4 * overlap;
    if (vectors * rows > kMostSums) return 8 * overlap * vectors * rows;
    const double lanes_used =
        is_vector ? static_cast<double>(tile) / (vectors * lanes) : 1;
    const double alone =
        vectors * rows < kFewestSums ? kFewestSums / (vectors * rows) : 1;
    return overlap * (1 + .5 / vectors + .5 / std::max(rows, 1.0)) *
           std::sqrt(alone) / lanes_used;
  }

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

  // Updates take no tail (Program::Split).
  static bool HasTail(const Loop& loop, const Cut& cut, const Program& program,
                      int64_t factor) {
    return program.stage(cut.stage).definitions.size() > 1 &&
           loop.extent % factor != 0;
  }

  // How much of the axis stays in the innermost level.
  static int64_t ChooseTile(const Loop& loop, const Cut& cut,
                            Decisions& decisions, const Program& program) {
    const int s = cut.stage, d = cut.definition;
    const int64_t extent = loop.extent;
    const bool is_vector = loop.axis == cut.vector_axis;
    std::vector<int64_t> options =
        is_vector ? UpTo(extent, {8, 16, 32, 48, 64, 96, 128})
                  : UpTo(extent, {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16});
    constexpr int64_t kWholeAtMost = 128;
    if (options.empty() ||
        (options.back() < extent && extent <= kWholeAtMost)) {
      options.push_back(extent);
    }
    const auto has_tail = [&](int64_t factor) {
      return HasTail(loop, cut, program, factor);
    };
    options.erase(std::remove_if(options.begin(), options.end(), has_tail),
                  options.end());
    if (options.empty()) options.push_back(extent);
    if (options.size() == 1) return options[0];
    std::vector<int64_t> drawn;
    int64_t usual =
        NearestBelow(options, is_vector                             ? 32
                              : RunsAlong(loop.axis, s, d, program) ? 16
                                                                    : 1);
    if (cut.reuses) {
      usual = Cheapest(extent, options, cut, is_vector);
      drawn = Promising(extent, options, usual, cut, is_vector);
    } else {
      drawn = options;
      drawn.insert(drawn.end(), 4, usual);
      if (options.back() == extent) drawn.insert(drawn.end(), 4, extent);
    }
    return decisions.Choose(DecisionName(s, "tile", loop.axis), options, usual,
                            drawn);
  }

  // How many tiles are computed together in a cache; 0: all of the axis.
  static int64_t ChooseMiddle(const Loop& loop, int64_t tile, const Cut& cut,
                              Decisions& decisions, const Program& program) {
    const int s = cut.stage;
    const int64_t extent = loop.extent;
    const bool is_vector = loop.axis == cut.vector_axis;
    if (cut.reuses && program.plan(s).where == Where::kRoot) {
      std::vector<int64_t> times = {1};
      for (const int64_t m : {2, 4, 8, 16, 32}) {
        if (tile * m < extent && !HasTail(loop, cut, program, tile * m))
          times.push_back(m);
      }
      times.push_back(0);  // all of it
      // All rows of a panel of vectors, so that a copy of what those read is
      // small and used again and again.
      return decisions.Choose(DecisionName(s, "block", loop.axis), times,
                              is_vector ? 1 : 0);
    }
    if (cut.reuses) return 0;
    if (is_vector && program.plan(s).where == Where::kRoot &&
        program.stage(s).extents.size() == 1 &&
        program.stage(s).definitions.size() == 1) {
      // One long line: what a task takes of it.
      std::vector<int64_t> times = {1};
      for (const int64_t m : {32, 128, 512}) {
        if (tile * m < extent) times.push_back(m);
      }
      if (times.size() > 1) {
        return decisions.Choose(DecisionName(s, "block", loop.axis), times,
                                times.back());
      }
    }
    return 1;
  }

  static void CutAxis(const Loop& loop, Cut& cut, Decisions& decisions,
                      Program& program, std::vector<std::string>* levels) {
    const int s = cut.stage, d = cut.definition;
    const int64_t extent = loop.extent;
    const bool is_vector = loop.axis == cut.vector_axis;
    const int64_t tile = ChooseTile(loop, cut, decisions, program);
    if (is_vector) {
      cut.vectors = DivideUp(tile, 16);
    } else {
      cut.rows *= tile;
    }
    if (tile == extent) {
      program.SetLevel(s, d, loop.name, kInner);
      levels[kInner].push_back(loop.name);
      return;
    }
    const int64_t middle = ChooseMiddle(loop, tile, cut, decisions, program);
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

  // Whether something is read along this axis, which is not the vector's: a
  // tile uses up the lines of a cache that vectors gather from.
  static bool RunsAlong(int axis, int s, int d, const Program& program) {
    for (const Access& access : program.stage(s).definitions[d].reads) {
      if (access.dims.size() > 1 && access.dims[0].affine &&
          access.dims[0].coefficients[axis] == 1) {
        return true;
      }
    }
    return false;
  }

  static int64_t Cheapest(int64_t extent, const std::vector<int64_t>& options,
                          const Cut& cut, bool is_vector) {
    return *std::min_element(options.begin(), options.end(),
                             [&](int64_t a, int64_t b) {
                               return CostOf(extent, a, cut, is_vector) <
                                      CostOf(extent, b, cut, is_vector);
                             });
  }

  // What costs little more than the cheapest most often, what costs many times
  // as much hardly ever.
  static std::vector<int64_t> Promising(int64_t extent,
                                        const std::vector<int64_t>& options,
                                        int64_t usual, const Cut& cut,
                                        bool is_vector) {
    const double least = CostOf(extent, usual, cut, is_vector);
    std::vector<int64_t> drawn;
    for (const int64_t option : options) {
      const double ratio = CostOf(extent, option, cut, is_vector) / least;
      drawn.insert(drawn.end(),
                   ratio < 1.15  ? 12
                   : ratio < 1.5 ? 6
                   : ratio < 3   ? 2
                                 : 0,
                   option);
    }
    return drawn;
  }

  static constexpr int64_t kPanelBytes = 128 << 10;

  // Whether sums wait in memory while blocks of the reduction pass by: not
  // where they stay in registers from the first turn to the last.
  static bool SumsWait(const Cut& cut, const Program& program) {
    const Stage& stage = program.stage(cut.stage);
    int64_t sums = 1, turns = 1;
    for (const int64_t extent : program.plan(cut.stage).region) sums *= extent;
    for (const int64_t r : stage.definitions[cut.definition].reductions) {
      turns *= r;
    }
    return sums > 2 * cut.vectors * cut.rows * (64 / stage.element_bytes) &&
           turns * cut.vectors * 64 > 2 * kPanelBytes;
  }

  // As many turns as a panel of vectors takes in a small part of a cache, so
  // that all rows use it from there.
  static int64_t UsualBlock(int number, const std::vector<int64_t>& blocks,
                            const Cut& cut, const Program& program) {
    if (!SumsWait(cut, program)) return 0;
    const auto& reductions =
        program.stage(cut.stage).definitions[cut.definition].reductions;
    int64_t turn = cut.vectors * 64;  // bytes
    for (size_t r = 0; r < reductions.size(); ++r) {
      if (static_cast<int>(r) != number) turn *= reductions[r];
    }
    return NearestBelow(blocks, kPanelBytes / turn);
  }

  // All of a few, so that sums stay in registers for longer; but not where
  // turns share what they read with each other's tiles, which is then kept in
  // registers, too.
  static int64_t UsualTurns(int number, const std::vector<int64_t>& unrolls,
                            const Cut& cut, const Program& program) {
    constexpr int64_t kFew = 3;
    const Stage& stage = program.stage(cut.stage);
    const Definition& definition = stage.definitions[cut.definition];
    const int64_t extent = definition.reductions[number];
    if (extent > kFew || unrolls.back() != extent || !SumsWait(cut, program)) {
      return 1;
    }
    const size_t axes = stage.extents.size();
    for (const Loop& loop : program.nest(cut.stage, cut.definition)) {
      const auto axis = static_cast<size_t>(loop.axis);
      if (axis >= axes || loop.level != kInner || loop.extent == 1) continue;
      for (const Access& access : definition.reads) {
        for (const AccessIndex& index : access.dims) {
          if (!index.affine || (index.coefficients[axis] != 0 &&
                                index.coefficients[axes + number] != 0)) {
            return 1;
          }
        }
      }
    }
    return extent;
  }

  // Only by divisors: a tail inside a reduction costs more than it brings.
  static void CutReduction(int number, const Loop& loop, Cut& cut,
                           Decisions& decisions, Program& program,
                           std::vector<std::string>* levels) {
    const int s = cut.stage, d = cut.definition;
    std::string rest = loop.name;
    std::vector<int64_t> blocks =
        Thinned(DivisorsBetween(loop.extent, 32, 1024), 5);
    if (!blocks.empty()) {
      const int64_t usual = UsualBlock(number, blocks, cut, program);
      std::vector<int64_t> drawn = blocks;
      // A vector's product with a matrix uses each element once: a few rows of
      // that, along all their length, are read as fast as memory gives them.
      if (cut.rows_at_most == 1) {
        for (const int64_t few : {4, 8, 16}) {
          if (loop.extent % few == 0) {
            blocks.push_back(few);
            drawn.insert(drawn.end(), 2, few);
          }
        }
      }
      blocks.insert(blocks.begin(), 0);
      drawn.insert(drawn.end(), 8, usual);
      const int64_t block = decisions.Choose(DecisionName(s, "rblock", number),
                                             blocks, usual, drawn);
      if (block > 0) {
        const LoopNames names = program.Split(s, d, rest, block);
        program.SetLevel(s, d, names.outer, kOuter);
        levels[kOuter].push_back(names.outer);
        rest = names.inner;
      }
    }
    // Of what is left inside, up to all of it, as far as it is unrolled then.
    const Nest& nest = program.nest(s, d);
    const auto inside =
        std::find_if(nest.begin(), nest.end(),
                     [&](const Loop& l) { return l.name == rest; });
    std::vector<int64_t> unrolls = {1};
    for (int64_t u = 2; u <= std::min<int64_t>(inside->extent, 8); ++u) {
      if (inside->extent % u == 0 &&
          cut.vectors * cut.rows * cut.turns * u <= kMostUnrolled) {
        unrolls.push_back(u);
      }
    }
    const int64_t unroll =
        unrolls.size() == 1
            ? 1
            : decisions.Choose(DecisionName(s, "rtile", number), unrolls,
                               UsualTurns(number, unrolls, cut, program));
    cut.turns *= unroll;
    if (unroll > 1 && unroll == inside->extent) {
      program.SetLevel(s, d, rest, kInner);
      levels[kInner].push_back(rest);
      return;
    }
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
OPTRAIL_REGISTER_SKETCH_RULE(50, MultiLevelTiling)

}  // namespace

}  // namespace optrail::tuning
