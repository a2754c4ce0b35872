#ifndef OPTRAIL_SUITES_TUNE_SESSION_H_
#define OPTRAIL_SUITES_TUNE_SESSION_H_

// RunTuneSession tunes one task: a strategy proposes configs, an evaluator
// measures them, each trial goes to a journal before it counts, and the best
// few are re-measured in fresh processes, interleaved with the default config,
// before a winner is declared.
//
//   ASSIGN_OR_RETURN(const proto::Session session,
//                    RunTuneSession(setup, options, evaluator, clock));
//
// A session that was killed resumes when it is run again with the same setup
// and options: at most the trial in flight is repeated. It knows nothing of
// kernels: the evaluator does.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "suites/evaluator.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// What is tuned.
struct TuneSetup {
  // Task, hardware, toolchain, commit, space: everything of the session that is
  // known before the first trial.
  proto::Session header;
  const tuning::BoundSpace* space = nullptr;  // must outlive the call
  // Trials of this very task (same trial keys) known from earlier sessions.
  std::vector<proto::Trial> known_trials;
};

struct TuneProgress {
  int64_t trials = 0;
  int64_t trial_limit = 0;  // 0: none
  int64_t elapsed_ns = 0;
  int64_t time_limit_ns = 0;  // 0: none
  double best_time_ns = 0;    // 0: none yet
  std::string phase;          // "search", "verify 3/30"
};

struct TuneOptions {
  std::string strategy = "default";
  uint64_t seed = 1;
  proto::Budget budget;
  // How many of the best are re-measured, beside the default config.
  int finalists = 4;
  // Fresh processes that measure each finalist.
  int verify_processes = 5;
  // A config this many times slower than the best is raced out.
  double race_factor = 1.5;
  proto::SamplingOptions sampling;
  // Where journals of unfinished sessions are; created if missing.
  std::string journal_directory;
  std::function<void(const TuneProgress&)> on_progress;  // may be empty
};

// The winner is the finalist with the lowest median over processes; the default
// config is preferred unless the winner beats it, paired by round, by more than
// this fraction.
inline constexpr double kMinGainOverDefault = 0.005;

// The session, closed, with stop reason, finalists and winner (absent if no
// config works). The journal is kept until RemoveTuneJournal, so that a crash
// between this call and storing the session loses nothing.
//
// Errors are of the environment (journal not writable: the message names the
// file), never of a config.
absl::StatusOr<proto::Session> RunTuneSession(const TuneSetup& setup,
                                              const TuneOptions& options,
                                              Evaluator& evaluator,
                                              Clock& clock);

absl::Status RemoveTuneJournal(const TuneSetup& setup,
                               const TuneOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_SESSION_H_
