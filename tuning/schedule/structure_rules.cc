// Rules about stages: which there are and where they are computed.

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tuning/schedule/rule.h"

namespace optrail::tuning {
namespace {

using Origin = StagePlan::Origin;
using Where = StagePlan::Where;

// A stage without reductions is computed where it is read, or kept.
class Inline : public SketchRule {
 public:
  std::string name() const override { return "inline"; }
  int version() const override { return 2; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const Stage& stage = program.stage(s);
    if (program.IsOutput(s) || stage.definitions.size() != 1 ||
        program.plan(s).origin != Origin::kAlgorithm ||
        IsClampedInReduction(s, program)) {
      return;
    }
    // Computed again for every reader: free if it is little or there is one,
    // and not where a reduction comes back to it.
    constexpr double kLittleFlop = 4;
    const std::vector<Reader> readers = program.Readers(s);
    bool cheap =
        stage.definitions[0].flop <= kLittleFlop || readers.size() <= 1;
    for (const Reader& reader : readers) {
      const auto& read = program.stage(reader.stage).definitions;
      cheap &= read[reader.definition].reductions.empty();
    }
    // Nothing but another name.
    cheap |= stage.definitions[0].flop == 0 &&
             stage.definitions[0].reads.size() == 1;
    if (decisions.Choose(DecisionName(s, "inline"), {0, 1}, cheap) == 1) {
      program.ComputeInline(s);
    }
  }

 private:
  // Padding within a sum: slow, and beneath unrolled loops of tiles that
  // overlap Halide 14 makes wrong code of it.
  static bool IsClampedInReduction(int s, const Program& program) {
    bool clamped = false;
    for (const Access& access : program.stage(s).definitions[0].reads) {
      for (const AccessIndex& index : access.dims) clamped |= !index.affine;
    }
    const std::vector<Reader> readers = program.Readers(s);
    return clamped &&
           std::any_of(readers.begin(), readers.end(), [&](const Reader& r) {
             return !program.stage(r.stage)
                         .definitions[r.definition]
                         .reductions.empty();
           });
  }
};

// An output that is reduced is accumulated elsewhere and copied, tile by tile.
class CacheWrite : public SketchRule {
 public:
  std::string name() const override { return "cache_write"; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    if (!program.IsOutput(s) || !program.stage(s).HasReduction()) return;
    if (decisions.Choose(DecisionName(s, "cache_write"), {0, 1}, 1,
                         {0, 1, 1, 1}) == 1) {
      program.CacheWrite(s);
    }
  }
};

// Partial results side by side, where the reduction runs along the memory and
// the axes do not: their lanes become a vector.
class Rfactor : public SketchRule {
 public:
  std::string name() const override { return "rfactor"; }
  int version() const override { return 2; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    if (program.plan(s).origin == Origin::kRfactor) return;
    const Stage& stage = program.stage(s);
    if (stage.definitions.size() != 2) return;
    const Definition& update = stage.definitions[1];
    if (!update.associative || update.reductions.empty()) return;
    std::vector<int64_t> options = {0};
    for (int64_t factor = 8; factor <= 64; factor += 8) {
      if (update.reductions[0] % factor == 0 &&
          update.reductions[0] >= 2 * factor) {
        options.push_back(factor);
      }
    }
    if (options.size() == 1) return;
    const bool along_memory = RunsAlongMemory(stage, update);
    // Whole vectors, and several, which need not wait for each other.
    std::vector<int64_t> drawn;
    int64_t most = options.back();
    for (const int64_t option : options) {
      const bool whole = option % 16 == 0;
      if (along_memory) drawn.insert(drawn.end(), whole ? 4 : 1, option);
      if (whole && option > 0) most = option;
    }
    if (!along_memory) {
      drawn.assign(16, 0);
      drawn.push_back(most);
    }
    const int64_t factor = decisions.Choose(DecisionName(s, "rfactor"), options,
                                            along_memory ? most : 0, drawn);
    if (factor > 0) program.Rfactor(s, 1, 0, factor);
  }

 private:
  // No read has axis 0 in its innermost dimension, some the reduction.
  static bool RunsAlongMemory(const Stage& stage, const Definition& update) {
    const size_t axes = stage.extents.size();
    bool reduction = false;
    for (const Access& access : update.reads) {
      if (access.dims.empty() || !access.dims[0].affine) continue;
      bool moves = false;
      for (const AccessIndex& index : access.dims) {
        moves |= !index.affine || index.coefficients[axes] != 0;
      }
      if (!moves) continue;  // one value for the whole reduction
      const auto& coefficients = access.dims[0].coefficients;
      if (axes > 0 && stage.extents[0] > 1 && coefficients[0] != 0)
        return false;
      reduction |= coefficients[axes] != 0;
    }
    return reduction;
  }
};

// At the root, or in one of the loops around all its readers.
class ComputeAt : public SketchRule {
 public:
  std::string name() const override { return "compute_at"; }
  int version() const override { return 3; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    if (program.plan(s).where != Where::kUndecided) return;
    if (program.IsOutput(s)) return program.ComputeRoot(s);
    std::vector<LoopPlace> places;
    for (const LoopPlace& place : program.CommonLoops(s)) {
      const Loop& loop =
          program.nest(place.stage, place.definition)[place.loop];
      // Once round is no place of its own.
      if (loop.extent > 1) places.push_back(place);
    }
    // Deep nests: the innermost are those that differ.
    constexpr size_t kMostPlaces = 12;
    if (places.size() > kMostPlaces) {
      places.erase(places.begin(), places.end() - kMostPlaces);
    }
    std::vector<int64_t> options(places.size() + 1);
    std::iota(options.begin(), options.end(), 0);
    // What is computed over and over is seldom worth a try.
    std::vector<int64_t> drawn;
    for (const int64_t option : options) {
      if (option == 0 ||
          (Overhead(s, places[option - 1], program) <= kMostOverhead &&
           TimesComputed(s, places[option - 1], program) <= kMostTimes)) {
        drawn.push_back(option);
      }
    }
    const int64_t usual = Usual(s, places, program);
    drawn.insert(drawn.end(), 6, usual);
    if (const int64_t panel = OfPanel(places, program); panel > 0) {
      drawn.insert(drawn.end(), 3, panel);
    }
    const int64_t chosen =
        decisions.Choose(DecisionName(s, "at"), options, usual, drawn);
    if (chosen == 0) {
      program.ComputeRoot(s);
    } else {
      program.ComputeAt(s, places[chosen - 1]);
    }
  }

 private:
  // How often a value is computed on average.
  static double TimesComputed(int s, const LoopPlace& place,
                              const Program& program) {
    double times = 1;
    for (const LoopPlace& around :
         program.LoopsAround(place.stage, place.definition)) {
      times *= static_cast<double>(
          program.nest(around.stage, around.definition)[around.loop].extent);
      if (around == place) break;
    }
    const std::vector<int64_t> footprint = program.FootprintAt(s, place);
    for (size_t d = 0; d < footprint.size(); ++d) {
      times *= static_cast<double>(footprint[d]) /
               static_cast<double>(program.stage(s).extents[d]);
    }
    return times;
  }

  // What is computed more than once, by what has to be computed at all.
  static double Overhead(int s, const LoopPlace& place,
                         const Program& program) {
    double all = 0;
    for (int other = 0; other < program.stage_count(); ++other) {
      if (program.plan(other).where != Where::kInline) {
        all += WorkOf(program.stage(other));
      }
    }
    return (TimesComputed(s, place, program) - 1) * WorkOf(program.stage(s)) /
           all;
  }

  // Copies, and other stages that reduce nothing: the innermost place where
  // next to nothing is computed twice and which others go round in, so that
  // what was made is used more than once while it is in a cache. Reductions:
  // the innermost place where little is computed twice.
  static int64_t Usual(int s, const std::vector<LoopPlace>& places,
                       const Program& program) {
    const bool copies = !program.stage(s).HasReduction();
    int64_t usual = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const LoopPlace& place = places[i];
      const Nest& nest = program.nest(place.stage, place.definition);
      const auto axes =
          static_cast<int>(program.stage(place.stage).extents.size());
      const int axis = nest[place.loop].axis;
      // Partial results are made together, outside of the loop over them; and
      // what is in registers is one piece.
      const bool in_reduction = axis != Loop::kFused && axis >= axes;
      if ((in_reduction && program.plan(s).origin == Origin::kRfactor) ||
          nest[place.loop].level == 0) {
        break;
      }
      if (copies ? Overhead(s, place, program) <= kLittleOverhead
                 : TimesComputed(s, place, program) <= kHardlyTwice) {
        usual = static_cast<int64_t>(i) + 1;
      }
    }
    const int64_t panel = OfPanel(places, program);
    return IsDeep(program.stage(s)) && panel > 0 ? panel : usual;
  }

  // The innermost of the outer loops of a stage at the root: all rows of a
  // panel of vectors are inside. 0: there is none.
  static int64_t OfPanel(const std::vector<LoopPlace>& places,
                         const Program& program) {
    for (size_t i = places.size(); i-- > 0;) {
      const LoopPlace& place = places[i];
      if (program.nest(place.stage, place.definition)[place.loop].level ==
              kOuterLevel &&
          program.plan(place.stage).where == Where::kRoot) {
        return static_cast<int64_t>(i) + 1;
      }
    }
    return 0;
  }

  // So many turns that what they read of a panel of vectors fills a cache:
  // they are taken in blocks, and sums wait in memory.
  static bool IsDeep(const Stage& stage) {
    constexpr int64_t kTurns = 2048;
    int64_t turns = 1;
    for (const int64_t extent : stage.definitions.back().reductions) {
      turns *= extent;
    }
    return turns >= kTurns && !stage.extents.empty() && stage.extents[0] > 1;
  }

  // Operations of all points, where an element that passes through a cache
  // costs as much as so many.
  static double WorkOf(const Stage& stage) {
    constexpr double kOfElement = 32;
    double points = 1, work = 0;
    for (const int64_t extent : stage.extents) points *= extent;
    for (const Definition& definition : stage.definitions) {
      double turns = 1;
      for (const int64_t extent : definition.reductions) turns *= extent;
      work += turns * definition.flop;
    }
    return points * (work + kOfElement);
  }

  static constexpr int kOuterLevel = 2;
  static constexpr double kMostOverhead = 1, kMostTimes = 16,
                          kLittleOverhead = .03, kHardlyTwice = 1.7;
};

// What a reduction reads again and again is copied to where it lies together.
class CacheRead : public SketchRule {
 public:
  std::string name() const override { return "cache_read"; }
  int version() const override { return 2; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    if (!program.stage(s).HasReduction() ||
        program.plan(s).where == Where::kInline) {
      return;
    }
    // Copied first: the program's accesses change under our feet.
    struct Source {
      bool of_input;
      int source;
      bool operator==(const Source& other) const {
        return of_input == other.of_input && source == other.source;
      }
    };
    std::vector<Source> sources;
    const Definition& update = program.stage(s).definitions.back();
    for (const Access& access : update.reads) {
      // Others' results are made where they are wanted anyway.
      if (!access.of_input || access.dims.size() < 2) continue;
      const Source source = {access.of_input, access.source};
      if (IsReused(access) &&
          std::find(sources.begin(), sources.end(), source) == sources.end()) {
        sources.push_back(source);
      }
    }
    for (const Source& source : sources) {
      // Worth it where every element is used many times.
      const Extents& of = program.algorithm().inputs[source.source];
      double elements = 1, turns = 1;
      for (const int64_t extent : of.extents) elements *= extent;
      for (const int64_t extent : program.stage(s).extents) turns *= extent;
      for (const int64_t extent : update.reductions) turns *= extent;
      constexpr double kFewUses = 16, kManyUses = 128;
      if (turns < kFewUses * elements) continue;
      // Rows that lie far apart share few lines of a cache.
      constexpr int64_t kFarBytes = 1024;
      const bool far = of.extents[0] * of.element_bytes >= kFarBytes &&
                       AlongVectors(update, source.source);
      if (decisions.Choose(DecisionName(s, "pack", source.source), {0, 1},
                           far && turns >= kManyUses * elements) == 1) {
        program.CacheRead(s, source.of_input, source.source);
      }
    }
  }

 private:
  // Vectors are read of it, not single values.
  static bool AlongVectors(const Definition& update, int input) {
    for (const Access& access : update.reads) {
      if (access.of_input && access.source == input &&
          access.dims[0].coefficients[0] != 0) {
        return true;
      }
    }
    return false;
  }

  // Some loop goes round without moving on in it.
  static bool IsReused(const Access& access) {
    for (size_t loop = 0; loop < access.dims[0].coefficients.size(); ++loop) {
      bool moves = false;
      for (const AccessIndex& index : access.dims) {
        moves |= !index.affine || index.coefficients[loop] != 0;
      }
      if (!moves) return true;
    }
    return false;
  }
};

// Which axis lies contiguously in what a stage keeps.
class StorageOrder : public SketchRule {
 public:
  std::string name() const override { return "storage_order"; }
  int version() const override { return 2; }
  void Apply(const Machine&, int s, Decisions& decisions,
             Program& program) const override {
    const int axes = static_cast<int>(program.stage(s).extents.size());
    const Origin origin = program.plan(s).origin;
    if (axes < 2 || program.IsOutput(s) ||
        (origin != Origin::kCacheRead && origin != Origin::kRfactor)) {
      return;
    }
    // What is read as vectors has to lie so.
    if (origin == Origin::kCacheRead) {
      for (const Reader& reader : program.Readers(s)) {
        const AccessIndex& index = reader.access->dims[0];
        if (!index.affine || index.coefficients[0] != 0) return;
      }
    }
    std::vector<int64_t> options(axes);
    std::iota(options.begin(), options.end(), 0);
    const int64_t first =
        decisions.Choose(DecisionName(s, "inner"), options,
                         origin == Origin::kRfactor ? axes - 1 : 0);
    if (first == 0) return;
    std::vector<int> order = {static_cast<int>(first)};
    for (int axis = 0; axis < axes; ++axis) {
      if (axis != first) order.push_back(axis);
    }
    program.SetStorage(s, std::move(order));
  }
};

OPTRAIL_REGISTER_SKETCH_RULE(10, Inline)
OPTRAIL_REGISTER_SKETCH_RULE(20, CacheWrite)
OPTRAIL_REGISTER_SKETCH_RULE(30, Rfactor)
OPTRAIL_REGISTER_SKETCH_RULE(35, StorageOrder)
OPTRAIL_REGISTER_SKETCH_RULE(40, ComputeAt)
OPTRAIL_REGISTER_SKETCH_RULE(90, CacheRead)

}  // namespace
}  // namespace optrail::tuning
