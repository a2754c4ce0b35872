#include "suites/tune/operator_shares.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace optrail::suites {
namespace {

// Decimal fractions that sum to one leave a little.
constexpr double kNothing = 1e-9;

}  // namespace

absl::StatusOr<OperatorShares> OperatorShares::Of(
    const std::map<std::string, double>& shares,
    const std::vector<std::string>& operators) {
  OperatorShares result;
  if (shares.empty()) return result;
  double rest = 1;
  for (const auto& [op, fraction] : shares) {
    result.groups_[op] = static_cast<int>(result.fractions_.size());
    result.fractions_.push_back(fraction);
    rest -= fraction;
  }
  result.fractions_.push_back(std::max(rest, 0.0));
  for (const std::string& op : operators) {
    if (shares.count(op) > 0 || rest > kNothing) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the shares sum to ", 1 - rest, " and leave nothing for ",
                     op, "; expected a share for it, or a sum below 1"));
  }
  return result;
}

int OperatorShares::GroupOf(const std::string& op) const {
  const auto found = groups_.find(op);
  if (found != groups_.end()) return found->second;
  return std::max(static_cast<int>(fractions_.size()) - 1, 0);
}

double OperatorShares::FractionOf(const std::string& op) const {
  return fractions_.empty() ? 1 : fractions_[GroupOf(op)];
}

}  // namespace optrail::suites
