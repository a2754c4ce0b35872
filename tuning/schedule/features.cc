#include "tuning/schedule/features.h"

#include <algorithm>
#include <cmath>

namespace optrail::tuning {
namespace {

constexpr size_t kStages = 5;
constexpr double kCacheBytes[] = {32 << 10, 1 << 20, 16 << 20};

float Log(double value) {
  return static_cast<float>(std::log2(std::max(value, 1e-3)));
}

// Bytes that a definition touches in its innermost loops from `first` on.
double Touched(const Program& program, int s, int d, size_t first) {
  const Stage& stage = program.stage(s);
  const Definition& definition = stage.definitions[d];
  const size_t axes = stage.extents.size();
  std::vector<double> ranges(axes + definition.reductions.size(), 1);
  const Nest& nest = program.nest(s, d);
  for (size_t l = first; l < nest.size(); ++l) {
    if (nest[l].axis != Loop::kFused) {
      ranges[nest[l].axis] *= static_cast<double>(nest[l].extent);
    }
  }
  double bytes = stage.element_bytes;
  for (size_t d = 0; d < axes; ++d) bytes *= ranges[d];
  for (const Access& access : definition.reads) {
    const Extents& source =
        access.of_input
            ? program.algorithm().inputs[access.source]
            : static_cast<const Extents&>(program.stage(access.source));
    double read = source.element_bytes;
    for (size_t i = 0; i < access.dims.size(); ++i) {
      const AccessIndex& index = access.dims[i];
      double range = 1;
      for (size_t r = 0; r < ranges.size(); ++r) {
        range += std::abs(static_cast<double>(index.coefficients[r])) *
                 (ranges[r] - 1);
      }
      const auto extent = static_cast<double>(source.extents[i]);
      read *= index.affine ? std::min(range, extent) : extent;
    }
    bytes += read;
  }
  return bytes;
}

struct StageFeatures {
  double work = 0;
  // Of all definitions, each time that the stage is computed: turns of loops,
  // and instructions on vectors, reads among them.
  double turns = 0, instructions = 0, reads = 0;
  std::vector<float> values;
};

// How the reads of a definition go along the axis of its vectors.
struct ReadKinds {
  int contiguous = 0, broadcast = 0, gathered = 0;
};

ReadKinds ReadsAlong(int vector_axis, const Definition& definition) {
  ReadKinds kinds;
  for (const Access& access : definition.reads) {
    bool moves = false, first = false;
    for (size_t i = 0; i < access.dims.size() && vector_axis >= 0; ++i) {
      const AccessIndex& index = access.dims[i];
      const bool here = !index.affine || index.coefficients[vector_axis] != 0;
      moves |= here;
      if (i == 0 && index.affine && index.coefficients[vector_axis] == 1) {
        first = true;
      } else if (here) {
        first = false;
      }
    }
    ++(!moves ? kinds.broadcast : first ? kinds.contiguous : kinds.gathered);
  }
  return kinds;
}

// Adds a definition's turns, reads and instructions, in a nest that `visits`
// others go through.
void AddTurns(const Nest& nest, const Stage& stage,
              const Definition& definition, double visits,
              StageFeatures* features) {
  double turns = visits, calls = visits, wide = 1;
  for (const Loop& loop : nest) {
    const auto extent = static_cast<double>(loop.extent);
    if (loop.kind == LoopKind::kVector) {
      wide *= extent;
    } else {
      calls *= extent;
      if (loop.kind != LoopKind::kUnrolled) turns *= extent;
    }
  }
  calls *= std::ceil(wide * stage.element_bytes / 64);
  const auto reads = static_cast<double>(definition.reads.size());
  features->turns += turns;
  features->reads += calls * reads;
  features->instructions += calls * (1 + definition.flop + reads);
}

// The innermost loop that is left: where its cost is shared by few, loop
// overhead shows.
float InnermostSerial(const Nest& nest) {
  for (auto loop = nest.rbegin(); loop != nest.rend(); ++loop) {
    if (loop->kind == LoopKind::kSerial) {
      return Log(static_cast<double>(loop->extent));
    }
  }
  return 0;
}

StageFeatures Of(const Program& program, int s) {
  const StagePlan& plan = program.plan(s);
  const Stage& stage = program.stage(s);
  const int d = static_cast<int>(plan.nests.size()) - 1;
  const Nest& nest = plan.nests[d];
  double visits = 1;
  const std::vector<LoopPlace> around = program.LoopsAround(s, -1);
  double grain = 0;
  for (const LoopPlace& place : around) {
    const Loop& loop = program.nest(place.stage, place.definition)[place.loop];
    visits *= static_cast<double>(loop.extent);
    if (loop.kind == LoopKind::kParallel) grain = visits;
  }
  double lanes = 1, unrolled = 1, inner = 1, points = 1, tasks = grain;
  int vector_axis = -1;
  for (const Loop& loop : nest) {
    const auto extent = static_cast<double>(loop.extent);
    points *= extent;
    if (loop.kind == LoopKind::kVector) {
      lanes *= extent;
      vector_axis = loop.axis;
    }
    if (loop.kind == LoopKind::kUnrolled) unrolled *= extent;
    if (loop.kind == LoopKind::kParallel) tasks = visits * extent;
    if (loop.level == 0 && loop.axis < static_cast<int>(stage.extents.size())) {
      inner *= extent;
    }
  }
  double whole = 1, region = 1;
  for (const int64_t extent : stage.extents) whole *= extent;
  for (const int64_t extent : plan.region) region *= extent;
  const ReadKinds reads = ReadsAlong(vector_axis, stage.definitions[d]);
  StageFeatures features;
  for (size_t n = 0; n < plan.nests.size(); ++n) {
    AddTurns(plan.nests[n], stage, stage.definitions[n], visits, &features);
  }
  const double operations = visits * points;
  features.work = operations * std::max(1.0, stage.definitions[d].flop);
  features.values = {Log(features.work),
                     Log(visits * region / whole),
                     Log(lanes),
                     Log(unrolled),
                     Log(inner / lanes),
                     static_cast<float>(reads.contiguous),
                     static_cast<float>(reads.broadcast),
                     static_cast<float>(reads.gathered),
                     Log(tasks + 1),
                     static_cast<float>(around.size()),
                     Log(region * stage.element_bytes),
                     static_cast<float>(plan.where == StagePlan::Where::kAt),
                     static_cast<float>(plan.origin),
                     static_cast<float>(!plan.storage.empty())};
  for (const double cache : kCacheBytes) {
    double outside = visits;
    double bytes = 0;
    for (size_t first = 0; first <= nest.size(); ++first) {
      bytes = Touched(program, s, d, first);
      if (bytes <= cache || first == nest.size()) break;
      outside *= static_cast<double>(nest[first].extent);
    }
    features.values.push_back(Log(outside * bytes / operations));
  }
  features.values.push_back(InnermostSerial(nest));
  return features;
}

}  // namespace

std::vector<float> FeaturesOf(const Program& program) {
  std::vector<StageFeatures> stages;
  for (int s = 0; s < program.stage_count(); ++s) {
    const auto where = program.plan(s).where;
    if (where == StagePlan::Where::kInline ||
        where == StagePlan::Where::kUndecided) {
      continue;
    }
    stages.push_back(Of(program, s));
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [](const StageFeatures& a, const StageFeatures& b) {
                     return a.work > b.work;
                   });
  double work = 0, turns = 0, instructions = 0, reads = 0;
  for (const StageFeatures& stage : stages) {
    work += stage.work;
    turns += stage.turns;
    instructions += stage.instructions;
    reads += stage.reads;
  }
  std::vector<float> features = {Log(work),  static_cast<float>(stages.size()),
                                 Log(turns), Log(instructions),
                                 Log(reads), Log(reads / instructions)};
  const size_t width = stages.empty() ? 0 : stages[0].values.size();
  for (size_t i = 0; i < kStages; ++i) {
    if (i < stages.size()) {
      features.insert(features.end(), stages[i].values.begin(),
                      stages[i].values.end());
    } else {
      features.insert(features.end(), width, -20.0f);
    }
  }
  return features;
}

}  // namespace optrail::tuning
