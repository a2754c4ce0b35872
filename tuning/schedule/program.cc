#include "tuning/schedule/program.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optrail::tuning {
namespace {

using Where = StagePlan::Where;

AccessIndex OfLoop(int64_t loop, int64_t loops) {
  AccessIndex index;
  index.coefficients.assign(loops, 0);
  index.coefficients[loop] = 1;
  return index;
}
// A stage that reads another one, or an input, element by element.
Stage CopyOf(const Extents& of, absl::string_view suffix, bool of_input,
             int source) {
  Stage stage;
  static_cast<Extents&>(stage) = of;
  absl::StrAppend(&stage.name, suffix);
  Access read;
  read.of_input = of_input;
  read.source = source;
  const int64_t axes = static_cast<int64_t>(stage.extents.size());
  for (int64_t d = 0; d < axes; ++d) read.dims.push_back(OfLoop(d, axes));
  stage.definitions.resize(1);
  stage.definitions[0].reads.push_back(std::move(read));
  return stage;
}

}  // namespace

Program::Program(Algorithm algorithm)
    : algorithm_(std::move(algorithm)),
      plans_(algorithm_.stages.size()),
      outputs_(algorithm_.outputs) {}

bool Program::IsOutput(int s) const {
  return absl::c_linear_search(outputs_, s);
}

void Program::Refuse(const std::string& why) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(why);
}
Nest Program::NestOf(int s, int definition) const {
  Nest loops;
  const std::vector<int64_t>& reductions =
      stage(s).definitions[definition].reductions;
  const int axes = static_cast<int>(stage(s).extents.size());
  for (int d = axes - 1; d >= 0; --d) {
    loops.push_back({absl::StrCat("x", d), plans_[s].region[d], d});
  }
  for (int r = static_cast<int>(reductions.size()) - 1; r >= 0; --r) {
    loops.push_back({absl::StrCat("r", r), reductions[r], axes + r});
  }
  return loops;
}

void Program::BecomePlaced(int s, std::vector<int64_t> region) {
  StagePlan& plan = plans_[s];
  plan.bounded.assign(region.size(), false);
  plan.region = std::move(region);
  for (size_t d = 0; d < stage(s).definitions.size(); ++d) {
    plan.nests.push_back(NestOf(s, static_cast<int>(d)));
  }
}

void Program::ComputeInline(int s) {
  if (stage(s).definitions.size() != 1 || IsOutput(s)) {
    return Refuse(absl::StrCat("stage ", s, " cannot be inlined"));
  }
  const Definition& inlined = stage(s).definitions[0];
  for (int reader = 0; reader < stage_count(); ++reader) {
    for (Definition& definition : algorithm_.stages[reader].definitions) {
      std::vector<Access> reads;
      for (const Access& access : definition.reads) {
        if (access.of_input || access.source != s) {
          reads.push_back(access);
          continue;
        }
        definition.flop += inlined.flop;
        for (const Access& inner : inlined.reads) {
          reads.push_back(Composed(access, inner));
        }
      }
      definition.reads = std::move(reads);
    }
  }
  plans_[s].where = Where::kInline;
  Step(absl::StrCat("inline ", s));
}

void Program::ComputeRoot(int s) {
  plans_[s].where = Where::kRoot;
  BecomePlaced(s, stage(s).extents);
  Step(absl::StrCat("root ", s));
}

void Program::ComputeAt(int s, const LoopPlace& place) {
  const std::vector<Reader> readers = Readers(s);
  plans_[s].where = Where::kAt;
  plans_[s].at = place;
  BecomePlaced(s, FootprintAt(s, place));
  Step(absl::StrCat("at ", s, " ", place.stage, " ", place.definition, " ",
                    nest(place.stage, place.definition)[place.loop].name));
  // Said, since a compiler that has to prove it now and then cannot, keeps
  // arrays of any size and reads beyond inputs. Several readers may want
  // neighbours of each other's.
  if (readers.size() != 1) return;
  for (size_t d = 0; d < readers[0].access->dims.size(); ++d) {
    if (!readers[0].access->dims[d].affine) continue;
    plans_[s].bounded[d] = true;
    Step(absl::StrCat("extent ", s, " ", d, " ", plans_[s].region[d]));
  }
}

Nest* Program::FindNest(int s, int definition) {
  if (s < 0 || s >= stage_count() || definition < 0 ||
      definition >= static_cast<int>(plans_[s].nests.size())) {
    Refuse(
        absl::StrCat("stage ", s, " has no loops of definition ", definition));
    return nullptr;
  }
  return &plans_[s].nests[definition];
}

int Program::FindLoop(const Nest& nest, absl::string_view name) const {
  for (size_t l = 0; l < nest.size(); ++l) {
    if (nest[l].name == name) return static_cast<int>(l);
  }
  return -1;
}

LoopNames Program::Split(int s, int definition, const std::string& loop,
                         int64_t factor) {
  const LoopNames names = {loop + "o", loop + "i"};
  Nest* const loops = FindNest(s, definition);
  const int l = loops == nullptr ? -1 : FindLoop(*loops, loop);
  if (l < 0 || factor < 1 || factor > (*loops)[l].extent ||
      (*loops)[l].kind != LoopKind::kSerial) {
    Refuse(absl::StrCat("stage ", s, ", definition ", definition, ": loop ",
                        loop, " cannot be split by ", factor));
    return names;
  }
  // Nothing beyond the extent is computed, which would read beyond inputs: the
  // last turn overlaps. If that would count elements twice, there is no tail:
  // guards are wrong in Halide 14 beneath vectors that are unrolled.
  const bool tail = (*loops)[l].extent % factor != 0;
  if (tail && stage(s).definitions.size() > 1) {
    Refuse(absl::StrCat("stage ", s, ": ", factor, " does not divide loop ",
                        loop, " of ", (*loops)[l].extent,
                        ", and updates take no tail"));
    return names;
  }
  Loop outer = (*loops)[l], inner = (*loops)[l];
  outer.name = names.outer;
  outer.extent = (outer.extent + factor - 1) / factor;
  inner.name = names.inner;
  inner.extent = factor;
  (*loops)[l] = outer;
  loops->insert(loops->begin() + l + 1, inner);
  Step(absl::StrCat("split ", s, " ", definition, " ", loop, " ", factor,
                    tail ? " shift" : ""));
  return names;
}

void Program::Reorder(int s, int definition,
                      const std::vector<std::string>& order) {
  Nest* const loops = FindNest(s, definition);
  if (loops == nullptr) return;
  Nest reordered;
  for (const std::string& name : order) {
    const int l = FindLoop(*loops, name);
    if (l < 0 || FindLoop(reordered, name) >= 0) {
      return Refuse(absl::StrCat("stage ", s, ": no loop ", name, " to order"));
    }
    reordered.push_back((*loops)[l]);
  }
  if (reordered.size() != loops->size()) {
    return Refuse(absl::StrCat("stage ", s, ": an order of ", reordered.size(),
                               " of ", loops->size(), " loops"));
  }
  *loops = std::move(reordered);
  if (order.size() > 1) {
    Step(absl::StrCat("reorder ", s, " ", definition, " ",
                      absl::StrJoin(order, " ")));
  }
}

std::string Program::FuseOuter(int s, int definition) {
  Nest* const loops = FindNest(s, definition);
  if (loops == nullptr || loops->size() < 2 ||
      (*loops)[0].kind != LoopKind::kSerial ||
      (*loops)[1].kind != LoopKind::kSerial) {
    Refuse(absl::StrCat("stage ", s, ": no two outer loops to fuse"));
    return "";
  }
  Loop fused = (*loops)[0];
  const Loop inner = (*loops)[1];
  fused.name = absl::StrCat("f", loops->size());
  fused.extent = Times(fused.extent, inner.extent);
  fused.axis = Loop::kFused;
  Step(absl::StrCat("fuse ", s, " ", definition, " ", (*loops)[0].name, " ",
                    inner.name, " ", fused.name));
  loops->erase(loops->begin());
  (*loops)[0] = fused;
  return fused.name;
}

void Program::Mark(int s, int definition, const std::string& loop,
                   LoopKind kind) {
  Nest* const loops = FindNest(s, definition);
  const int l = loops == nullptr ? -1 : FindLoop(*loops, loop);
  if (l < 0 || (*loops)[l].kind != LoopKind::kSerial) {
    return Refuse(
        absl::StrCat("stage ", s, ": no loop ", loop, " to ", KindName(kind)));
  }
  (*loops)[l].kind = kind;
  Step(absl::StrCat(KindName(kind), " ", s, " ", definition, " ", loop));
}

void Program::SetLevel(int s, int definition, const std::string& loop,
                       int level) {
  Nest* const loops = FindNest(s, definition);
  const int l = loops == nullptr ? -1 : FindLoop(*loops, loop);
  if (l >= 0) (*loops)[l].level = level;
}

void Program::AppendStage(Stage stage, StagePlan::Origin origin) {
  algorithm_.stages.push_back(std::move(stage));
  plans_.emplace_back();
  plans_.back().origin = origin;
}

int Program::CacheWrite(int s) {
  const int copy = stage_count();
  for (Stage& reader : algorithm_.stages) {
    for (Definition& definition : reader.definitions) {
      for (Access& access : definition.reads) {
        if (!access.of_input && access.source == s) access.source = copy;
      }
    }
  }
  AppendStage(CopyOf(algorithm_.stages[s], ".out", /*of_input=*/false, s),
              StagePlan::Origin::kCacheWrite);
  std::replace(outputs_.begin(), outputs_.end(), s, copy);
  Step(absl::StrCat("cache_write ", s));
  return copy;
}

int Program::CacheRead(int s, bool of_input, int source) {
  const int copy = stage_count();
  Stage stage =
      CopyOf(of_input ? algorithm_.inputs[source]
                      : static_cast<const Extents&>(algorithm_.stages[source]),
             ".in", of_input, source);
  for (Definition& definition : algorithm_.stages[s].definitions) {
    for (Access& access : definition.reads) {
      if (access.of_input != of_input || access.source != source) continue;
      access.of_input = false;
      access.source = copy;
    }
  }
  AppendStage(std::move(stage), StagePlan::Origin::kCacheRead);
  Step(absl::StrCat("cache_read ", s, " ", of_input ? "input" : "stage", " ",
                    source));
  return copy;
}

int Program::Rfactor(int s, int definition, int reduction, int64_t factor) {
  const int partial = stage_count();
  const Definition whole = stage(s).definitions[definition];
  if (definition < 1 ||
      reduction >= static_cast<int>(whole.reductions.size()) || factor < 2 ||
      whole.reductions[reduction] % factor != 0) {
    Refuse(absl::StrCat("stage ", s, ": reduction ", reduction,
                        " cannot be cut into ", factor, " partial results"));
    return s;
  }
  const size_t axes = stage(s).extents.size();
  Stage stage;
  static_cast<Extents&>(stage) = algorithm_.stages[s];
  stage.name += ".partial";
  stage.extents.push_back(factor);
  stage.definitions.resize(2);
  Definition& update = stage.definitions[1];
  update = whole;
  update.reductions[reduction] /= factor;
  // Loops are now: axes, the new axis, reductions; what was reduction r is
  // r * factor + the new axis.
  for (Access& access : update.reads) {
    for (AccessIndex& index : access.dims) {
      const int64_t coefficient = index.coefficients[axes + reduction];
      index.coefficients[axes + reduction] = coefficient * factor;
      index.coefficients.insert(index.coefficients.begin() + axes, coefficient);
    }
  }
  Definition& rest = algorithm_.stages[s].definitions[definition];
  rest.reductions = {factor};
  rest.flop = 1;
  Access read;
  read.source = partial;
  for (size_t d = 0; d <= axes; ++d) {
    read.dims.push_back(OfLoop(d, axes + 1));
  }
  rest.reads = {std::move(read)};
  AppendStage(std::move(stage), StagePlan::Origin::kRfactor);
  Step(absl::StrCat("rfactor ", s, " ", definition, " ", reduction, " ",
                    factor));
  return partial;
}

void Program::SetStorage(int s, std::vector<int> axes) {
  Step(absl::StrCat("storage ", s, " ", absl::StrJoin(axes, " ")));
  plans_[s].storage = std::move(axes);
}

}  // namespace optrail::tuning
