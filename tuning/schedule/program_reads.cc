// Tells what the stages of a program read of each other, and how much of it.

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tuning/schedule/program.h"

namespace optrail::tuning {
namespace {

using Where = StagePlan::Where;

// Products that only decide whether something is too much.
constexpr int64_t kMost = int64_t{1} << 61;

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
    range +=
        Program::Times(std::abs(index.coefficients[loop]), turns[loop] - 1);
    range = std::min(range, kMost);
  }
  return range;
}

}  // namespace

int64_t Program::Times(int64_t a, int64_t b) {
  return b != 0 && a > kMost / b ? kMost : a * b;
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

}  // namespace optrail::tuning
