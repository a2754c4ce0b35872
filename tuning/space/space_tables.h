#ifndef OPTRAIL_TUNING_SPACE_SPACE_TABLES_H_
#define OPTRAIL_TUNING_SPACE_SPACE_TABLES_H_

// The parts of a BoundSpace. Only for space.cc, bound_space.cc and binder.cc.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "tuning/space/diagram.h"
#include "tuning/space/expression.h"
#include "tuning/space/space.h"
#include "tuning/space/space_parser.h"

namespace optrail::tuning {

struct SpaceTables {
  explicit SpaceTables(Space s) : space(std::move(s)), frame(0) {}

  Space space;
  proto::Shape shape;
  proto::Hardware hardware;
  std::vector<std::string> notes;
  std::string default_refusal;

  std::vector<KnobLevels> knobs;
  // Per knob and level, the number that expressions see.
  std::vector<std::vector<int64_t>> values;

  // A superset of the valid configs, as independent groups; ...
  std::vector<Diagram> groups;
  std::vector<int> group_of;  // per knob
  // ... its size, 0 if above 2^62 (then nothing needs it); ...
  int64_t superset_count = 0;
  // ... and what remains to be checked. Mostly there is nothing.
  struct Filter {
    SlotProgram program;
    int last_knob = 0;
  };
  std::vector<Filter> filters;
  std::function<bool(absl::Span<const int64_t>)> predicate;
  // With filters: the valid configs by their rank in the superset, if listed.
  bool listed = false;
  std::vector<int64_t> ranks;
  absl::optional<int64_t> count;

  Frame frame;                           // of what follows, and of the filters
  std::vector<SlotProgram> constraints;  // as in ParsedSpace::constraints
  absl::optional<SlotProgram> prior;
  // ParsedSpace::fact_constraints with nothing but facts unknown.
  std::vector<Expression> fact_constraints;

  Levels default_levels;
  proto::Config default_config;

  const ParsedSpace& parsed() const { return space.parsed(); }
  bool has_filters() const { return !filters.empty() || predicate != nullptr; }

  // Slots to evaluate with, knobs set to `levels`.
  using Slots = absl::InlinedVector<int64_t, 128>;
  Slots MakeSlots(absl::Span<const uint16_t> levels) const;

  proto::KnobValue ValueOf(size_t knob, uint16_t level) const;
  // -1 where the knob has no such level for this shape.
  int LevelOf(size_t knob, const proto::KnobValue& value) const;
  bool InRange(absl::Span<const uint16_t> levels) const;
  bool PassesFilters(absl::Span<const uint16_t> levels) const;
  bool PassesPredicate(absl::Span<const uint16_t> levels) const;
  // Ranks are lexicographic.
  Levels SupersetAt(int64_t rank) const;
  absl::optional<int64_t> SupersetRank(absl::Span<const uint16_t> levels) const;
  bool InSuperset(absl::Span<const uint16_t> levels) const;
  Levels SampleSuperset(Rng& rng) const;
};

// The levels, constraints and attributes of a binding, before anything is
// counted.
struct Binding {
  std::vector<KnobLevels> knobs;
  std::vector<std::vector<int64_t>> values;
  std::vector<Expression> implied;           // by splits
  std::vector<Expression> constraints;       // as in ParsedSpace::constraints
  std::vector<Expression> fact_constraints;  // facts are unknown
  absl::optional<Expression> prior;
  proto::Config default_config;  // without what depends on the shape
  // The values for this shape and hardware, in order, by index of knob; the
  // prior chooses among several.
  std::vector<std::vector<std::pair<int, std::vector<proto::KnobValue>>>>
      default_rules;
  std::vector<std::string> notes;
};

absl::StatusOr<Binding> MakeBinding(const ParsedSpace& parsed,
                                    const proto::Shape& shape,
                                    const proto::Hardware& hardware,
                                    int threads);

// Steps between a config and a target, knob by knob; see
// BoundSpace::default_config.
int64_t StepsBetween(const KnobLevels& knob, int level, int target);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_SPACE_TABLES_H_
