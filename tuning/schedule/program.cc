#include "tuning/schedule/program.h"

#include <algorithm>
#include <functional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace optrail::tuning {
namespace {

using Where = StagePlan::Where;

// Products that only decide whether something is too much.
constexpr int64_t kMost = int64_t{1} << 61;
int64_t Times(int64_t a, int64_t b) {
  return b != 0 && a > kMost / b ? kMost : a * b;
}

AccessIndex OfLoop(int64_t loop, int64_t loops) {
  AccessIndex index;
  index.coefficients.assign(loops, 0);
  index.coefficients[loop] = 1;
  return index;
}

// `outer` reads a stage that itself reads by `inner`.
Access Composed(const Access& outer, const Access& inner) {
  Access access = inner;
  const size_t loops =
      outer.dims.empty() ? 0 : outer.dims[0].coefficients.size();
  for (AccessIndex& index : access.dims) {
    const std::vector<int64_t> of_axes = index.coefficients;
    index.coefficients.assign(loops, 0);
    for (size_t axis = 0; axis < of_axes.size(); ++axis) {
      if (of_axes[axis] == 0) continue;
      const AccessIndex& through = outer.dims[axis];
      index.affine &= through.affine;
      for (size_t loop = 0; loop < loops; ++loop) {
        int64_t product;
        if (__builtin_mul_overflow(of_axes[axis], through.coefficients[loop],
                                   &product) ||
            __builtin_add_overflow(index.coefficients[loop], product,
                                   &index.coefficients[loop])) {
          index.affine = false;
        }
      }
    }
  }
  return access;
}

bool Same(const Access& a, const Access& b) {
  return a.of_input == b.of_input && a.source == b.source &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](const AccessIndex& i, const AccessIndex& j) {
                      return i.affine == j.affine &&
                             i.coefficients == j.coefficients;
                    });
}

// How far apart the first and the last element lie that are read by loops with
// so many turns, and one more.
int64_t RangeOf(const AccessIndex& index, const std::vector<int64_t>& turns) {
  int64_t range = 1;
  const size_t loops = std::min(turns.size(), index.coefficients.size());
  for (size_t loop = 0; loop < loops; ++loop) {
    range += Times(std::abs(index.coefficients[loop]), turns[loop] - 1);
    range = std::min(range, kMost);
  }
  return range;
}

absl::string_view KindName(LoopKind kind) {
  switch (kind) {
    case LoopKind::kParallel:
      return "parallel";
    case LoopKind::kVector:
      return "vectorize";
    case LoopKind::kUnrolled:
      return "unroll";
    default:
      return "for";
  }
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

std::vector<Reader> Program::Readers(int s) const {
  std::vector<Reader> readers;
  for (int reader = 0; reader < stage_count(); ++reader) {
    if (plans_[reader].where == Where::kInline) continue;
    const auto& definitions = stage(reader).definitions;
    for (size_t d = 0; d < definitions.size(); ++d) {
      for (const Access& access : definitions[d].reads) {
        if (!access.of_input && access.source == s) {
          readers.push_back({reader, static_cast<int>(d), &access});
        }
      }
    }
  }
  return readers;
}

bool Program::ReadsReduction(int s) const {
  // A chain of stencils reads its first stage on thousands of paths, which come
  // to a few accesses.
  std::vector<Access> seen;
  const std::function<bool(const Access&)> along = [&](const Access& access) {
    if (access.of_input) return false;
    if (std::any_of(seen.begin(), seen.end(), [&](const Access& earlier) {
          return Same(earlier, access);
        })) {
      return false;
    }
    seen.push_back(access);
    const Stage& source = stage(access.source);
    if (!source.HasReduction()) {
      // Through what may be inlined.
      const auto& reads = source.definitions[0].reads;
      return std::any_of(reads.begin(), reads.end(), [&](const Access& read) {
        return along(Composed(access, read));
      });
    }
    return std::any_of(access.dims.begin(), access.dims.end(),
                       [](const AccessIndex& index) {
                         return !index.affine || index.coefficients.empty() ||
                                index.coefficients[0] != 0;
                       });
  };
  for (const Definition& definition : stage(s).definitions) {
    if (std::any_of(definition.reads.begin(), definition.reads.end(), along)) {
      return true;
    }
  }
  return false;
}

std::vector<LoopPlace> Program::LoopsAround(int s, int definition) const {
  std::vector<LoopPlace> loops;
  const StagePlan& plan = plans_[s];
  if (plan.where == Where::kAt) {
    loops = LoopsAround(plan.at.stage, plan.at.definition);
    while (!loops.empty() && !(loops.back() == plan.at)) loops.pop_back();
  }
  if (definition >= 0 && definition < static_cast<int>(plan.nests.size())) {
    for (size_t l = 0; l < plan.nests[definition].size(); ++l) {
      loops.push_back({s, definition, static_cast<int>(l)});
    }
  }
  return loops;
}

std::vector<LoopPlace> Program::CommonLoops(int s) const {
  std::vector<LoopPlace> common;
  bool first = true;
  for (const Reader& reader : Readers(s)) {
    std::vector<LoopPlace> loops = LoopsAround(reader.stage, reader.definition);
    if (first) {
      common = std::move(loops);
      first = false;
      continue;
    }
    size_t same = 0;
    while (same < common.size() && same < loops.size() &&
           common[same] == loops[same]) {
      ++same;
    }
    common.resize(same);
  }
  // Not inside what becomes one instruction.
  for (size_t l = 0; l < common.size(); ++l) {
    const LoopKind kind =
        nest(common[l].stage, common[l].definition)[common[l].loop].kind;
    if (kind == LoopKind::kVector || kind == LoopKind::kUnrolled) {
      common.resize(l);
    }
  }
  return common;
}

// How far the accesses of a definition to one stage lie apart in a dimension,
// which their coefficients do not say: what all turns need of the stage beyond
// what a single access does.
int64_t Program::HaloOf(const Reader& reader, size_t d) const {
  const Definition& definition =
      stage(reader.stage).definitions[reader.definition];
  const auto accesses =
      absl::c_count_if(definition.reads, [&](const Access& access) {
        return !access.of_input && access.source == reader.access->source;
      });
  const AccessIndex& index = reader.access->dims[d];
  if (accesses < 2 || !index.affine) return 0;
  std::vector<int64_t> ranges = stage(reader.stage).extents;
  ranges.insert(ranges.end(), definition.reductions.begin(),
                definition.reductions.end());
  return std::max<int64_t>(
      0, stage(reader.access->source).extents[d] - RangeOf(index, ranges));
}

std::vector<int64_t> Program::FootprintAt(int s, const LoopPlace& place) const {
  const std::vector<int64_t>& extents = stage(s).extents;
  std::vector<int64_t> footprint(extents.size(), 1);
  for (const Reader& reader : Readers(s)) {
    const Stage& of = stage(reader.stage);
    const size_t axes = of.extents.size();
    const auto& reductions = of.definitions[reader.definition].reductions;
    std::vector<int64_t> ranges;
    if (reader.stage == place.stage && reader.definition == place.definition) {
      ranges.assign(axes + reductions.size(), 1);
      const Nest& loops = nest(reader.stage, reader.definition);
      for (size_t l = place.loop + 1; l < loops.size(); ++l) {
        if (loops[l].axis == Loop::kFused) continue;
        ranges[loops[l].axis] = Times(ranges[loops[l].axis], loops[l].extent);
      }
    } else {
      const StagePlan& plan = plans_[reader.stage];
      ranges = reader.stage == place.stage ? plan.region
               : plan.where == Where::kAt && plan.at == place
                   ? plan.region
                   : FootprintAt(reader.stage, place);
      ranges.insert(ranges.end(), reductions.begin(), reductions.end());
    }
    for (size_t r = 0; r < ranges.size(); ++r) {
      const int64_t most = r < axes ? of.extents[r] : reductions[r - axes];
      ranges[r] = std::min(ranges[r], most);
    }
    for (size_t d = 0; d < extents.size(); ++d) {
      const AccessIndex& index = reader.access->dims[d];
      const int64_t range = index.affine
                                ? RangeOf(index, ranges) + HaloOf(reader, d)
                                : extents[d];
      footprint[d] = std::max(footprint[d], std::min(range, extents[d]));
    }
  }
  return footprint;
}

std::vector<int64_t> Program::UsedIn(int s, const LoopPlace* place,
                                     int known_to) const {
  const std::vector<int64_t>& extents = stage(s).extents;
  std::vector<int64_t> used(extents.size(), 1);
  for (const Reader& reader : Readers(s)) {
    const StagePlan& plan = plans_[reader.stage];
    const auto& reductions =
        stage(reader.stage).definitions[reader.definition].reductions;
    std::vector<int64_t> ranges;
    if (place != nullptr && reader.stage == place->stage &&
        reader.definition == place->definition) {
      ranges.assign(plan.region.size() + reductions.size(), 1);
      const Nest& loops = nest(reader.stage, reader.definition);
      for (size_t l = place->loop + 1; l < loops.size(); ++l) {
        if (loops[l].axis == Loop::kFused) continue;
        ranges[loops[l].axis] = Times(ranges[loops[l].axis], loops[l].extent);
      }
      // Turns that overlap stay within.
      for (size_t axis = 0; axis < plan.region.size(); ++axis) {
        ranges[axis] = std::min(ranges[axis], plan.region[axis]);
      }
    } else {
      ranges = ComputedIn(reader.stage, place, known_to);
      ranges.insert(ranges.end(), reductions.begin(), reductions.end());
    }
    for (size_t d = 0; d < extents.size(); ++d) {
      const AccessIndex& index = reader.access->dims[d];
      const int64_t range = index.affine ? RangeOf(index, ranges) : extents[d];
      const int64_t with_halo = std::min(range + HaloOf(reader, d), extents[d]);
      used[d] = std::max({used[d], range, with_halo});
    }
  }
  return used;
}

std::vector<int64_t> Program::ComputedIn(int s, const LoopPlace* place,
                                         int known_to) const {
  const StagePlan& plan = plans_[s];
  if (plan.where == Where::kRoot) {
    return IsOutput(s) ? plan.region : UsedIn(s, nullptr, s);
  }
  if (known_to != kAll) {
    const std::vector<LoopPlace> around = LoopsAround(known_to, -1);
    if (!absl::c_linear_search(around, plan.at)) {
      return UsedIn(s, place, known_to);
    }
  }
  std::vector<int64_t> computed = UsedIn(s, place, s);
  const std::vector<int64_t> wanted = UsedIn(s, &plan.at, s);
  for (size_t d = 0; d < computed.size(); ++d) {
    if (!plan.bounded[d]) continue;
    computed[d] += std::max<int64_t>(0, plan.region[d] - wanted[d]);
  }
  return computed;
}

// An assertion of the code, or its bounds, would refuse the same once it is
// compiled.
absl::Status Program::CheckReads() const {
  for (int s = 0; s < stage_count(); ++s) {
    const StagePlan& plan = plans_[s];
    if (plan.where == Where::kInline) continue;
    const auto refused = [&](absl::string_view what, size_t d, int64_t used,
                             int64_t has) {
      return absl::InvalidArgumentError(absl::StrCat(
          "stage ", s, " (", stage(s).name, "): ", what, " axis ", d, " of ",
          has, " would be read as ", used, ": tiles overlap"));
    };
    if (plan.where == Where::kAt) {
      const std::vector<int64_t> used = UsedIn(s, &plan.at, kAll);
      for (size_t d = 0; d < used.size(); ++d) {
        if (plan.bounded[d] && used[d] > plan.region[d]) {
          return refused("its", d, used[d], plan.region[d]);
        }
      }
    }
    const std::vector<int64_t> computed = ComputedIn(s, nullptr, kAll);
    for (const Definition& definition : stage(s).definitions) {
      std::vector<int64_t> ranges = computed;
      ranges.insert(ranges.end(), definition.reductions.begin(),
                    definition.reductions.end());
      for (const Access& access : definition.reads) {
        if (!access.of_input) continue;
        const Extents& input = algorithm_.inputs[access.source];
        for (size_t d = 0; d < access.dims.size(); ++d) {
          if (!access.dims[d].affine) continue;
          const int64_t used = RangeOf(access.dims[d], ranges);
          if (used > input.extents[d]) {
            return refused(absl::StrCat(input.name, "'s"), d, used,
                           input.extents[d]);
          }
        }
      }
    }
  }
  return absl::OkStatus();
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

absl::Status Program::Check() const {
  if (!status_.ok()) return status_;
  for (int s = 0; s < stage_count(); ++s) {
    const StagePlan& plan = plans_[s];
    if (plan.where == Where::kInline) continue;
    const auto refused = [&](absl::string_view what, int64_t has,
                             int64_t most) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", s, " (", stage(s).name, "): ", what, " ", has,
                       ", at most ", most));
    };
    if (plan.where == Where::kUndecided) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", s, " is computed nowhere"));
    }
    int64_t bytes = stage(s).element_bytes;
    for (const int64_t extent : plan.region) bytes = Times(bytes, extent);
    if (!IsOutput(s) && bytes > kMaxAllocationBytes) {
      return refused("bytes", bytes, kMaxAllocationBytes);
    }
    for (size_t d = 0; d < plan.nests.size(); ++d) {
      int64_t lanes = 1, unrolled = 1;
      for (const Loop& loop : plan.nests[d]) {
        if (loop.kind == LoopKind::kVector) lanes = Times(lanes, loop.extent);
        if (loop.kind == LoopKind::kUnrolled) {
          unrolled = Times(unrolled, loop.extent);
        }
      }
      if (lanes > kMaxLanes) return refused("lanes", lanes, kMaxLanes);
      // A multiplication and an addition are one operation.
      const double flop = stage(s).definitions[d].flop;
      const auto operations = static_cast<int64_t>(std::max(1.0, flop / 2));
      if (Times(unrolled, operations) > kMaxUnrolledOperations) {
        return refused("unrolled operations", Times(unrolled, operations),
                       kMaxUnrolledOperations);
      }
    }
  }
  return CheckReads();
}

std::string Program::StepsText() const {
  return absl::StrCat(absl::StrJoin(steps_, "\n"), "\n");
}

std::vector<int> Program::StagesInOrder() const {
  std::vector<int> order;
  std::vector<bool> seen(stage_count());
  const std::function<void(int)> visit = [&](int s) {
    if (seen[s]) return;
    seen[s] = true;
    for (const Definition& definition : stage(s).definitions) {
      for (const Access& access : definition.reads) {
        if (!access.of_input) visit(access.source);
      }
    }
    order.push_back(s);
  };
  for (const int output : outputs_) visit(output);
  return order;
}

void Program::AppendLoopsText(int s, int indent, std::string* text) const {
  const auto computed_at = [&](const LoopPlace& place) {
    for (const int other : StagesInOrder()) {
      if (plans_[other].where == Where::kAt && plans_[other].at == place) {
        AppendLoopsText(other, indent, text);
      }
    }
  };
  const int begin = indent;
  for (size_t d = 0; d < plans_[s].nests.size(); ++d) {
    indent = begin;
    for (size_t l = 0; l < plans_[s].nests[d].size(); ++l) {
      const Loop& loop = plans_[s].nests[d][l];
      // Once round is no loop.
      if (loop.extent > 1) {
        absl::StrAppend(text, std::string(indent, ' '), KindName(loop.kind),
                        " ", loop.name, " < ", loop.extent, "\n");
        indent += 2;
      }
      computed_at({s, static_cast<int>(d), static_cast<int>(l)});
    }
    std::vector<std::string> reads;
    if (d > 0) reads.push_back(stage(s).name);
    for (const Access& access : stage(s).definitions[d].reads) {
      const std::string& name = access.of_input
                                    ? algorithm_.inputs[access.source].name
                                    : stage(access.source).name;
      if (!absl::c_linear_search(reads, name)) reads.push_back(name);
    }
    absl::StrAppend(text, std::string(indent, ' '), stage(s).name, " = ",
                    reads.empty()
                        ? "constant"
                        : absl::StrCat("f(", absl::StrJoin(reads, ", "), ")"),
                    "\n");
  }
}

std::string Program::SketchText() const {
  std::vector<std::string> parts;
  std::vector<int> order = StagesInOrder();
  std::reverse(order.begin(), order.end());
  for (const int s : order) {
    const StagePlan& plan = plans_[s];
    std::string part = stage(s).name;
    if (plan.where == Where::kInline) {
      part += " inlined";
    } else if (plan.where == Where::kAt) {
      absl::StrAppend(&part, " in ", stage(plan.at.stage).name);
    } else {
      part += " at root";
    }
    for (const Nest& nest : plan.nests) {
      const auto is_parallel = [](const Loop& loop) {
        return loop.kind == LoopKind::kParallel;
      };
      if (absl::c_any_of(nest, is_parallel)) {
        part += ", parallel";
        break;
      }
    }
    parts.push_back(std::move(part));
  }
  return absl::StrJoin(parts, "; ");
}

std::string Program::LoopsText() const {
  std::string text;
  for (const int s : StagesInOrder()) {
    if (plans_[s].where == Where::kRoot) AppendLoopsText(s, 0, &text);
  }
  return text;
}

}  // namespace optrail::tuning
