#ifndef OPTRAIL_REPORTS_PROOF_SIDES_H_
#define OPTRAIL_REPORTS_PROOF_SIDES_H_

// A session's proof as two sides: what the default and the chosen config read
// in the same rounds, metric by metric, also in those that were not tuned for.
//
//   for (const ProofSide& side : SidesOf(session)) ...
//
// Ratios, intervals and p-values are those of base/stats/paired_test.h.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"

namespace optrail::reports {

struct ProofSide {
  std::string metric;
  std::string unit;
  double baseline = 0;  // medians over the rounds
  double chosen = 0;
  int rounds = 0;
  // Chosen over baseline; absent where nothing was paired.
  absl::optional<double> ratio, low, high, p_value;
};

// Empty without a proof. The distance from the reference is read once, by the
// search: it has no rounds and no p-value.
std::vector<ProofSide> SidesOf(const proto::Session& session);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PROOF_SIDES_H_
