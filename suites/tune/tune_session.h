#ifndef OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_
#define OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_

// A tuning session (tuning/session/session.h) of an operator's task: a strategy
// on its space, measured by an evaluator of configs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
//                            RunTuneSession(setup, options, evaluator, clock));

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "suites/proto/worker.pb.h"
#include "suites/worker/evaluator.h"
#include "tuning/proto/session.pb.h"
#include "tuning/session/config_source.h"
#include "tuning/session/session.h"
#include "tuning/space/space.h"

namespace optrail::suites {

// The task of a session and its setting.
struct TuneSetup {
  // Task, hardware, toolchain, commit, space: everything of the session that is
  // known before the first trial.
  proto::Session header;
  const tuning::BoundSpace* space = nullptr;  // must outlive the session
  // Where configs come from instead of the space, if not null; the default is
  // the space's all the same. Must outlive the session.
  const tuning::ConfigSource* configs = nullptr;
  // Trials of this very task (same trial keys) known from earlier sessions
  // (known_trials.h). Those that the space does not have any more are left out.
  std::vector<proto::Trial> known_trials;
  // Trials of the sessions that the header names as its sources
  // (transfer_sources.h); may be empty. A session that resumes asks for those
  // that its first sitting learned from.
  std::function<std::vector<tuning::TransferSource>(const proto::Session&)>
      load_sources;
  // The sessions themselves, where configs come from no space.
  std::function<std::vector<proto::Session>(const proto::Session&)>
      load_source_sessions;
  // Measures elsewhere, in place of the evaluator of configs (elsewhere.h);
  // usually empty.
  std::function<std::unique_ptr<tuning::Evaluator>()> elsewhere;
};

struct TuneOptions {
  // Limits the search to the classes that an entry of the store names; "": to
  // none. InvalidArgument for a limit of a later version.
  absl::Status SetNumericsLimit(const std::string& limit);
  std::string NumericsLimit() const;

  // The objectives to optimise; empty: time.
  std::vector<proto::Objective> objectives;
  std::string strategy = "default";
  uint64_t seed = 1;
  proto::Budget budget;
  // How many of the best are ranked before the first of them meets the default.
  int finalists = 4;
  // Readings of each of them, on average.
  int rank_rounds = 5;
  tuning::ProofOptions proof;
  // SessionSetup::incumbent_margin.
  double incumbent_margin = .01;
  // SessionSetup::class_of_default.
  bool class_of_default = false;
  // SessionSetup::batch_invariant.
  bool batch_invariant = false;
  // A config this many times slower than the best is raced out.
  double race_factor = 1.5;
  proto::SamplingOptions sampling;
  // SessionEvaluatorOptions::finalists_ahead.
  std::function<bool()> finalists_ahead;
  // The folder of journals of unfinished sessions; created if missing.
  std::string journal_directory;
  std::function<void(const tuning::TuneProgress&)> on_progress;  // may be empty
};

// The journal of an interrupted session, or a new one. `evaluator` and `clock`
// must outlive it. Errors as tuning::Session::Open.
absl::StatusOr<std::unique_ptr<tuning::Session>> OpenTuneSession(
    const TuneSetup& setup, const TuneOptions& options, Evaluator& evaluator,
    Clock& clock);

// Opens, searches within the session's own budget, and finishes.
absl::StatusOr<proto::Session> RunTuneSession(const TuneSetup& setup,
                                              const TuneOptions& options,
                                              Evaluator& evaluator,
                                              Clock& clock);

// True if an earlier sitting of this very session left its journal.
bool HasTuneJournal(const TuneSetup& setup, const TuneOptions& options);

absl::Status RemoveTuneJournal(const TuneSetup& setup,
                               const TuneOptions& options);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_TUNE_SESSION_H_
