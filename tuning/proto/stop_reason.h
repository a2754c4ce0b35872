#ifndef OPTRAIL_TUNING_PROTO_STOP_REASON_H_
#define OPTRAIL_TUNING_PROTO_STOP_REASON_H_

// Why a session stopped, and why its proof did, in the one spelling of tables,
// reports and JSON.
//
//   StopReasonName(proto::TRIALS_SPENT)  ->  "trials_spent"
//   ProofEndNote(proof)                  ->  "time spent"

#include <string>

#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

// "" for a session that does not say; "stop_reason_77" for the reason of a
// newer writer.
std::string StopReasonName(proto::StopReason reason);

// Why the interval of a proof is wider than was asked for: "time spent",
// "rounds spent", "disturbed"; "" where it is not, and for proofs that do not
// say.
std::string ProofEndNote(const proto::Proof& proof);

// The session's proof in a sentence: "proven: 22.4% better than the default in
// time (20.8% to 24.0%, 44 paired rounds; time spent)".
std::string ProofText(const proto::Session& session);
// Returns whether the stored config was kept. The text says why it was, or what
// was proven of the one that replaces it: "the stored config stays: the best
// other one is 0.3% better than it in time (-0.5% to 1.1%, 40 paired rounds)";
// "" where there was none, or it was the best.
bool IncumbentStays(const proto::Session& session);
std::string IncumbentText(const proto::Session& session);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_PROTO_STOP_REASON_H_
