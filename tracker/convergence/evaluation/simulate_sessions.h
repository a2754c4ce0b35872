#ifndef OPTRAIL_TRACKER_CONVERGENCE_EVALUATION_SIMULATE_SESSIONS_H_
#define OPTRAIL_TRACKER_CONVERGENCE_EVALUATION_SIMULATE_SESSIONS_H_

// Tuning sessions with a known fault, or with none, for tests and for
// convergence_evaluation.
//
//   const std::vector<proto::Session> sessions =
//       SimulateFault(FindingKind::kOscillates, /*seed=*/1);
//   const proto::Session healthy = SimulateSession(SessionPlan(), /*seed=*/1);
//
// A simulated kernel has three knobs and one best config; trials are chosen by
// a simple local search, read with noise, and the best are verified in several
// processes beside the default, as tuning does. A seed fixes every value.

#include <cstdint>
#include <string>
#include <vector>

#include "tracker/convergence/findings.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

enum class Search {
  kLocal,       // neighbours of the best, and random configs between
  kRandom,      // uniform
  kStuck,       // the configs about the default, and nothing else
  kExhaustive,  // in order
};

struct SessionPlan {
  int64_t n = 512;  // the shape
  std::string hardware_id = "simulated-2c";
  int day = 0;  // of 2026; sessions are ordered by it
  std::string commit_id = "c0";

  Search search = Search::kLocal;
  int trials = 120;
  bool warm_start = false;  // the first trial is next to the best config

  // log2 of knobs a and b at the best config, and how steep time rises from it,
  // per doubling.
  double best_a = 3;
  double best_b = 2;
  double steepness = .15;
  int max_a = 64;  // end of the range of knob a
  std::string prior;

  double noise = .01;          // of a trial's reading
  double process_noise = .01;  // between the processes of the verification
  double first_over_true = 1;  // all first readings are off by this factor
  double contended_share = 0;
  // a * b above this fails with OUT_OF_MEMORY; 0: nothing fails.
  int64_t memory_limit = 0;
  double compile_ms = 5;
};

proto::Session SimulateSession(const SessionPlan& plan, uint64_t seed);

// Sessions that together have this fault and, as far as possible, no other.
std::vector<proto::Session> SimulateFault(FindingKind kind, uint64_t seed);

// Healthy sessions of several tasks over many days.
std::vector<proto::Session> SimulateHealthy(int count, uint64_t seed);

// The lever that mends the planted fault.
Lever RemedyOf(FindingKind kind);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_EVALUATION_SIMULATE_SESSIONS_H_
