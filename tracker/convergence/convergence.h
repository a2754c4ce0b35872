#ifndef OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_
#define OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_

// How one tuning session went, in numbers: how soon it came near its best, how
// long it then found nothing better, how many trials were lost, what the
// winner's first reading was worth.
//
//   const SessionAnalysis analysis = AnalyzeSession(session);
//   if (analysis.trials_to_95_percent) ...
//
// It describes; whether a number is a fault is findings.h's business. `show`,
// the report and `convergence` print what stands here and derive nothing of
// their own. Formulas: docs/method/convergence.md. Nothing here fails: what a
// session lacks (no trial, no working config, no winner, readings that are not
// positive numbers) is an absent value.
//
// A cost is what the session minimises: ns of time, the value of another
// objective, one over it where higher is better, or what weights make of
// several (tuning::Cost). Values are what people read, one per objective.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

using Values = std::vector<absl::optional<double>>;

// A trial without its raw samples.
struct TrialPoint {
  proto::Config config;
  std::string config_text;  // canonical
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  // Present if the outcome is OK and the reading a positive, finite number.
  absl::optional<double> cost;
  // One per objective; of a CENSORED trial a bound.
  Values values;
  int64_t elapsed_ns = 0;
  int64_t compile_ns = 0;
  std::string detail;
};

struct FinalistPoint {
  proto::Config config;
  std::string config_text;
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  bool is_default = false;
  bool is_winner = false;
  absl::optional<double> first_cost;
  absl::optional<double> verified_cost;  // only if the outcome is OK
  // The same readings as values of the first objective.
  absl::optional<double> first_value;
  absl::optional<double> verified_value;
  std::vector<double> process_costs;
};

// A trial that was better than all before it.
struct Improvement {
  int trial = 0;  // index into SessionAnalysis::trials
  double cost = 0;
};

// Trials that came to nothing, by what that says. Trials that were raced out
// (CENSORED) did their work and count nowhere here.
struct OutcomeCounts {
  int ok = 0;
  int invalid = 0;        // INVALID, UNSUPPORTED, COMPILE_ERROR, LAUNCH_ERROR
  int out_of_memory = 0;  // OUT_OF_MEMORY
  int failed = 0;         // CRASHED, TIMED_OUT, WRONG_RESULT
  int contended = 0;      // CONTENDED: the machine's fault, not the config's
  int censored = 0;

  int useless() const { return invalid + out_of_memory + failed; }
};

struct SessionAnalysis {
  // The session without trials, finalists and raw samples (those of its proof
  // among them).
  proto::Session header;
  std::vector<proto::Objective> objectives;  // time alone if it names none
  // What trials to compare by: operator, device, shape, threads, cache mode and
  // hardware; not an operator's kernel, which every commit may change, but the
  // program that a command measures.
  std::string task_key;
  // For people, without the hardware.
  std::string task_text;

  // Measured by this session; what it was warm-started with comes from
  // elsewhere and is no part of its progress.
  std::vector<TrialPoint> trials;
  int warm_start_trials = 0;
  std::vector<FinalistPoint> finalists;
  OutcomeCounts outcomes;
  std::map<std::string, int> trials_by_outcome;
  // For several objectives: the configs within the limits that no other beats
  // in all of them, the best in the first one first (tuning/session/results.h).
  struct FrontPoint {
    int trial = 0;  // index into trials
    Values values;  // verified ones where it was read again
  };
  std::vector<FrontPoint> front;

  // The regret curve: the best reading after each trial, NaN before the first.
  // A reading beyond a limit is never the best.
  std::vector<double> best_so_far;
  std::vector<Improvement> improvements;
  absl::optional<double> best_cost;  // of the search, unverified

  // 1-based number of the first trial with best / reading >= 0.95 or 0.99.
  absl::optional<int> trials_to_95_percent;
  absl::optional<int> trials_to_99_percent;
  // Trials after the first that came within the noise of the best: what was
  // spent on finding nothing.
  int plateau_trials = 0;

  // Relative standard deviation (of the logarithm) between processes that
  // measured the same finalist; pooled, robust. Absent without verification.
  absl::optional<double> process_noise;
  // The same between first and verified readings of finalists, their common
  // shift (the winner's curse) taken out.
  absl::optional<double> search_noise;

  // The winner's verified cost, and its value of the first objective; absent if
  // there is no winner or no reading.
  absl::optional<double> winner_cost;
  absl::optional<double> winner_value;
  // The first says what was proven, the second why there is no winner
  // (tuning/session/results.h).
  std::string proof_text;
  std::string no_winner_text;
  // verified / first - 1: of the winner, and the median over all finalists but
  // the default, which was not picked for its reading.
  absl::optional<double> winners_curse;
  absl::optional<double> finalists_curse;
  // The default's cost over the winner's: 2 is twice as fast. By the proof,
  // whose rounds had no part in choosing the winner; of sessions without one by
  // the finalists, verified beside each other.
  absl::optional<double> speedup_over_default;

  // Mean over trials, compiling and failures included; of the whole session per
  // trial where trials hold no time.
  absl::optional<double> time_per_trial_ns;

  bool is_time() const;  // alone
  // Metric and unit of the first objective.
  const std::string& metric() const { return objectives[0].metric(); }
  const std::string& unit() const { return objectives[0].unit(); }
  absl::optional<double> best_value() const;

  int trial_count() const { return static_cast<int>(trials.size()); }
  const std::string& id() const { return header.session_id(); }
  // Shares of trials; 0 for no trials.
  double useless_share() const;
  double contended_share() const;
  double plateau_share() const;
};

SessionAnalysis AnalyzeSession(const proto::Session& session);

// For people, a sentence each, "" where there is nothing to say:
// "104 trials, the best of them with time 1.05 us after trial 61, within 5% of
// it after trial 40".
std::string ProgressText(const SessionAnalysis& session);
// "winner tile=8 with time 1.06 us: proven: 10.5% better than ..."; of a
// session without a proof how the finalists compared, and without a winner,
// why.
std::string WinnerText(const SessionAnalysis& session);
// "3 of 4 finalists were worse when measured again than when first read (+1.2%
// in the median), the winner by +0.8%".
std::string FinalistsText(const SessionAnalysis& session);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_
