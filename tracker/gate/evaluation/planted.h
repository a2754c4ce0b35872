#ifndef OPTRAIL_TRACKER_GATE_EVALUATION_PLANTED_H_
#define OPTRAIL_TRACKER_GATE_EVALUATION_PLANTED_H_

// Changes planted in recorded runs, and what the gate says of them.
//
//   runs.back() = Slowed(runs.back(), 3, 1.1);
//   RowOf(GateLast(Numbered(runs), 1, 1), name).verdict

#include <string>
#include <vector>

#include "tracker/gate/gate.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// The terms of the noise model that the functions below use; all at first.
NoiseTerms& EvaluatedTerms();

// `run` with all that benchmark `which` (-1: every one) took times `factor`.
proto::Run Slowed(proto::Run run, int which, double factor);

// Runs numbered by place, as a history would have them.
std::vector<proto::Run> Numbered(std::vector<proto::Run> runs);

// The gate of the last `candidates` of `runs` against the window before them,
// as Gate() does it by the default policy.
GateReport GateLast(const std::vector<proto::Run>& runs, size_t candidates,
                    int looks);

// The gate of two sides by the default policy; in pairs if they are some.
GateReport GateSides(const std::vector<proto::Run>& baseline,
                     const std::vector<proto::Run>& candidate);

// The gate of the run at `last`, which took benchmark `which` times `factor`,
// against those before it; where that is not clear, measured again at most
// twice: what the gate asks for, other ones of `runs`.
GateReport GateAgain(const std::vector<proto::Run>& runs, size_t last,
                     int which, double factor);

// ci/gate.sh on a pull request that took benchmark `which` times `factor`, by
// `runs` of one process that were recorded one after another: from round `at`
// on (the last is followed by the first) as many rounds, and then those that
// the gate asks for, of what it asks for, at most 40.
struct PullRequest {
  GateReport first, last;
  double rounds = 0;  // in all; those of a part of the suite are a part of one
};
PullRequest GatePullRequest(const std::vector<proto::Run>& runs, int at,
                            int rounds, int which, double factor);

const Row& RowOf(const GateReport& report, const std::string& name);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_EVALUATION_PLANTED_H_
