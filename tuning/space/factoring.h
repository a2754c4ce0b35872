#ifndef OPTRAIL_TUNING_SPACE_FACTORING_H_
#define OPTRAIL_TUNING_SPACE_FACTORING_H_

// Factors a bound space into groups of knobs that no constraint ties together,
// one Diagram each. A constraint that makes its diagram too large is left out
// of it and returned as a filter: the diagrams then hold a superset, of which
// the filters keep a part.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tuning/space/diagram.h"
#include "tuning/space/expression.h"

namespace optrail::tuning {

struct Factoring {
  std::vector<Diagram> groups;  // by first knob
  std::vector<Expression> filters;

  // The product of the groups' counts: exact up to 2^53 or so.
  double count() const;
};

// `constraints` are bound; those without knobs decide at once (a false one
// leaves no config: every group is empty).
Factoring Factor(absl::Span<const std::vector<int64_t>> values,
                 const std::vector<Expression>& constraints,
                 Accept accept = Accept::kHolds);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SPACE_FACTORING_H_
