#ifndef OPTRAIL_DIAGNOSIS_TRY_REMEDIES_H_
#define OPTRAIL_DIAGNOSIS_TRY_REMEDIES_H_

// TryRemedies applies what `optrail convergence` advises about a tuning session
// and says what it brought, in the records of `optrail diagnose --try`.
//
//   const std::vector<proto::Diagnosis> tried =
//       TryRemedies(read_session, search_again, &findings);
//   for (const proto::Diagnosis& one : tried) history.AppendDiagnosis(one);
//
// A remedy with a change is one more search, of the newest session that the
// finding names. Its default config is that session's winner, so its proof
// compares the two in rounds that had no part in choosing: what the proof
// claims is the gain, and 0 if it claims nothing.
//
// Operators and commands are searched alike; the metric is the session's.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/convergence/findings.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::diagnosis {

// The search that a remedy asks for; all is set.
struct SearchAgain {
  proto::Session session;  // the one that it repeats
  std::string space_textproto;
  int64_t trials = 0;
  std::string strategy;
};

using SearchAgainFunction =
    std::function<absl::StatusOr<proto::Session>(const SearchAgain&)>;

// A record for each session that a remedy was tried for, with all of its
// findings as causes and all of its remedies as advice. Id and commit are the
// caller's. Errors of a search are its outcome.
std::vector<proto::Diagnosis> TryRemedies(
    const std::function<absl::StatusOr<proto::Session>(const std::string& id)>&
        read_session,
    const SearchAgainFunction& search, std::vector<tracker::Finding>* findings);

// Returns the gain over the default of the search's space; NotFound without a
// proof.
absl::StatusOr<tracker::RemedyGain> RealisedGain(const proto::Session& search);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_TRY_REMEDIES_H_
