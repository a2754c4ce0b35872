#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space.h"
#include "tuning/space/space_parser.h"
#include "tuning/space/space_tables.h"

namespace optrail::tuning {

using NodePerGroup = absl::InlinedVector<uint32_t, 16>;

namespace {

NodePerGroup Roots(const SpaceTables& tables) {
  NodePerGroup nodes;
  for (const Diagram& group : tables.groups) nodes.push_back(group.root());
  return nodes;
}

}  // namespace

SpaceTables::Slots SpaceTables::MakeSlots(
    absl::Span<const uint16_t> levels) const {
  const std::vector<int64_t>& constants = frame.slots();
  Slots slots(constants.begin(), constants.end());
  for (size_t k = 0; k < levels.size(); ++k) slots[k] = values[k][levels[k]];
  return slots;
}

bool SpaceTables::InRange(absl::Span<const uint16_t> levels) const {
  if (levels.size() != knobs.size()) return false;
  for (size_t k = 0; k < levels.size(); ++k) {
    if (levels[k] >= knobs[k].size()) return false;
  }
  return true;
}

bool SpaceTables::PassesPredicate(absl::Span<const uint16_t> levels) const {
  if (predicate == nullptr) return true;
  absl::InlinedVector<int64_t, 64> numbers;
  for (size_t k = 0; k < levels.size(); ++k) {
    numbers.push_back(knobs[k].ordinal ? knobs[k].ints[levels[k]] : levels[k]);
  }
  return predicate(numbers);
}

bool SpaceTables::PassesFilters(absl::Span<const uint16_t> levels) const {
  if (!filters.empty()) {
    Slots slots = MakeSlots(levels);
    for (const Filter& filter : filters) {
      if (!filter.program.Holds(slots.data())) return false;
    }
  }
  return PassesPredicate(levels);
}

bool SpaceTables::InSuperset(absl::Span<const uint16_t> levels) const {
  NodePerGroup nodes = Roots(*this);
  for (size_t k = 0; k < levels.size(); ++k) {
    uint32_t& node = nodes[group_of[k]];
    const Diagram::Edge* edge =
        groups[group_of[k]].EdgeOfLevel(node, levels[k]);
    if (edge == nullptr) return false;
    node = edge->child;
  }
  return true;
}

Levels SpaceTables::SupersetAt(int64_t rank) const {
  NodePerGroup nodes = Roots(*this);
  // Configs of the superset that share the prefix so far.
  int64_t below = superset_count;
  Levels levels(knobs.size());
  for (size_t k = 0; k < levels.size(); ++k) {
    const Diagram& group = groups[group_of[k]];
    uint32_t& node = nodes[group_of[k]];
    const int64_t others = below / group.CountBelow(node);
    const Diagram::Edge& edge = group.EdgeOfIndex(node, rank / others);
    rank -= edge.before * others;
    below = group.CountBelow(edge.child) * others;
    levels[k] = edge.level;
    node = edge.child;
  }
  return levels;
}

absl::optional<int64_t> SpaceTables::SupersetRank(
    absl::Span<const uint16_t> levels) const {
  NodePerGroup nodes = Roots(*this);
  int64_t below = superset_count;
  int64_t rank = 0;
  for (size_t k = 0; k < levels.size(); ++k) {
    const Diagram& group = groups[group_of[k]];
    uint32_t& node = nodes[group_of[k]];
    const Diagram::Edge* edge = group.EdgeOfLevel(node, levels[k]);
    if (edge == nullptr) return absl::nullopt;
    const int64_t others = below / group.CountBelow(node);
    rank += edge->before * others;
    below = group.CountBelow(edge->child) * others;
    node = edge->child;
  }
  return rank;
}

Levels SpaceTables::SampleSuperset(Rng& rng) const {
  Levels levels(knobs.size());
  for (const Diagram& group : groups) {
    int64_t index = rng.UniformInt(group.count());
    uint32_t node = group.root();
    for (int knob : group.knobs()) {
      const Diagram::Edge& edge = group.EdgeOfIndex(node, index);
      index -= edge.before;
      levels[knob] = edge.level;
      node = edge.child;
    }
  }
  return levels;
}

int SpaceTables::LevelOf(size_t knob, const proto::KnobValue& value) const {
  const ParsedKnob& declared = parsed().knobs[knob];
  const absl::optional<int64_t> number = tuning::ValueOf(declared, value);
  if (!number.has_value()) return -1;
  if (!declared.ordinal()) return static_cast<int>(*number);
  const std::vector<int64_t>& ints = knobs[knob].ints;
  const auto found = std::lower_bound(ints.begin(), ints.end(), *number);
  if (found == ints.end() || *found != *number) return -1;
  return static_cast<int>(found - ints.begin());
}

proto::KnobValue SpaceTables::ValueOf(size_t knob, uint16_t level) const {
  proto::KnobValue value;
  value.set_knob(knobs[knob].name);
  switch (parsed().knobs[knob].kind) {
    case ParsedKnob::kBoolean:
      value.set_bool_(level != 0);
      break;
    case ParsedKnob::kVariants:
      value.set_variant(knobs[knob].labels[level]);
      break;
    default:
      value.set_int_(knobs[knob].ints[level]);
  }
  return value;
}

BoundSpace::BoundSpace(std::unique_ptr<SpaceTables> tables)
    : tables_(std::move(tables)) {}
BoundSpace::~BoundSpace() = default;

const Space& BoundSpace::space() const { return tables_->space; }
const proto::Shape& BoundSpace::shape() const { return tables_->shape; }
const proto::Hardware& BoundSpace::hardware() const {
  return tables_->hardware;
}
absl::Span<const KnobLevels> BoundSpace::knobs() const {
  return tables_->knobs;
}
absl::optional<int64_t> BoundSpace::count() const { return tables_->count; }
const proto::Config& BoundSpace::default_config() const {
  return tables_->default_config;
}
const Levels& BoundSpace::default_levels() const {
  return tables_->default_levels;
}
const std::vector<std::string>& BoundSpace::notes() const {
  return tables_->notes;
}

const std::string& BoundSpace::default_refusal() const {
  return tables_->default_refusal;
}
int64_t BoundSpace::top_k() const {
  return tables_->space.proto().prior().top_k();
}

double BoundSpace::raw_count() const {
  double raw = 1;
  for (const KnobLevels& knob : tables_->knobs) raw *= knob.size();
  return raw;
}

bool BoundSpace::IsValid(absl::Span<const uint16_t> levels) const {
  return tables_->InRange(levels) && tables_->InSuperset(levels) &&
         tables_->PassesFilters(levels);
}

absl::optional<int64_t> BoundSpace::size() const {
  if (tables_->count.has_value() && *tables_->count > kMaxEnumerated) {
    return absl::nullopt;
  }
  return tables_->count;
}

Levels BoundSpace::At(int64_t index) const {
  OPTRAIL_CHECK(size().has_value() && index >= 0 && index < *size())
      << "index " << index << " of a space of " << size().value_or(-1);
  return tables_->SupersetAt(tables_->listed ? tables_->ranks[index] : index);
}

absl::optional<int64_t> BoundSpace::IndexOf(
    absl::Span<const uint16_t> levels) const {
  OPTRAIL_CHECK(size().has_value()) << "the space is not enumerated";
  if (!tables_->InRange(levels)) return absl::nullopt;
  const absl::optional<int64_t> rank = tables_->SupersetRank(levels);
  if (!rank.has_value() || !tables_->listed) return rank;
  const auto found =
      std::lower_bound(tables_->ranks.begin(), tables_->ranks.end(), *rank);
  if (found == tables_->ranks.end() || *found != *rank) return absl::nullopt;
  return found - tables_->ranks.begin();
}

Levels BoundSpace::Sample(Rng& rng) const {
  if (tables_->listed) {
    return tables_->SupersetAt(tables_->ranks[rng.UniformInt(
        static_cast<int64_t>(tables_->ranks.size()))]);
  }
  // Rejection keeps the distribution uniform over what is accepted.
  for (;;) {
    Levels levels = tables_->SampleSuperset(rng);
    if (tables_->PassesFilters(levels)) return levels;
  }
}

absl::optional<double> BoundSpace::Prior(
    absl::Span<const uint16_t> levels) const {
  if (!tables_->prior.has_value()) return absl::nullopt;
  SpaceTables::Slots slots = tables_->MakeSlots(levels);
  if (tables_->prior->Run(slots.data()) != EvalError::kNone) {
    return -std::numeric_limits<double>::infinity();
  }
  const int64_t result = slots[tables_->prior->result()];
  if (tables_->parsed().prior->expr.type() == ExprType::kInt) {
    return static_cast<double>(result);
  }
  const double value = DoubleFromBits(result);
  // NaN would order nothing.
  return value == value ? value : -std::numeric_limits<double>::infinity();
}

bool BoundSpace::PriorPrefers(const proto::Config& config) const {
  const absl::StatusOr<Levels> levels = ToLevels(config);
  // An absent prior is less than none.
  return levels.ok() && Prior(*levels) > Prior(default_levels());
}

proto::Config BoundSpace::ToConfig(absl::Span<const uint16_t> levels) const {
  std::vector<proto::KnobValue> values;
  for (size_t k = 0; k < levels.size(); ++k) {
    values.push_back(tables_->ValueOf(k, levels[k]));
  }
  std::sort(values.begin(), values.end(),
            [](const proto::KnobValue& a, const proto::KnobValue& b) {
              return a.knob() < b.knob();
            });
  proto::Config config;
  for (proto::KnobValue& value : values) *config.add_set() = std::move(value);
  return config;
}

absl::StatusOr<Levels> BoundSpace::ToLevels(const proto::Config& config) const {
  const std::vector<ParsedKnob>& parsed = tables_->parsed().knobs;
  std::vector<int> found(parsed.size(), -1);
  for (const proto::KnobValue& value : config.set()) {
    const auto knob = std::find_if(
        parsed.begin(), parsed.end(),
        [&](const ParsedKnob& k) { return k.name == value.knob(); });
    if (knob == parsed.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown knob \"", value.knob(), "\" in config \"",
                       CanonicalText(config), "\", expected ",
                       absl::StrJoin(space().knob_names(), ", ")));
    }
    const size_t index = knob - parsed.begin();
    if (found[index] >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("config \"", CanonicalText(config), "\" sets knob \"",
                       value.knob(), "\" twice"));
    }
    const int level = tables_->LevelOf(index, value);
    if (level < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "knob \"", value.knob(), "\" is ", CanonicalText(value),
          ", expected ", ExpectedValue(*knob), " (", knob->location, ")"));
    }
    found[index] = level;
  }
  for (size_t k = 0; k < found.size(); ++k) {
    if (found[k] < 0 && parsed[k].absent.has_value()) {
      found[k] = tables_->LevelOf(k, *parsed[k].absent);
    }
    if (found[k] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("config \"", CanonicalText(config), "\" lacks knob \"",
                       parsed[k].name, "\""));
    }
  }
  return Levels(found.begin(), found.end());
}

absl::StatusOr<proto::Config> BoundSpace::Complete(
    const proto::Config& config) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Levels levels, ToLevels(config));
  return ToConfig(levels);
}

absl::Status BoundSpace::Validate(const proto::Config& config) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Levels levels, ToLevels(config));
  if (IsValid(levels)) return absl::OkStatus();
  SpaceTables::Slots slots = tables_->MakeSlots(levels);
  const auto refused = [&](absl::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat(
        "config \"", CanonicalText(config), "\" is not valid for shape ",
        CanonicalText(shape()), ": ", reason));
  };
  const ParsedSpace& parsed = tables_->parsed();
  for (size_t i = 0; i < tables_->constraints.size(); ++i) {
    const SlotProgram& program = tables_->constraints[i];
    const EvalError error = program.Run(slots.data());
    if (error == EvalError::kNone && slots[program.result()] != 0) continue;
    const ParsedExpression& source = parsed.constraints[i];
    return refused(absl::StrCat(
        "it violates \"", source.text, "\"",
        error == EvalError::kNone
            ? ""
            : absl::StrCat(" (", EvalErrorName(error), ")"),
        source.why.empty() ? "" : absl::StrCat(" (", source.why, ")"), " at ",
        source.location));
  }
  for (const ParsedKnob& knob : parsed.knobs) {
    if (knob.kind != ParsedKnob::kSplitPart) continue;
    int64_t product = 1;
    bool overflow = false;
    for (int i = 0; i < knob.split_parts; ++i) {
      overflow |= __builtin_mul_overflow(product, slots[knob.split_first + i],
                                         &product);
    }
    if (overflow ||
        absl::optional<int64_t>(product) != DimValue(shape(), knob.dim)) {
      return refused(absl::StrCat("the product of the parts of its split is ",
                                  "not dim.", knob.dim, " (", knob.location,
                                  ")"));
    }
  }
  return refused("the kernel's predicate refuses it");
}

bool BoundSpace::has_fact_constraints() const {
  return !tables_->fact_constraints.empty();
}

absl::Status BoundSpace::CheckFacts(
    const proto::Config& config,
    absl::Span<const std::pair<std::string, int64_t>> facts) const {
  OPTRAIL_ASSIGN_OR_RETURN(const Levels levels, ToLevels(config));
  for (size_t i = 0; i < tables_->fact_constraints.size(); ++i) {
    const ParsedExpression& source = tables_->parsed().fact_constraints[i];
    std::string unknown;
    std::vector<std::string> read;
    const Expression bound = tables_->fact_constraints[i].Bind(
        [&](absl::string_view name) -> absl::optional<Expression::Value> {
          const absl::string_view member = absl::StripPrefix(name, "fact.");
          for (const auto& [fact, value] : facts) {
            if (fact != member) continue;
            read.push_back(absl::StrCat(name, " = ", value));
            return value;
          }
          unknown = std::string(name);
          return int64_t{0};
        });
    if (!unknown.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source.location, ": unknown \"", unknown, "\"; compiling told ",
          facts.empty() ? "nothing"
                        : absl::StrJoin(facts, ", ",
                                        [](std::string* out, const auto& fact) {
                                          absl::StrAppend(out, fact.first);
                                        })));
    }
    Frame frame(static_cast<int>(levels.size()));
    const SlotProgram program = frame.Compile(bound);
    std::vector<int64_t> slots = frame.slots();
    for (size_t k = 0; k < levels.size(); ++k) {
      slots[k] = tables_->values[k][levels[k]];
    }
    if (program.Holds(slots.data())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "compiled, it violates \"", source.text, "\" with ",
        absl::StrJoin(read, ", "),
        source.why.empty() ? "" : absl::StrCat(" (", source.why, ")"), " at ",
        source.location));
  }
  return absl::OkStatus();
}

}  // namespace optrail::tuning
