#include "suites/tune/tune_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "suites/tune/known_trials.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"

namespace optrail::suites {
namespace {

using tuning::CanonicalText;
using tuning::Levels;

// Inputs rotate among this many sets during the search; each verification
// round has one of its own.
constexpr uint64_t kSearchInputSets = 3;
constexpr uint64_t kFirstVerificationSeed = 1000;

}  // namespace

TuneSession::TuneSession(TuneSetup setup, TuneOptions options,
                         Evaluator& evaluator, Clock& clock)
    : setup_(std::move(setup)),
      options_(std::move(options)),
      evaluator_(evaluator),
      clock_(clock) {}

absl::StatusOr<std::unique_ptr<TuneSession>> TuneSession::Open(
    TuneSetup setup, TuneOptions options, Evaluator& evaluator, Clock& clock) {
  std::unique_ptr<TuneSession> session(
      new TuneSession(std::move(setup), std::move(options), evaluator, clock));
  OPTRAIL_RETURN_IF_ERROR(session->OpenJournal());
  OPTRAIL_RETURN_IF_ERROR(session->MakeStrategy());
  return session;
}

absl::Status TuneSession::OpenJournal() {
  session_ = setup_.header;
  session_.set_strategy(options_.strategy);
  session_.set_seed(options_.seed);
  *session_.mutable_budget() = options_.budget;
  AddKnownTrials();
  OPTRAIL_ASSIGN_OR_RETURN(
      journal_, TuneJournal::Open(options_.journal_directory, session_));
  session_ = journal_->header();
  if (!journal_->has_warm_start()) AddKnownTrials();
  // A later sitting may spend more than an earlier one was given.
  *session_.mutable_budget() = options_.budget;
  session_.set_sittings(journal_->sittings());
  return absl::OkStatus();
}

void TuneSession::AddKnownTrials() {
  for (const proto::Trial& known : setup_.known_trials) {
    const absl::StatusOr<Levels> levels =
        setup_.space->ToLevels(known.config());
    // The space may have lost configs since; their trials help nobody here.
    if (!levels.ok() || !setup_.space->IsValid(*levels)) continue;
    *session_.add_trials() = known;
  }
  session_.set_warm_start_trial_count(session_.trials_size());
}

absl::Status TuneSession::MakeStrategy() {
  tuning::StrategyOptions strategy_options;
  strategy_options.seed = options_.seed;
  strategy_options.budget = static_cast<int>(options_.budget.trials());
  if (const int top_k = static_cast<int>(setup_.space->top_k()); top_k > 0) {
    strategy_options.top_k = top_k;
  }
  for (const proto::Trial& known : session_.trials()) {
    OPTRAIL_ASSIGN_OR_RETURN(const Levels levels,
                             setup_.space->ToLevels(known.config()));
    strategy_options.warm_start.push_back(ForStrategy(known, levels));
    if (known.outcome() == proto::OK && known.has_time_ns() &&
        (best_time_ns_ == 0 || known.time_ns() < best_time_ns_)) {
      best_time_ns_ = known.time_ns();
    }
  }
  if (setup_.load_sources) {
    strategy_options.sources = setup_.load_sources(session_);
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      strategy_,
      tuning::MakeStrategy(options_.strategy, *setup_.space, strategy_options));
  return absl::OkStatus();
}

void TuneSession::Account(const JournaledTrial& journaled) {
  const proto::Trial& trial = journaled.trial;
  ++measured_trials_;
  ++trials_since_improvement_;
  expected_improvement_ = journaled.expected_improvement;
  session_.set_elapsed_ns(session_.elapsed_ns() + journaled.thinking_ns +
                          trial.elapsed_ns());
  if (trial.outcome() == proto::OK &&
      (best_time_ns_ == 0 || trial.time_ns() < best_time_ns_)) {
    best_time_ns_ = trial.time_ns();
    trials_since_improvement_ = 0;
  }
  *session_.add_trials() = trial;
}

proto::StopReason TuneSession::BudgetSpent() const {
  const proto::Budget& budget = options_.budget;
  if (budget.trials() > 0 && measured_trials_ >= budget.trials()) {
    return proto::TRIALS_SPENT;
  }
  if (budget.time_ns() > 0 && session_.elapsed_ns() >= budget.time_ns()) {
    return proto::TIME_SPENT;
  }
  if (budget.target_time_ns() > 0 && best_time_ns_ > 0 &&
      best_time_ns_ <= budget.target_time_ns()) {
    return proto::TARGET_REACHED;
  }
  if (budget.patience_trials() > 0 &&
      trials_since_improvement_ >= budget.patience_trials()) {
    return proto::PATIENCE_SPENT;
  }
  if (budget.min_expected_improvement() > 0) {
    const absl::optional<double> expected = strategy_->ExpectedImprovement();
    if (expected.has_value() && *expected < budget.min_expected_improvement()) {
      return proto::LITTLE_EXPECTED_IMPROVEMENT;
    }
  }
  return proto::STOP_REASON_UNSPECIFIED;
}

void TuneSession::Report(const std::string& phase) const {
  if (!options_.on_progress) return;
  TuneProgress progress;
  progress.trials = measured_trials_;
  progress.trial_limit = options_.budget.trials();
  progress.elapsed_ns = session_.elapsed_ns();
  progress.time_limit_ns = options_.budget.time_ns();
  progress.best_time_ns = best_time_ns_;
  progress.phase = phase;
  options_.on_progress(progress);
}

proto::Trial TuneSession::Measure(const proto::Config& config) {
  EvaluationOptions evaluation_options;
  evaluation_options.sampling = options_.sampling;
  evaluation_options.input_seed =
      static_cast<uint64_t>(measured_trials_) % kSearchInputSets;
  if (best_time_ns_ > 0 && options_.race_factor > 1) {
    evaluation_options.sampling.set_hopeless_above_ns(best_time_ns_ *
                                                      options_.race_factor);
  }
  proto::Trial trial;
  *trial.mutable_config() = config;
  trial.set_started_unix_ns(clock_.WallNs());
  const Evaluation evaluation = evaluator_.Evaluate(config, evaluation_options);
  trial.set_outcome(evaluation.outcome);
  trial.set_detail(evaluation.detail);
  trial.set_elapsed_ns(evaluation.elapsed_ns);
  if (evaluation.measurement.has_value()) {
    *trial.add_measurements() = *evaluation.measurement;
  }
  if (evaluation.time_ns.has_value()) trial.set_time_ns(*evaluation.time_ns);
  if (evaluation.prepare_ns.has_value()) {
    trial.set_compile_ns(*evaluation.prepare_ns);
  }
  if (evaluation.error_in_tolerances.has_value()) {
    trial.set_error_in_tolerances(*evaluation.error_in_tolerances);
  }
  return trial;
}

bool TuneSession::HasJournaledTrials() const {
  return told_of_journal_ < journal_->trials().size();
}

absl::Status TuneSession::TellNextOfJournal() {
  const JournaledTrial& trial = journal_->trials()[told_of_journal_++];
  OPTRAIL_ASSIGN_OR_RETURN(const Levels levels,
                           setup_.space->ToLevels(trial.trial.config()));
  const tuning::Trial told = ForStrategy(trial.trial, levels);
  strategy_->Tell(absl::MakeConstSpan(&told, 1));
  Account(trial);
  return absl::OkStatus();
}

absl::Status TuneSession::Step() {
  OPTRAIL_CHECK(!search_ended());
  if (HasJournaledTrials()) return TellNextOfJournal();
  if (journal_->finalists() != nullptr) {
    session_.set_stop_reason(journal_->finalists()->stop_reason());
    return absl::OkStatus();
  }
  session_.set_stop_reason(BudgetSpent());
  if (search_ended()) return absl::OkStatus();
  const int64_t thinking_since_ns = clock_.NowNs();
  const std::vector<Levels> asked = strategy_->Ask(1);
  JournaledTrial trial;
  trial.thinking_ns = clock_.NowNs() - thinking_since_ns;
  if (asked.empty()) {
    session_.set_stop_reason(proto::SPACE_EXHAUSTED);
    return absl::OkStatus();
  }
  trial.expected_improvement = strategy_->ExpectedImprovement();
  trial.trial = Measure(setup_.space->ToConfig(asked[0]));
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendTrial(trial));
  const tuning::Trial told = ForStrategy(trial.trial, asked[0]);
  strategy_->Tell(absl::MakeConstSpan(&told, 1));
  Account(trial);
  Report("search");
  return absl::OkStatus();
}

absl::Status TuneSession::EndSearch(proto::StopReason reason) {
  // What an earlier sitting with a larger budget measured is not lost.
  while (HasJournaledTrials()) OPTRAIL_RETURN_IF_ERROR(TellNextOfJournal());
  if (!search_ended()) session_.set_stop_reason(reason);
  return ChooseFinalists();
}

absl::Status TuneSession::ChooseFinalists() {
  if (journal_->finalists() != nullptr) {
    session_.set_stop_reason(journal_->finalists()->stop_reason());
    *session_.mutable_finalists() = journal_->finalists()->finalists();
    return absl::OkStatus();
  }
  absl::flat_hash_set<std::string> chosen;
  const auto add = [&](const proto::Config& config, bool is_default) {
    if (!chosen.insert(CanonicalText(config)).second) return;
    proto::Finalist* finalist = session_.add_finalists();
    *finalist->mutable_config() = config;
    finalist->set_is_default(is_default);
    for (const proto::Trial& trial : session_.trials()) {
      if (trial.outcome() == proto::OK &&
          CanonicalText(trial.config()) == CanonicalText(config)) {
        finalist->set_first_time_ns(trial.time_ns());
      }
    }
  };
  add(setup_.space->default_config(), /*is_default=*/true);
  for (const Levels& levels : strategy_->Finalists(options_.finalists)) {
    add(setup_.space->ToConfig(levels), /*is_default=*/false);
  }
  return journal_->AppendFinalists(session_.finalists(),
                                   session_.stop_reason());
}

absl::StatusOr<proto::TuneJournalRecord::Reading> TuneSession::Read(
    int round, int finalist) {
  proto::TuneJournalRecord::Reading reading;
  reading.set_round(round);
  reading.set_finalist(finalist);
  for (int attempt = 0; attempt < kReadingAttempts; ++attempt) {
    EvaluationOptions evaluation_options;
    evaluation_options.sampling = options_.sampling;
    evaluation_options.fresh_process = true;
    evaluation_options.input_seed = kFirstVerificationSeed + round;
    const Evaluation evaluation = evaluator_.Evaluate(
        session_.finalists(finalist).config(), evaluation_options);
    reading.set_outcome(evaluation.outcome);
    reading.set_detail(evaluation.detail);
    reading.set_elapsed_ns(reading.elapsed_ns() + evaluation.elapsed_ns);
    if (evaluation.measurement.has_value()) {
      *reading.mutable_measurement() = *evaluation.measurement;
    }
    if (evaluation.outcome != proto::CONTENDED) break;
  }
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendReading(reading));
  return reading;
}

absl::Status TuneSession::VerifyFinalists() {
  const int count = session_.finalists_size();
  std::vector<bool> disqualified(count, false);
  const auto account = [&](const proto::TuneJournalRecord::Reading& reading) {
    proto::Finalist& finalist = *session_.mutable_finalists(reading.finalist());
    session_.set_elapsed_ns(session_.elapsed_ns() + reading.elapsed_ns());
    // One wrong or crashed reading is enough: such a config never wins.
    if (reading.outcome() == proto::OK) {
      *finalist.add_measurements() = reading.measurement();
      verified_ns_[reading.finalist()][reading.round()] =
          reading.measurement().median_ns();
    } else if (reading.outcome() != proto::CONTENDED) {
      finalist.set_outcome(reading.outcome());
      disqualified[reading.finalist()] = true;
    }
  };
  absl::flat_hash_set<std::pair<int, int>> done;
  for (const auto& reading : journal_->readings()) {
    done.insert({reading.round(), reading.finalist()});
    account(reading);
  }
  const int total = count * options_.verify_processes;
  for (int round = 0; round < options_.verify_processes; ++round) {
    for (int position = 0; position < count; ++position) {
      // Rotated, so that no finalist always runs first.
      const int i = (position + round) % count;
      Report(absl::StrCat("verify ", round * count + position + 1, "/", total));
      if (disqualified[i] || done.contains({round, i})) continue;
      OPTRAIL_ASSIGN_OR_RETURN(const auto reading, Read(round, i));
      account(reading);
    }
  }
  JudgeFinalists(disqualified);
  return absl::OkStatus();
}

void TuneSession::JudgeFinalists(const std::vector<bool>& disqualified) {
  for (int i = 0; i < session_.finalists_size(); ++i) {
    proto::Finalist& finalist = *session_.mutable_finalists(i);
    if (disqualified[i]) continue;
    if (2 * finalist.measurements_size() < options_.verify_processes) {
      finalist.set_outcome(proto::CONTENDED);
      continue;
    }
    std::vector<double> medians_ns;
    for (const proto::Measurement& measurement : finalist.measurements()) {
      medians_ns.push_back(measurement.median_ns());
    }
    finalist.set_outcome(proto::OK);
    finalist.set_time_ns(Median(medians_ns));
  }
}

void TuneSession::DeclareWinner() {
  constexpr int kNone = -1;
  int winner = kNone, fallback = kNone;
  for (int i = 0; i < session_.finalists_size(); ++i) {
    const proto::Finalist& finalist = session_.finalists(i);
    if (finalist.outcome() != proto::OK) continue;
    if (finalist.is_default()) fallback = i;
    if (winner == kNone ||
        finalist.time_ns() < session_.finalists(winner).time_ns()) {
      winner = i;
    }
  }
  if (winner == kNone) return;
  if (fallback != kNone && winner != fallback) {
    // In pairs of the same round, which a drift of the machine leaves alone.
    std::vector<double> ratios;
    for (const auto& [round, default_ns] : verified_ns_[fallback]) {
      const auto found = verified_ns_[winner].find(round);
      if (found != verified_ns_[winner].end()) {
        ratios.push_back(found->second / default_ns);
      }
    }
    if (ratios.empty() || Median(ratios) > 1 - kMinGainOverDefault) {
      winner = fallback;
    }
  }
  *session_.mutable_winner() = session_.finalists(winner).config();
}

absl::StatusOr<proto::Session> TuneSession::Finish() {
  if (session_.finalists().empty()) {
    OPTRAIL_RETURN_IF_ERROR(EndSearch(proto::INTERRUPTED));
  }
  OPTRAIL_RETURN_IF_ERROR(VerifyFinalists());
  DeclareWinner();
  return session_;
}

absl::StatusOr<proto::Session> RunTuneSession(const TuneSetup& setup,
                                              const TuneOptions& options,
                                              Evaluator& evaluator,
                                              Clock& clock) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<TuneSession> session,
                           TuneSession::Open(setup, options, evaluator, clock));
  while (!session->search_ended()) OPTRAIL_RETURN_IF_ERROR(session->Step());
  return session->Finish();
}

namespace {

proto::Session JournalHeader(const TuneSetup& setup,
                             const TuneOptions& options) {
  proto::Session header = setup.header;
  header.set_strategy(options.strategy);
  header.set_seed(options.seed);
  return header;
}

}  // namespace

bool HasTuneJournal(const TuneSetup& setup, const TuneOptions& options) {
  return FileExists(TuneJournal::Path(options.journal_directory,
                                      JournalHeader(setup, options)));
}

absl::Status RemoveTuneJournal(const TuneSetup& setup,
                               const TuneOptions& options) {
  return TuneJournal::Remove(options.journal_directory,
                             JournalHeader(setup, options));
}

}  // namespace optrail::suites
