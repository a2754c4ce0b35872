#ifndef OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_
#define OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_

// TuneSession tunes one task: a strategy proposes configs, an evaluator
// measures them, each trial goes to a journal before it counts, and the best
// few are re-measured in fresh processes, interleaved with the default config,
// before a winner is declared.
//
//   ASSIGN_OR_RETURN(const proto::Session session,
//                    RunTuneSession(setup, options, evaluator, clock));
//
// or step by step, several tasks in turns (tune_together.h):
//
//   ASSIGN_OR_RETURN(const std::unique_ptr<TuneSession> task,
//                    TuneSession::Open(setup, options, evaluator, clock));
//   while (!task->search_ended()) RETURN_IF_ERROR(task->Step());
//   ASSIGN_OR_RETURN(const proto::Session session, task->Finish());
//
// A session that was killed resumes when it is run again with the same setup
// and options: at most the trial in flight is repeated. It knows nothing of
// kernels: the evaluator does.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "suites/tune/tune_journal.h"
#include "suites/worker/evaluator.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/search/strategy.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// What is tuned.
struct TuneSetup {
  // Task, hardware, toolchain, commit, space: everything of the session that is
  // known before the first trial.
  proto::Session header;
  const tuning::BoundSpace* space = nullptr;  // must outlive the session
  // Trials of this very task (same trial keys) known from earlier sessions
  // (known_trials.h), stored with the session as they are. A session that
  // resumes starts from those that its first sitting was given.
  std::vector<proto::Trial> known_trials;
  // Trials of the sessions that the header names as its sources
  // (transfer_sources.h); may be empty. A session that resumes asks for those
  // that its first sitting learned from.
  std::function<std::vector<tuning::TransferSource>(const proto::Session&)>
      load_sources;
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

// A finalist's reading that was disturbed is repeated, this often in all.
inline constexpr int kReadingAttempts = 3;

// The winner is the finalist with the lowest median over processes; the default
// config is preferred unless the winner beats it, paired by round, by more than
// this fraction.
inline constexpr double kMinGainOverDefault = 0.005;

class TuneSession {
 public:
  // Opens the journal of an interrupted session, or starts one. `evaluator` and
  // `clock` must outlive the session.
  //
  // Errors, here and below, are of the environment (journal not writable: the
  // message names the file), never of a config.
  static absl::StatusOr<std::unique_ptr<TuneSession>> Open(TuneSetup setup,
                                                           TuneOptions options,
                                                           Evaluator& evaluator,
                                                           Clock& clock);
  TuneSession(const TuneSession&) = delete;
  TuneSession& operator=(const TuneSession&) = delete;

  // One more trial: the next of the journal, as long as there is one, else a
  // measured one. Instead of it the search ends when its own budget is spent or
  // the space exhausted. Must not be called once the search has ended.
  absl::Status Step();

  bool search_ended() const {
    return session_.stop_reason() != proto::STOP_REASON_UNSPECIFIED;
  }

  // Ends the search, for `reason` unless it ended by itself, and journals which
  // configs are finalists: from there on no sitting searches any further.
  absl::Status EndSearch(proto::StopReason reason);

  // Measures the finalists again. The session, closed, with stop reason,
  // finalists and winner (absent if no config works). The journal is kept until
  // RemoveTuneJournal, so that a crash between this call and storing the
  // session loses nothing.
  absl::StatusOr<proto::Session> Finish();

  // Of the search so far, in all sittings; a resumed session reads the same
  // after the same trials. Trials known before are not counted.
  int64_t trials() const { return measured_trials_; }
  int64_t elapsed_ns() const { return session_.elapsed_ns(); }
  // What the strategy expected of the last trial.
  absl::optional<double> expected_improvement() const {
    return expected_improvement_;
  }
  double best_time_ns() const { return best_time_ns_; }  // 0: none yet
  // The header with which the first sitting began.
  const proto::Session& header() const { return journal_->header(); }

 private:
  TuneSession(TuneSetup setup, TuneOptions options, Evaluator& evaluator,
              Clock& clock);

  absl::Status OpenJournal();
  void AddKnownTrials();
  absl::Status MakeStrategy();
  bool HasJournaledTrials() const;
  absl::Status TellNextOfJournal();
  absl::Status ChooseFinalists();
  absl::Status VerifyFinalists();
  absl::StatusOr<proto::TuneJournalRecord::Reading> Read(int round,
                                                         int finalist);
  // Outcomes and times of the finalists, from their readings.
  void JudgeFinalists(const std::vector<bool>& disqualified);
  void DeclareWinner();

  proto::Trial Measure(const proto::Config& config);
  void Account(const JournaledTrial& trial);
  // UNSPECIFIED while there is reason to go on.
  proto::StopReason BudgetSpent() const;
  void Report(const std::string& phase) const;

  const TuneSetup setup_;
  const TuneOptions options_;
  Evaluator& evaluator_;
  Clock& clock_;

  std::unique_ptr<TuneJournal> journal_;
  size_t told_of_journal_ = 0;  // trials
  std::unique_ptr<tuning::Strategy> strategy_;
  proto::Session session_;

  // Of each finalist: the median per round.
  std::map<int, std::map<int, double>> verified_ns_;
  int64_t measured_trials_ = 0;  // in all sittings, warm start not counted
  int64_t trials_since_improvement_ = 0;
  double best_time_ns_ = 0;
  absl::optional<double> expected_improvement_;
};

// Opens, searches within the session's own budget, and finishes.
absl::StatusOr<proto::Session> RunTuneSession(const TuneSetup& setup,
                                              const TuneOptions& options,
                                              Evaluator& evaluator,
                                              Clock& clock);

// Whether an earlier sitting of this very session left its journal.
bool HasTuneJournal(const TuneSetup& setup, const TuneOptions& options);

absl::Status RemoveTuneJournal(const TuneSetup& setup,
                               const TuneOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_
