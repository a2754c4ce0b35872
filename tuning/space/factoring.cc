#include "tuning/space/factoring.h"

#include <algorithm>
#include <utility>

namespace optrail::tuning {
namespace {

int CountBits(uint64_t bits) { return __builtin_popcountll(bits); }

std::vector<int> KnobsOf(uint64_t mask) {
  std::vector<int> knobs;
  for (int knob = 0; knob < Scope::kMaxKnobs; ++knob) {
    if ((mask >> knob & 1) != 0) knobs.push_back(knob);
  }
  return knobs;
}

// The sets of knobs in `mask` that constraints connect, by first knob.
std::vector<uint64_t> Connected(uint64_t mask,
                                const std::vector<Expression>& constraints) {
  std::vector<uint64_t> sets;
  for (int knob : KnobsOf(mask)) sets.push_back(uint64_t{1} << knob);
  for (const Expression& constraint : constraints) {
    uint64_t merged = constraint.knobs();
    std::vector<uint64_t> others;
    for (uint64_t set : sets) {
      if ((set & constraint.knobs()) != 0) {
        merged |= set;
      } else {
        others.push_back(set);
      }
    }
    others.push_back(merged);
    sets = std::move(others);
  }
  std::sort(sets.begin(), sets.end(), [](uint64_t a, uint64_t b) {
    return __builtin_ctzll(a) < __builtin_ctzll(b);
  });
  return sets;
}

void FactorInto(uint64_t mask, absl::Span<const std::vector<int64_t>> values,
                const std::vector<Expression>& constraints, Accept accept,
                Factoring* result) {
  for (uint64_t set : Connected(mask, constraints)) {
    std::vector<Expression> inside;
    for (const Expression& constraint : constraints) {
      if ((constraint.knobs() & set) != 0) inside.push_back(constraint);
    }
    absl::optional<Diagram> diagram =
        Diagram::Build(KnobsOf(set), values, inside, accept);
    if (diagram.has_value()) {
      result->groups.push_back(*std::move(diagram));
      continue;
    }
    // The constraint over the most knobs costs the most nodes.
    const auto widest =
        std::max_element(inside.begin(), inside.end(),
                         [](const Expression& a, const Expression& b) {
                           return CountBits(a.knobs()) < CountBits(b.knobs());
                         });
    result->filters.push_back(*widest);
    inside.erase(widest);
    FactorInto(set, values, inside, accept, result);
  }
}

}  // namespace

double Factoring::count() const {
  double product = 1;
  for (const Diagram& group : groups) {
    product *= static_cast<double>(group.count());
  }
  return product;
}

Factoring Factor(absl::Span<const std::vector<int64_t>> values,
                 const std::vector<Expression>& constraints, Accept accept) {
  std::vector<Expression> open;
  bool refused = false;
  for (const Expression& constraint : constraints) {
    if (constraint.knobs() != 0) {
      open.push_back(constraint);
      continue;
    }
    Frame frame(static_cast<int>(values.size()));
    const SlotProgram program = frame.Compile(constraint);
    std::vector<int64_t> slots = frame.slots();
    const EvalError error = program.Run(slots.data());
    refused |= accept == Accept::kHolds
                   ? error != EvalError::kNone || slots[program.result()] == 0
                   : error == EvalError::kNone;
  }
  const size_t knobs = values.size();
  const uint64_t all = knobs >= 64 ? ~uint64_t{0} : (uint64_t{1} << knobs) - 1;
  Factoring result;
  if (refused) {
    for (int knob : KnobsOf(all)) {
      static const std::vector<std::vector<int64_t>>& kNoLevels =
          *new std::vector<std::vector<int64_t>>(Scope::kMaxKnobs);
      result.groups.push_back(
          *Diagram::Build({knob}, absl::MakeConstSpan(kNoLevels), {}, accept));
    }
    return result;
  }
  FactorInto(all, values, open, accept, &result);
  std::sort(result.groups.begin(), result.groups.end(),
            [](const Diagram& a, const Diagram& b) {
              return a.knobs().front() < b.knobs().front();
            });
  return result;
}

}  // namespace optrail::tuning
