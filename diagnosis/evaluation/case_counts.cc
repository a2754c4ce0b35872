#include "diagnosis/evaluation/case_counts.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "diagnosis/classes.h"

namespace optrail::diagnosis {

bool IsNoLoss(const Numbers& numbers) {
  const Number* const loss = numbers.Find(kPlantedLoss);
  return loss != nullptr &&
         std::max(loss->value, loss->high) < kLeastRecoverable;
}

bool CaseCounts::Add(const std::string& expected, const Numbers& numbers,
                     const std::vector<std::string>& causes) {
  const bool named = !causes.empty() && causes[0] == expected;
  if (IsInconclusive(numbers) && causes.empty()) {
    ++inconclusive;
    return true;
  }
  if (IsNoLoss(numbers)) {
    ++no_loss;
    no_loss_named += !causes.empty();
    return causes.empty() || named;
  }
  if (expected.empty()) {
    ++healthy;
    left_alone += causes.empty();
    return causes.empty();
  }
  ++planted;
  first += named;
  among_two += named || (causes.size() > 1 && causes[1] == expected);
  return named;
}

std::string CaseCounts::Text() const {
  return absl::StrFormat(
      "first cause right: %d of %d; among the first two: %d; healthy kernels "
      "left alone: %d of %d; no loss here: %d, of which %d named a cause; "
      "inconclusive: %d; not measured: %d\n",
      first, planted, among_two, left_alone, healthy, no_loss, no_loss_named,
      inconclusive, failed);
}

}  // namespace optrail::diagnosis
