#ifndef OPTRAIL_DIAGNOSIS_DERIVED_PAGES_H_
#define OPTRAIL_DIAGNOSIS_DERIVED_PAGES_H_

// The part of derived.h that follows from the pages that calls visited.
//
//   AddPages(&numbers);
//   numbers.ValueOr("passes", 1);

#include "diagnosis/numbers.h"

namespace optrail::diagnosis {

inline constexpr char kEstimated[] = "estimated";

// Sets passes over all operands, the worst walk and the worst gather over one,
// the share of a workspace, and what each costs. `numbers` has the visits and
// what goes with the traffic; without visits nothing is set.
void AddPages(Numbers* numbers);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_DERIVED_PAGES_H_
