#ifndef OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_
#define OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_

// How one tuning session went, in numbers: how soon it came near its best, how
// long it then found nothing better, how many trials were lost, what the
// winner's first reading was worth.
//
//   const SessionAnalysis analysis = AnalyzeSession(session);
//   if (analysis.trials_to_95_percent) ...
//
// It describes; whether a number is a fault is findings.h's business. Formulas:
// docs/convergence.md. Nothing here fails: what a session lacks (no trial, no
// working config, no winner, readings that are not positive numbers) is an
// absent value.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"

namespace optrail::tracker {

// A trial without its raw samples.
struct TrialPoint {
  proto::Config config;
  std::string config_text;  // canonical
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  // Present if the outcome is OK and the reading a positive, finite number.
  absl::optional<double> time_ns;
  int64_t elapsed_ns = 0;
  int64_t compile_ns = 0;
  std::string detail;
};

struct FinalistPoint {
  proto::Config config;
  std::string config_text;
  bool is_default = false;
  absl::optional<double> first_time_ns;
  absl::optional<double> verified_time_ns;  // only if the outcome is OK
  std::vector<double> process_medians_ns;
};

// A trial that was better than all before it.
struct Improvement {
  int trial = 0;  // index into SessionAnalysis::trials
  double time_ns = 0;
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
  // The session without trials, finalists and raw samples.
  proto::Session header;
  // What trials to compare by: operator, device, shape, threads, cache mode and
  // hardware; not the kernel, which every commit may change.
  std::string task_key;
  // For people, without the hardware.
  std::string task_text;

  // Measured by this session; what it was warm-started with comes from
  // elsewhere and is no part of its progress.
  std::vector<TrialPoint> trials;
  std::vector<FinalistPoint> finalists;
  OutcomeCounts outcomes;

  // The regret curve: the best reading after each trial, NaN before the first.
  std::vector<double> best_so_far_ns;
  std::vector<Improvement> improvements;
  absl::optional<double> best_ns;  // of the search, unverified

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

  // The winner's verified time; absent if there is no winner or no reading.
  absl::optional<double> winner_ns;
  // verified / first - 1: of the winner, and the median over all finalists but
  // the default, which was not picked for its reading.
  absl::optional<double> winners_curse;
  absl::optional<double> finalists_curse;
  // default / winner, verified beside each other: 2 is twice as fast.
  absl::optional<double> speedup_over_default;

  // Mean over trials, compiling and failures included; of the whole session per
  // trial where trials hold no time.
  absl::optional<double> time_per_trial_ns;

  int trial_count() const { return static_cast<int>(trials.size()); }
  const std::string& id() const { return header.session_id(); }
  // Shares of trials; 0 for no trials.
  double useless_share() const;
  double contended_share() const;
  double plateau_share() const;
};

SessionAnalysis AnalyzeSession(const proto::Session& session);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_CONVERGENCE_H_
