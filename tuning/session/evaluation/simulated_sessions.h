#ifndef OPTRAIL_TUNING_SESSION_EVALUATION_SIMULATED_SESSIONS_H_
#define OPTRAIL_TUNING_SESSION_EVALUATION_SIMULATED_SESSIONS_H_

// Whole sessions whose truth is known, under recorded noise: how often a gain
// is claimed that is none, how often one that is there, and what the proof's
// interval is worth.

#include <cstdint>

#include "absl/time/time.h"
#include "tuning/session/evaluation/recorded_noise.h"
#include "tuning/session/proof.h"
#include "tuning/session/session.h"

namespace optrail::tuning {

struct SimulationOptions {
  int sessions = 2000;
  uint64_t seed = 1;
  int configs = 16;  // the default among them
  // The gain of the best config over the default, and of the others over it if
  // `all_gain`; else they gain nothing.
  double gain = 0;
  bool all_gain = false;
  int finalists = SessionSetup().finalists;
  int rank_rounds = SessionSetup().rank_rounds;
  // What a search and a reading after it take: proofs may end for want of time.
  // Zero: they never do.
  absl::Duration search_time = absl::ZeroDuration();
  absl::Duration reading_time = absl::Milliseconds(40);
  ProofOptions proof;
};

struct SimulationResult {
  int sessions = 0;
  int claimed = 0;   // a winner other than the default
  int right = 0;     // ... that really gains
  int old_rule = 0;  // what the rule before the proof would have declared
  int proofs = 0;
  int covering = 0;  // intervals that hold the truth
  int narrow = 0;    // intervals within 1% either way
  double mean_half_width = 0;
  double mean_rounds = 0, p95_rounds = 0;
  absl::Duration mean_proof_time;  // zero without a clock
  double mean_rank_readings = 0;
};

SimulationResult Simulate(const RecordedNoise& noise,
                          const SimulationOptions& options);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_EVALUATION_SIMULATED_SESSIONS_H_
