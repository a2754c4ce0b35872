#include "tuning/space/space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/factoring.h"
#include "tuning/space/space_parser.h"
#include "tuning/space/space_tables.h"

namespace optrail::tuning {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 62;

// How many (partial) configs of the superset are looked at to list what the
// filters keep: a few seconds.
constexpr int64_t kMaxListingSteps = int64_t{1} << 27;

// Draws before a filtered space is taken for empty.
constexpr int kMaxProbes = 1 << 22;

// Draws among which the default's nearest neighbour is sought where filters
// neither accept the nearest nor can be listed.
constexpr int kDefaultDraws = 1 << 14;

std::vector<Expression> AllConjuncts(const Binding& binding) {
  std::vector<Expression> all = binding.implied;
  for (const Expression& constraint : binding.constraints) {
    for (Expression& part : constraint.Conjuncts()) {
      all.push_back(std::move(part));
    }
  }
  return all;
}

Diagnosis Diagnose(const ParsedSpace& parsed, const Binding& binding) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto count = [&](const std::vector<Expression>& constraints,
                         Accept accept = Accept::kHolds) {
    const Factoring f = Factor(binding.values, constraints, accept);
    return f.filters.empty() || f.count() == 0 ? f.count() : nan;
  };
  Diagnosis diagnosis;
  diagnosis.raw = count(binding.implied);
  std::vector<Expression> so_far = binding.implied;
  for (size_t i = 0; i < binding.constraints.size(); ++i) {
    const ParsedExpression& source = parsed.constraints[i];
    std::vector<Expression> alone = binding.implied;
    for (Expression& part : binding.constraints[i].Conjuncts()) {
      so_far.push_back(part);
      alone.push_back(std::move(part));
    }
    Diagnosis::Row row;
    row.location = source.location;
    row.expr = source.text;
    row.why = source.why;
    row.valid_alone = count(alone);
    row.erroneous = count({binding.constraints[i]}, Accept::kHasNoValue);
    row.valid_so_far = count(so_far);
    diagnosis.rows.push_back(std::move(row));
  }
  return diagnosis;
}

// Lists the ranks of the configs of the superset that pass all filters, in
// lexicographic order, cutting off prefixes that fail.
class Lister {
 public:
  explicit Lister(SpaceTables* tables)
      : tables_(*tables),
        levels_(tables->knobs.size()),
        nodes_(tables->groups.size()),
        filters_at_(tables->knobs.size()) {
    const std::vector<int64_t>& slots = tables->frame.slots();
    slots_.assign(slots.begin(), slots.end());
    for (const SpaceTables::Filter& filter : tables->filters) {
      filters_at_[filter.last_knob].push_back(&filter.program);
    }
    for (size_t g = 0; g < nodes_.size(); ++g) {
      nodes_[g] = tables->groups[g].root();
    }
  }

  // False if there are too many, or too many to look at.
  bool Run() {
    if (Visit(0, 0, tables_.superset_count)) return true;
    tables_.ranks.clear();
    tables_.ranks.shrink_to_fit();
    return false;
  }

 private:
  // `below` configs of the superset share the prefix; `rank` is the first's.
  bool Visit(size_t knob, int64_t rank, int64_t below) {
    if (knob == levels_.size()) {
      if (!tables_.PassesPredicate(levels_)) return true;
      if (tables_.ranks.size() ==
          static_cast<size_t>(BoundSpace::kMaxEnumerated)) {
        return false;
      }
      tables_.ranks.push_back(rank);
      return true;
    }
    const int group = tables_.group_of[knob];
    const Diagram& diagram = tables_.groups[group];
    const uint32_t node = nodes_[group];
    const int64_t others = below / diagram.CountBelow(node);
    bool complete = true;
    for (const Diagram::Edge& edge : diagram.edges(node)) {
      if (++steps_ > kMaxListingSteps) return false;
      slots_[knob] = tables_.values[knob][edge.level];
      levels_[knob] = edge.level;
      if (!Passes(knob)) continue;
      nodes_[group] = edge.child;
      complete = Visit(knob + 1, rank + edge.before * others,
                       diagram.CountBelow(edge.child) * others);
      if (!complete) break;
    }
    nodes_[group] = node;
    return complete;
  }

  bool Passes(size_t knob) {
    for (const SlotProgram* filter : filters_at_[knob]) {
      if (!filter->Holds(slots_.data())) return false;
    }
    return true;
  }

  SpaceTables& tables_;
  Levels levels_;
  std::vector<uint32_t> nodes_;
  std::vector<std::vector<const SlotProgram*>> filters_at_;
  SpaceTables::Slots slots_;
  int64_t steps_ = 0;
};

// Fills everything about which configs are valid. False if there is none.
bool Count(const std::vector<Expression>& constraints, SpaceTables* tables) {
  Factoring factoring = Factor(tables->values, constraints);
  tables->groups = std::move(factoring.groups);
  tables->group_of.resize(tables->knobs.size());
  for (size_t g = 0; g < tables->groups.size(); ++g) {
    if (tables->groups[g].count() == 0) return false;
    for (int knob : tables->groups[g].knobs()) {
      tables->group_of[knob] = static_cast<int>(g);
    }
  }
  int64_t total = 1;
  for (const Diagram& group : tables->groups) {
    if (__builtin_mul_overflow(total, group.count(), &total) ||
        total > kMaxCount) {
      total = 0;
      break;
    }
  }
  tables->superset_count = total;
  for (const Expression& filter : factoring.filters) {
    tables->filters.push_back(
        {tables->frame.Compile(filter), 63 - __builtin_clzll(filter.knobs())});
  }
  if (!tables->has_filters()) {
    if (total > 0) tables->count = total;
    return true;
  }
  if (total > 0) tables->listed = Lister(tables).Run();
  if (tables->listed) {
    tables->count = static_cast<int64_t>(tables->ranks.size());
    return !tables->ranks.empty();
  }
  Rng rng(0);
  for (int probe = 0; probe < kMaxProbes; ++probe) {
    if (tables->PassesFilters(tables->SampleSuperset(rng))) return true;
  }
  return false;
}

// The levels of the declared default, or the next lower ones.
Levels DeclaredLevels(const SpaceTables& tables, const proto::Config& declared,
                      bool* exact) {
  Levels levels;
  *exact = true;
  for (size_t k = 0; k < tables.knobs.size(); ++k) {
    const int64_t value =
        *ValueOf(tables.parsed().knobs[k], declared.set(static_cast<int>(k)));
    int64_t level = value;
    if (tables.knobs[k].ordinal) {
      const std::vector<int64_t>& ints = tables.knobs[k].ints;
      level = std::upper_bound(ints.begin(), ints.end(), value) - ints.begin();
      level = std::max<int64_t>(level - 1, 0);
      *exact &= ints[level] == value;
    }
    levels.push_back(static_cast<uint16_t>(level));
  }
  return levels;
}

using KnobLevelChoices = std::vector<std::pair<int, std::vector<uint16_t>>>;

// `levels` with what a rule says; of the combinations of its alternatives that
// are valid the one that the prior ranks highest, of several the first.
Levels Chosen(const BoundSpace& bound, const KnobLevelChoices& choices,
              Levels levels) {
  std::vector<size_t> at(choices.size(), 0);
  Levels best;
  double highest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < choices.size();) {
    for (size_t c = 0; c < choices.size(); ++c) {
      levels[choices[c].first] = choices[c].second[at[c]];
    }
    if (best.empty()) best = levels;
    if (bound.IsValid(levels)) {
      const double prior = *bound.Prior(levels);
      if (prior > highest) {
        highest = prior;
        best = levels;
      }
    }
    for (i = 0; i < at.size() && ++at[i] == choices[i].second.size(); ++i) {
      at[i] = 0;
    }
  }
  return best;
}

// The default as declared for this shape: what rules say, one after the other.
// A value that is no level stands for the next lower one.
Levels DeclaredDefault(const BoundSpace& bound, const SpaceTables& tables,
                       const Binding& binding, proto::Config* config,
                       bool* exact) {
  *config = binding.default_config;
  for (const auto& rule : binding.default_rules) {
    KnobLevelChoices choices;
    for (const auto& [knob, values] : rule) {
      *config->mutable_set(knob) = values[0];
      if (values.size() == 1) continue;
      choices.emplace_back(knob, std::vector<uint16_t>());
      for (const proto::KnobValue& value : values) {
        if (const int level = tables.LevelOf(knob, value); level >= 0) {
          choices.back().second.push_back(static_cast<uint16_t>(level));
        }
      }
      if (choices.back().second.empty()) choices.pop_back();
    }
    if (choices.empty()) continue;
    const Levels chosen =
        Chosen(bound, choices, DeclaredLevels(tables, *config, exact));
    for (const auto& [knob, levels] : choices) {
      *config->mutable_set(knob) = tables.ValueOf(knob, chosen[knob]);
    }
  }
  return DeclaredLevels(tables, *config, exact);
}

// The config of the superset with the fewest steps to `target`: a shortest path
// through each diagram.
Levels NearestInSuperset(const SpaceTables& tables, const Levels& target) {
  Levels nearest(target.size());
  for (const Diagram& diagram : tables.groups) {
    const std::vector<Diagram::Node>& nodes = diagram.nodes();
    std::vector<int64_t> steps(nodes.size());
    std::vector<const Diagram::Edge*> best(nodes.size());
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      const int knob = diagram.knobs()[nodes[n].layer];
      for (const Diagram::Edge& edge : diagram.edges(n)) {
        const int64_t total =
            StepsBetween(tables.knobs[knob], edge.level, target[knob]) +
            (edge.child == Diagram::kLeaf ? 0 : steps[edge.child]);
        if (best[n] == nullptr || total < steps[n]) {
          steps[n] = total;
          best[n] = &edge;
        }
      }
    }
    for (uint32_t n = diagram.root(); n != Diagram::kLeaf; n = best[n]->child) {
      nearest[diagram.knobs()[nodes[n].layer]] = best[n]->level;
    }
  }
  return nearest;
}

Levels NearestValid(const SpaceTables& tables, const Levels& target) {
  Levels nearest = NearestInSuperset(tables, target);
  if (tables.PassesFilters(nearest)) return nearest;
  int64_t best = std::numeric_limits<int64_t>::max();
  const auto offer = [&](const Levels& levels) {
    int64_t steps = 0;
    for (size_t k = 0; k < levels.size(); ++k) {
      steps += StepsBetween(tables.knobs[k], levels[k], target[k]);
    }
    if (steps >= best) return;
    best = steps;
    nearest = levels;
  };
  if (tables.listed) {
    for (int64_t rank : tables.ranks) offer(tables.SupersetAt(rank));
    return nearest;
  }
  Rng rng(0);
  for (int64_t draws = 0; draws < kDefaultDraws || best == INT64_MAX; ++draws) {
    const Levels levels = tables.SampleSuperset(rng);
    if (tables.PassesFilters(levels)) offer(levels);
  }
  return nearest;
}

}  // namespace

int64_t StepsBetween(const KnobLevels& knob, int level, int target) {
  if (level == target) return 0;
  if (!knob.ordinal) return int64_t{1} << 32;
  return 2 * int64_t{std::abs(level - target)} + (level > target ? 1 : 0);
}

std::string Diagnosis::ToString() const {
  const auto number = [](double count) {
    return std::isnan(count) ? std::string("?")
                             : absl::StrFormat("%.15g", count);
  };
  std::string text = absl::StrCat(number(raw), " configs without constraints");
  for (const Row& row : rows) {
    absl::StrAppend(&text, "\n  ", row.location, ": ", row.expr, ": ",
                    number(row.valid_so_far), " left; alone it leaves ",
                    number(row.valid_alone));
    if (row.erroneous > 0) {
      absl::StrAppend(&text, " and has no value (overflow, division by zero) ",
                      "for ", number(row.erroneous));
    }
    if (!row.why.empty()) absl::StrAppend(&text, " (", row.why, ")");
  }
  return text;
}

absl::StatusOr<Space> Space::Parse(absl::string_view text,
                                   absl::string_view filename) {
  OPTRAIL_ASSIGN_OR_RETURN(auto parsed, ParseSpace(text, filename));
  return Space(std::move(parsed));
}

const std::string& Space::filename() const { return parsed_->filename; }
const proto::Space& Space::proto() const { return parsed_->proto; }
const std::string& Space::hash() const { return parsed_->hash; }
const std::string& Space::canonical_text() const {
  return parsed_->canonical_text;
}
std::vector<std::string> Space::knob_names() const {
  std::vector<std::string> names;
  for (const ParsedKnob& knob : parsed_->knobs) names.push_back(knob.name);
  return names;
}
std::vector<std::string> Space::dims() const { return parsed_->dims; }

absl::StatusOr<Diagnosis> Space::Diagnose(const proto::Shape& shape,
                                          const proto::Hardware& hardware,
                                          const BindOptions& options) const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const Binding binding,
      MakeBinding(*parsed_, shape, hardware, options.threads));
  return tuning::Diagnose(*parsed_, binding);
}

absl::StatusOr<std::unique_ptr<BoundSpace>> Space::Bind(
    const proto::Shape& shape, const proto::Hardware& hardware,
    const BindOptions& options) const {
  OPTRAIL_ASSIGN_OR_RETURN(
      Binding binding, MakeBinding(*parsed_, shape, hardware, options.threads));
  auto tables = std::make_unique<SpaceTables>(*this);
  tables->shape = shape;
  tables->hardware = hardware;
  tables->notes = binding.notes;
  tables->knobs = binding.knobs;
  tables->values = binding.values;
  tables->predicate = options.predicate;
  tables->frame = Frame(static_cast<int>(binding.knobs.size()));
  for (const Expression& constraint : binding.constraints) {
    tables->constraints.push_back(tables->frame.Compile(constraint));
  }
  tables->fact_constraints = binding.fact_constraints;
  if (binding.prior.has_value()) {
    tables->prior = tables->frame.Compile(*binding.prior);
  }
  if (!Count(AllConjuncts(binding), tables.get())) {
    const Diagnosis diagnosis = tuning::Diagnose(*parsed_, binding);
    std::string culprit = "the predicate removes";
    for (const Diagnosis::Row& row : diagnosis.rows) {
      if (row.valid_so_far == 0) {
        culprit = absl::StrCat("the constraint at ", row.location, " removes");
        break;
      }
    }
    return absl::InvalidArgumentError(absl::StrCat(
        filename(), ": no config is valid for shape ", CanonicalText(shape),
        " on ", hardware.id().empty() ? "this hardware" : hardware.id(), ": ",
        culprit, " the last ones. ", diagnosis.ToString()));
  }
  std::unique_ptr<BoundSpace> bound(new BoundSpace(nullptr));
  SpaceTables& filled = *tables;
  bound->tables_ = std::move(tables);
  bool exact = false;
  proto::Config default_config;
  const Levels declared =
      DeclaredDefault(*bound, filled, binding, &default_config, &exact);
  filled.default_levels = NearestValid(filled, declared);
  exact &= filled.default_levels == declared;
  filled.default_config = bound->ToConfig(filled.default_levels);
  if (!exact) {
    // The reason stands behind the shape in the error.
    const absl::Status valid = bound->Validate(bound->ToConfig(declared));
    const std::string of_shape = absl::StrCat(CanonicalText(shape), ": ");
    absl::string_view reason = valid.message();
    if (const size_t at = reason.find(of_shape); at != reason.npos) {
      reason.remove_prefix(at + of_shape.size());
    }
    filled.notes.push_back(
        absl::StrCat("the declared default ", CanonicalText(default_config),
                     " is not valid for shape ", CanonicalText(shape),
                     valid.ok() ? "" : absl::StrCat(" because ", reason),
                     "; the nearest valid config is ",
                     CanonicalText(filled.default_config)));
    if (!valid.ok()) filled.default_refusal = filled.notes.back();
  }
  return bound;
}

}  // namespace optrail::tuning
