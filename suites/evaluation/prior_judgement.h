#ifndef OPTRAIL_SUITES_EVALUATION_PRIOR_JUDGEMENT_H_
#define OPTRAIL_SUITES_EVALUATION_PRIOR_JUDGEMENT_H_

// JudgePrior ranks the configs that a session measured by a space's prior.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const PriorJudgement judged,
//       JudgePrior(session, session.space_textproto(), session.session_id()));
//   if (judged.has_prior) judged.PickShare();  // .9: 11% slower than the best

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::suites {

struct PriorJudgement {
  struct Measured {
    proto::Config config;
    double time_ns = 0;
    double prior = 0;
  };

  std::string task;
  bool has_prior = false;           // false: `picks` is empty
  std::vector<Measured> measured;   // the fastest first
  std::vector<size_t> picks;        // those that the prior ranks first
  absl::optional<size_t> standard;  // the default, where it was measured

  bool IsPick(size_t i) const;
  // The time of the best over that of `measured[i]`.
  double Share(size_t i) const;
  // The same of the prior's pick. Between equal priors a search draws, so this
  // is their geometric mean.
  double PickShare() const;
};

// Takes the configs of `session` that are valid in the space `text`, each with
// its least time. Errors are those of `text`, with its `path`.
absl::StatusOr<PriorJudgement> JudgePrior(const proto::Session& session,
                                          const std::string& text,
                                          const std::string& path);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_PRIOR_JUDGEMENT_H_
