#ifndef OPTRAIL_DIAGNOSIS_EVALUATION_CASE_COUNTS_H_
#define OPTRAIL_DIAGNOSIS_EVALUATION_CASE_COUNTS_H_

// CaseCounts counts how many planted and healthy kernels a diagnosis is right
// about.
//
//   CaseCounts counts;
//   const bool right = counts.Add("strided", numbers, {"strided", "tlb"});
//   std::cout << counts.Text();  // "first cause right: 1 of 1; ..."

#include <string>
#include <vector>

#include "diagnosis/numbers.h"

namespace optrail::diagnosis {

// The share of the time that goes without the planted bottleneck.
inline constexpr char kPlantedLoss[] = "planted_loss";

// A bottleneck that costs nothing on this machine is no cause: a tenth is what
// a diagnosis names at all. Where that is not certain, the case counts.
bool IsNoLoss(const Numbers& numbers);

struct CaseCounts {
  int planted = 0, first = 0, among_two = 0, healthy = 0, left_alone = 0;
  // Planted cases without a loss here, and those that named a cause all the
  // same, be it the planted one or another.
  int no_loss = 0, no_loss_named = 0;
  // Cases of several threads whose cores others had: neither right nor wrong.
  int inconclusive = 0;
  int failed = 0;

  // Counts one case by the class that is `expected` ("": healthy) and the
  // `causes` that were named, the first of them first. Returns true if the
  // answer is right.
  bool Add(const std::string& expected, const Numbers& numbers,
           const std::vector<std::string>& causes);

  std::string Text() const;
};

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_EVALUATION_CASE_COUNTS_H_
