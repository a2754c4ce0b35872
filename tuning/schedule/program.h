#ifndef OPTRAIL_TUNING_SCHEDULE_PROGRAM_H_
#define OPTRAIL_TUNING_SCHEDULE_PROGRAM_H_

// Program is an algorithm with loops: for every stage where it is computed and
// how its loops are cut, ordered and marked. Rules change it by primitives, as
// in a loop language; each primitive is kept as a step, and the steps' text is
// all that a compiler needs to make the same loops.
//
//   const LoopNames x = program.Split(stage, definition, "x0", 16);
//   program.Mark(stage, definition, x.inner, LoopKind::kVector);
//
// Loops are named after what they were cut from: x0, x1, ... are a stage's axes
// and r0, r1, ... a definition's reductions; a split appends "o" and "i".
// Stages go by index, new ones after those of the algorithm, so that the text
// means the same in every process.
//
// A primitive that cannot be (an unknown loop, a factor beyond the extent) is
// remembered, and Check() refuses the program; nothing was compiled by then.
// What a compiler may still refuse is its affair: this is no proof.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tuning/schedule/algorithm.h"

namespace optrail::tuning {

enum class LoopKind { kSerial, kParallel, kVector, kUnrolled };

struct Loop {
  // Several that were fused: no single axis.
  static constexpr int kFused = 1 << 20;

  std::string name;
  int64_t extent = 1;
  // An index of the definition's loops: the axes first, then the reductions.
  int axis = 0;
  LoopKind kind = LoopKind::kSerial;
  // 0: inside, where data is in registers; higher: further out.
  int level = 0;
};

struct LoopNames {
  std::string outer, inner;
};

// Outermost first.
using Nest = std::vector<Loop>;

// A loop of a definition of a stage, by its place in the nest.
struct LoopPlace {
  int stage = 0;
  int definition = 0;
  int loop = 0;
  bool operator==(const LoopPlace& other) const {
    return stage == other.stage && definition == other.definition &&
           loop == other.loop;
  }
};

struct StagePlan {
  enum class Where { kUndecided, kInline, kRoot, kAt };
  Where where = Where::kUndecided;
  LoopPlace at;
  // The region that is computed each time, axis by axis.
  std::vector<int64_t> region;
  // Axes of which the compiler was told so: it keeps no more.
  std::vector<bool> bounded;
  std::vector<Nest> nests;  // of each definition
  // The axes from the innermost in memory on; empty: as declared.
  std::vector<int> storage;
  // Why the stage exists, if the algorithm has none such.
  enum class Origin { kAlgorithm, kCacheWrite, kCacheRead, kRfactor };
  Origin origin = Origin::kAlgorithm;
};

struct Reader {
  int stage = 0;
  int definition = 0;
  const Access* access = nullptr;
};

class Program {
 public:
  // Beyond these the program is refused: code generation takes seconds and
  // gigabytes for more.
  static constexpr int64_t kMaxLanes = 64;
  static constexpr int64_t kMaxUnrolledOperations = 1000;
  static constexpr int64_t kMaxAllocationBytes = int64_t{1} << 30;

  explicit Program(Algorithm algorithm);

  const Algorithm& algorithm() const { return algorithm_; }
  int stage_count() const { return static_cast<int>(plans_.size()); }
  const Stage& stage(int s) const { return algorithm_.stages[s]; }
  const StagePlan& plan(int s) const { return plans_[s]; }
  const Nest& nest(int s, int definition) const {
    return plans_[s].nests[definition];
  }
  bool IsOutput(int s) const;
  // Who reads the stage, what was inlined counted with its readers.
  std::vector<Reader> Readers(int s) const;
  // Whether `s` reads results of a reduction, others for each step of axis 0:
  // where what they share is worth a cache. (One for a whole row is not.)
  bool ReadsReduction(int s) const;

  // Loops around everything that reads `s`, outermost first, in which it can be
  // computed.
  std::vector<LoopPlace> CommonLoops(int s) const;
  // Loops around a definition of `s` and its own, outermost first.
  std::vector<LoopPlace> LoopsAround(int s, int definition) const;
  // How much of `s` its readers need each time that loop goes round.
  std::vector<int64_t> FootprintAt(int s, const LoopPlace& place) const;

  // --- Primitives --------------------------------------------------------

  // Each fixes the place where the stage is computed; then its loops exist.
  void ComputeInline(int s);
  void ComputeRoot(int s);
  void ComputeAt(int s, const LoopPlace& place);

  LoopNames Split(int s, int definition, const std::string& loop,
                  int64_t factor);
  // Outermost first; all loops of the nest.
  void Reorder(int s, int definition, const std::vector<std::string>& loops);
  // The two outermost; returns the name.
  std::string FuseOuter(int s, int definition);
  void Mark(int s, int definition, const std::string& loop, LoopKind kind);
  void SetLevel(int s, int definition, const std::string& loop, int level);

  // The stage's result is copied to a new stage, which everybody reads instead
  // of it. Returns the new stage.
  int CacheWrite(int s);
  // What `s` reads of a source is copied to a new stage first.
  int CacheRead(int s, bool of_input, int source);
  // A stage of `factor` partial results for a reduction whose extent `factor`
  // divides. Returns the new stage, whose last axis they are.
  int Rfactor(int s, int definition, int reduction, int64_t factor);
  void SetStorage(int s, std::vector<int> axes);

  // --- Result --------------------------------------------------------------

  // InvalidArgument: which stage and loop, what it has and the limit; or which
  // axis, what is kept or there is of it and what would be read.
  absl::Status Check() const;
  // One step a line.
  std::string StepsText() const;
  // Loops for people, C-like, in the order in which they run.
  std::string LoopsText() const;
  // What programs of one sketch have in common, for people: which stages there
  // are, where they are computed, what is parallel; no sizes.
  // "c.out at root, parallel; c in c.out; b.in in c".
  std::string SketchText() const;

  // The product, or a number that is too much of anything.
  static int64_t Times(int64_t a, int64_t b);

 private:
  static absl::string_view KindName(LoopKind kind);
  int64_t HaloOf(const Reader& reader, size_t d) const;
  // What the readers of `s` use of it, and what is computed of it, in one turn
  // of a loop around all of that, or all in all (nullptr). Other than a
  // footprint it may be more than there is: where tiles overlap a footprint
  // counts them one after the other, so that a stage that is bounded to it
  // computes more than is wanted. The compiler takes that into account where it
  // infers what to compute of a stage, `known_to`, only as far as it happens in
  // the same loop or outside of it; of what is really read, all.
  static constexpr int kAll = -1;
  std::vector<int64_t> UsedIn(int s, const LoopPlace* place,
                              int known_to) const;
  std::vector<int64_t> ComputedIn(int s, const LoopPlace* place,
                                  int known_to) const;
  absl::Status CheckReads() const;
  Nest NestOf(int s, int definition) const;
  Nest* FindNest(int s, int definition);
  int FindLoop(const Nest& nest, absl::string_view name) const;
  void Refuse(const std::string& why);
  void Step(std::string text) { steps_.push_back(std::move(text)); }
  void BecomePlaced(int s, std::vector<int64_t> region);
  void AppendStage(Stage stage, StagePlan::Origin origin);
  // What is read before what reads it.
  std::vector<int> StagesInOrder() const;
  void AppendLoopsText(int s, int indent, std::string* text) const;

  Algorithm algorithm_;
  std::vector<StagePlan> plans_;
  std::vector<std::string> steps_;
  std::vector<int> outputs_;
  absl::Status status_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SCHEDULE_PROGRAM_H_
