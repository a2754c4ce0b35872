#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_SESSION_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_SESSION_H_

// Records of tuning sessions of one knob, "tile".
//
//   proto::Session session = BaseSession(/*warm=*/54, /*measured=*/104);
//   AddFinalist(&session, 8, 1050, 1000, /*is_default=*/false);

#include <cstdint>

#include "base/random.h"
#include "tuning/proto/session.pb.h"

namespace optrail::agreement {

inline constexpr char kMadeSessionId[] = "20260101T000000Z-00000000abcd";

void SetTile(int64_t value, proto::Config* config);

// A session that has `warm` trials of an earlier one and `measured` of its own,
// all of which worked; no finalists, winner or proof.
proto::Session BaseSession(int warm, int measured);

void AddFinalist(proto::Session* session, int64_t tile, double first_ns,
                 double verified_ns, bool is_default);

// The winner is `gain` better than the default, with 1.5% of uncertainty.
void AddProof(proto::Session* session, int64_t tile, double gain);

// The session has random counts, finalists and gain; some trials failed.
proto::Session MakeSession(Rng* rng);

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_SESSION_H_
