#include "suites/tune/tune_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "suites/tune/session_evaluator.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/search/strategies.h"
#include "tuning/session/metering.h"
#include "tuning/session/objective.h"

namespace optrail::suites {
namespace {

tuning::SessionSetup SetupOf(const TuneSetup& setup,
                             const TuneOptions& options) {
  tuning::SessionSetup session;
  session.header = setup.header;
  for (const proto::Objective& objective : options.objectives) {
    *session.header.add_objectives() = objective;
  }
  session.header.set_strategy(
      setup.configs != nullptr && options.strategy == tuning::kDefaultStrategy
          ? setup.configs->DefaultStrategy()
          : options.strategy);
  session.header.set_seed(options.seed);
  *session.header.mutable_budget() = options.budget;
  session.finalists = options.finalists;
  session.rank_rounds = options.rank_rounds;
  session.proof = options.proof;
  session.incumbent_margin = options.incumbent_margin;
  session.class_of_default = options.class_of_default;
  session.batch_invariant = options.batch_invariant;
  session.race_factor = options.race_factor;
  session.journal_directory = options.journal_directory;
  session.on_progress = options.on_progress;
  return session;
}

}  // namespace

absl::Status TuneOptions::SetNumericsLimit(const std::string& limit) {
  if (!limit.empty() && limit != tuning::kClassOfDefault &&
      limit != tuning::kBatchInvariantOnly) {
    return absl::InvalidArgumentError(absl::StrCat(
        "numerics_limit is \"", limit, "\", expected ", tuning::kClassOfDefault,
        " or ", tuning::kBatchInvariantOnly));
  }
  class_of_default = limit == tuning::kClassOfDefault;
  batch_invariant = limit == tuning::kBatchInvariantOnly;
  return absl::OkStatus();
}

std::string TuneOptions::NumericsLimit() const {
  return class_of_default  ? tuning::kClassOfDefault
         : batch_invariant ? tuning::kBatchInvariantOnly
                           : "";
}

absl::StatusOr<std::unique_ptr<tuning::Session>> OpenTuneSession(
    const TuneSetup& setup, const TuneOptions& options, Evaluator& evaluator,
    Clock& clock) {
  const tuning::BoundSpace& space = *setup.space;
  tuning::SessionSetup session = SetupOf(setup, options);
  session.default_config = space.default_config();
  for (const proto::Trial& known : setup.known_trials) {
    // The space may have lost configs since; their trials help nobody here.
    const bool valid = setup.configs != nullptr
                           ? setup.configs->Validate(known.config()).ok()
                           : space.Validate(known.config()).ok();
    if (valid) session.known.push_back(known);
  }
  session.propose =
      [&space, configs = setup.configs, load_sources = setup.load_sources,
       load_sessions = setup.load_source_sessions](
          const proto::Session& begun,
          int batch) -> absl::StatusOr<std::unique_ptr<tuning::Proposer>> {
    tuning::ProposerOptions proposer;
    proposer.batch = batch;
    if (configs != nullptr) {
      if (load_sessions) proposer.source_sessions = load_sessions(begun);
      return configs->Propose(begun, proposer);
    }
    if (load_sources) proposer.sources = load_sources(begun);
    return tuning::MakeProposer(space, begun, proposer);
  };
  std::unique_ptr<tuning::Evaluator> measures;
  if (setup.elsewhere) {
    measures = setup.elsewhere();
  } else {
    SessionEvaluatorOptions measuring =
        SessionEvaluatorFor(space, options.sampling, evaluator);
    measuring.finalists_ahead = options.finalists_ahead;
    measuring.tells_numerics |=
        options.class_of_default || options.batch_invariant;
    // The session races only if it has one objective.
    if (options.objectives.size() <= 1 && options.race_factor > 1) {
      measuring.race_factor = options.race_factor;
    }
    measuring.costly_metrics = MeteredOf(tuning::MetricsOf(options.objectives));
    if (measuring.race_factor > 0 && !measuring.costly_metrics.empty()) {
      measuring.race_factor =
          std::max(measuring.race_factor, tuning::kRaceOfMetered);
    }
    measures =
        std::make_unique<SessionEvaluator>(evaluator, std::move(measuring));
  }
  return tuning::Session::Open(std::move(session), std::move(measures), clock);
}

absl::StatusOr<proto::Session> RunTuneSession(const TuneSetup& setup,
                                              const TuneOptions& options,
                                              Evaluator& evaluator,
                                              Clock& clock) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<tuning::Session> session,
                           OpenTuneSession(setup, options, evaluator, clock));
  while (!session->search_ended()) OPTRAIL_RETURN_IF_ERROR(session->Advance());
  return session->Finish();
}

bool HasTuneJournal(const TuneSetup& setup, const TuneOptions& options) {
  return tuning::HasSessionJournal(SetupOf(setup, options));
}

absl::Status RemoveTuneJournal(const TuneSetup& setup,
                               const TuneOptions& options) {
  return tuning::RemoveSessionJournal(SetupOf(setup, options));
}

}  // namespace optrail::suites
