#ifndef OPTRAIL_SUITES_TUNE_OPERATOR_SHARES_H_
#define OPTRAIL_SUITES_TUNE_OPERATOR_SHARES_H_

// OperatorShares turns parts of a total budget by operator into groups of tasks
// for SearchTogether.
//
//   ASSIGN_OR_RETURN(const OperatorShares shares,
//                    OperatorShares::Of({{"matmul", .7}}, {"matmul", "add"}));
//   task.group = shares.GroupOf("add");  // 1: who has no share has the rest
//   options.shares = shares.fractions();  // {.7, .3}
//
// It is a value; InvalidArgument where nothing is left for an operator.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace optrail::suites {

class OperatorShares {
 public:
  // `shares` by operator, each above 0 and at most 1 in sum; empty: there are
  // none. `operators`: those of the tasks. A share of an operator that has no
  // task stays unused, and so goes to whoever is left.
  static absl::StatusOr<OperatorShares> Of(
      const std::map<std::string, double>& shares,
      const std::vector<std::string>& operators);

  const std::vector<double>& fractions() const { return fractions_; }
  int GroupOf(const std::string& op) const;
  // The operator's own share, or the rest that it has with others.
  double FractionOf(const std::string& op) const;

 private:
  std::vector<double> fractions_;  // the last is the rest
  std::map<std::string, int> groups_;
};

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_OPERATOR_SHARES_H_
