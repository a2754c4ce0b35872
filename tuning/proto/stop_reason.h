#ifndef OPTRAIL_TUNING_PROTO_STOP_REASON_H_
#define OPTRAIL_TUNING_PROTO_STOP_REASON_H_

// Why a session stopped, and why its proof did, in the one spelling of tables,
// reports and JSON.
//
//   StopReasonName(proto::TRIALS_SPENT)  ->  "trials_spent"
//   ProofEndNote(proof)                  ->  "time spent"

#include <string>

#include "absl/strings/string_view.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// "" for a session that does not say; "stop_reason_77" for the reason of a
// newer writer.
std::string StopReasonName(proto::StopReason reason);

// Why the interval of a proof is wider than was asked for: "time spent",
// "rounds spent", "disturbed"; "" where it is not, and for proofs that do not
// say.
std::string ProofEndNote(const proto::Proof& proof);

// Tells the gain of a proof of the session: "22.4% better than `than` in time
// (20.8% to 24.0%, 44 paired rounds; time spent)". With weights the gain is of
// all objectives together: "in the weighted product of time and joules".
std::string GainText(const proto::Session& session, const proto::Proof& proof,
                     absl::string_view than);
// Returns whether the stored config was kept. The text says why it was, or what
// was proven of the one that replaces it: "the stored config stays: the best
// other one is 0.3% better than it in time (-0.5% to 1.1%, 40 paired rounds)";
// "" where there was none, or it was the best.
bool IncumbentStays(const proto::Session& session);
std::string IncumbentText(const proto::Session& session);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_STOP_REASON_H_
