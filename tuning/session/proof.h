#ifndef OPTRAIL_TUNING_SESSION_PROOF_H_
#define OPTRAIL_TUNING_SESSION_PROOF_H_

// A winner is chosen on some readings and proven on others. PairedProof is the
// second half: a candidate meets the default config in rounds that had no part
// in choosing it, each round gives the logarithm of the ratio of their costs,
// and an anytime-valid test of these pairs (base/stats/paired_test.h) says what
// the candidate gains.
//
//   PairedProof proof(ProofOptions{}, {TimeObjective()});
//   while (proof.Open(spent)) {
//     ... read both in a fresh round ...
//     proof.Add(candidate_cost, default_cost);
//   }
//   if (proof.Claimed()) ...   // a non-default winner
//
// The gain and its interval are recorded whether the gain is claimed or not.
// Formula, citations and what it does under recorded noise:
// docs/method/tuning_sessions.md.

#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/stats/paired_test.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tuning {

struct ProofOptions {
  // Chance that a config that gains nothing is ever declared a winner.
  double false_gain_rate = .01;
  // Of the recorded interval, which holds whenever the rounds end.
  double confidence = .95;
  // The rounds end when the interval of the gain is within this on either side
  // (of a gain that is more than the whole, as of a throughput, within this
  // part of it). Or after so many rounds, or so much time (by default a session
  // says: as long as its search took, 3 s at least and a minute at most); never
  // before min_rounds.
  double half_width = .01;
  int min_rounds = 5;
  int max_rounds = 4000;
  absl::optional<absl::Duration> max_time;
  // Longest search, ranking and proof together. The rest of it bounds the
  // ranking, after one round, and the proof, after min_rounds.
  absl::optional<absl::Duration> session_max_time;
  // Gains below this are not worth another config.
  double min_gain = .005;
  // A gain is claimed only where its whole interval lies beyond this.
  double margin = 0;
};

class PairedProof {
 public:
  // The gain is told in the first of `objectives` (GainOf in objective.h).
  PairedProof(const ProofOptions& options,
              std::vector<proto::Objective> objectives);

  // Positive costs of one round; both sides were read.
  void Add(double candidate_cost, double default_cost);
  // Returns whether another round is needed, after rounds that took `spent`.
  bool Open(absl::Duration spent);
  // Why not, when Open() has said so; else that rounds gave nothing.
  proto::ProofEnd end() const { return end_; }
  bool Claimed() const;
  // True if the candidate is worse, by more than `margin` of its cost.
  bool LostBy(double margin) const;

  int rounds() const { return static_cast<int>(log_ratios_.size()); }
  // The evidence on the logarithm of candidate over default.
  const PairedEvidence& evidence() const { return evidence_; }
  // Fills in gain, interval, confidence, rounds, claimed and why they ended.
  void Fill(proto::Proof* proof) const;

 private:
  void Look();
  bool Narrow() const;

  const ProofOptions options_;
  const std::vector<proto::Objective> objectives_;
  const PairedTestOptions test_;
  std::vector<double> log_ratios_;
  int next_look_ = 0;
  proto::ProofEnd end_ = proto::PROOF_DISTURBED;
  PairedEvidence evidence_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_PROOF_H_
