#include "tuning/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

// A gain below this fraction is noise to the patience.
constexpr double kNoise = 0.002;

bool IsRaced(const std::vector<proto::Objective>& objectives) {
  return objectives.size() == 1 &&
         objectives[0].direction() != proto::HIGHER_IS_BETTER;
}

// A session that measured on one node lists none: its samples name it. If
// finalists were read under `prover`, that node proves, and no other does.
void NameProver(const proto::Conditions& prover, proto::Session* session) {
  if (session->nodes_size() < 2) session->clear_nodes();
  if (prover.host().empty()) return;
  bool found = false;
  for (proto::MeasuringNode& node : *session->mutable_nodes()) {
    node.set_proves(!found && node.host() == prover.host() &&
                    (node.device_uuid().empty() ||
                     node.device_uuid() == prover.device_uuid()));
    found |= node.proves();
  }
}

}  // namespace

StopRule StopRuleOf(const proto::Budget& budget,
                    const std::vector<proto::Objective>& objectives) {
  std::vector<StopRule> rules;
  if (budget.trials() > 0) {
    rules.push_back(MaxTrials(static_cast<int>(budget.trials())));
  }
  if (budget.time_ns() > 0) {
    rules.push_back(MaxTime(absl::Nanoseconds(budget.time_ns())));
  }
  // A command may call what it prints "time", too.
  const double target =
      budget.target() > 0 ? budget.target() : budget.target_time_ns();
  if (target > 0) rules.push_back(TargetReached(CostOf(objectives[0], target)));
  if (budget.patience_trials() > 0) {
    rules.push_back(Patience(static_cast<int>(budget.patience_trials())));
  }
  if (budget.min_expected_improvement() > 0) {
    rules.push_back(
        ExpectedImprovementBelow(budget.min_expected_improvement()));
  }
  return AnyOf(std::move(rules));
}

Session::Session(SessionSetup setup, Evaluator& evaluator, Clock& clock)
    : setup_(std::move(setup)), evaluator_(evaluator), clock_(clock) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(SessionSetup setup,
                                                       Evaluator& evaluator,
                                                       Clock& clock) {
  std::unique_ptr<Session> session(
      new Session(std::move(setup), evaluator, clock));
  OPTRAIL_RETURN_IF_ERROR(session->Start());
  return session;
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(
    SessionSetup setup, std::unique_ptr<Evaluator> evaluator, Clock& clock) {
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Open(std::move(setup), *evaluator, clock));
  session->owned_evaluator_ = std::move(evaluator);
  return session;
}

absl::Status Session::Start() {
  OPTRAIL_ASSIGN_OR_RETURN(const Offer offer,
                           evaluator_.Open(setup_.header.task()));
  window_ = offer.compile_ahead() + std::max(1, offer.measure_slots());
  begins_ahead_ = offer.begins_ahead();
  session_ = setup_.header;
  *session_.mutable_nodes() = offer.nodes();
  const auto add_known = [this] {
    for (const proto::Trial& known : setup_.known)
      *session_.add_trials() = known;
    session_.set_warm_start_trial_count(session_.trials_size());
  };
  add_known();
  OPTRAIL_ASSIGN_OR_RETURN(
      journal_, SessionJournal::Open(setup_.journal_directory, session_));
  OPTRAIL_ASSIGN_OR_RETURN(prover_, GoOnProving());
  OPTRAIL_RETURN_IF_ERROR(journal_->BeginSitting(session_));
  session_ = journal_->header();
  NameProver(prover_, &session_);
  if (!journal_->has_warm_start()) add_known();
  // A later sitting may spend more than an earlier one was given.
  *session_.mutable_budget() = setup_.header.budget();
  session_.set_sittings(journal_->sittings());
  objectives_ = ObjectivesOf(session_);
  stop_ = StopRuleOf(session_.budget(), objectives_);
  // A front is of what was read.
  std::vector<std::string> costly;
  if (NamesWinner(objectives_)) {
    costly = {offer.costly_metrics().begin(), offer.costly_metrics().end()};
  }
  metering_ = Metering(std::move(costly), session_.budget().trials());
  OPTRAIL_ASSIGN_OR_RETURN(proposer_, setup_.propose(session_, window_));
  for (const proto::Trial& known : session_.trials()) {
    metering_.AddKnown(known);
    TakeBest(known);
  }
  improved_to_ = progress_.best_cost;
  for (const Reading& reading : journal_->readings()) {
    journaled_readings_[{reading.of_proof(), reading.round(),
                         reading.finalist()}] = reading;
  }
  return absl::OkStatus();
}

void Session::TakeBest(const proto::Trial& trial) {
  if (trial.outcome() != proto::OK) return;
  const auto values = ValuesOf(objectives_, trial);
  if (TightenLimits(values, objectives_)) {
    // What was the best may be beyond them now.
    progress_.best_cost.reset();
    for (const proto::Trial& earlier : session_.trials()) TakeBest(earlier);
  }
  const absl::optional<double> cost = Cost(objectives_, values);
  if (!cost || !WithinLimits(objectives_, values) ||
      (progress_.best_cost && *cost >= *progress_.best_cost)) {
    return;
  }
  progress_.best_cost = cost;
  best_value_ = values[0];
  best_config_ = trial.config();
}

absl::Status Session::Account(const JournaledTrial& journaled) {
  const proto::Trial& trial = journaled.trial;
  metering_.Add(trial);
  const PredictedTrial told = metering_.CompletedFor(objectives_, trial);
  OPTRAIL_RETURN_IF_ERROR(
      proposer_->TellPredicted(told.trial, told.deviation, told.objective));
  ++progress_.trials;
  ++progress_.trials_since_improvement;
  progress_.expected_improvement = journaled.expected_improvement;
  const bool quiet = progress_.expected_improvement &&
                     *progress_.expected_improvement <
                         session_.budget().min_expected_improvement();
  progress_.quiet_trials = quiet ? progress_.quiet_trials + 1 : 0;
  session_.set_elapsed_ns(session_.elapsed_ns() + journaled.thinking_ns +
                          trial.elapsed_ns());
  proto::SessionTime& time = *session_.mutable_time();
  time.set_measure_ns(time.measure_ns() + trial.elapsed_ns());
  time.set_compile_ns(time.compile_ns() + trial.compile_ns());
  time.set_wait_ns(time.wait_ns() + journaled.thinking_ns);
  AddEffort(trial.effort(), time.mutable_effort());
  progress_.elapsed = Spent();
  TakeBest(trial);
  if (progress_.best_cost &&
      (!improved_to_ || *progress_.best_cost < *improved_to_ * (1 - kNoise))) {
    improved_to_ = progress_.best_cost;
    progress_.trials_since_improvement = 0;
  }
  *session_.add_trials() = trial;
  return absl::OkStatus();
}

void Session::Report(const std::string& phase) const {
  if (!setup_.on_progress) return;
  TuneProgress progress;
  progress.trials = progress_.trials;
  progress.trial_limit = session_.budget().trials();
  progress.elapsed_ns = absl::ToInt64Nanoseconds(Spent());
  progress.time_limit_ns = session_.budget().time_ns();
  progress.best_value = best_value_;
  progress.phase = phase;
  progress.share = Share();
  progress.earlier_share = earlier_share_;
  setup_.on_progress(progress);
}

bool Session::HasJournaledSteps() const {
  return replayed_ < journal_->steps().size();
}

absl::Status Session::ReplayTrial() {
  while (HasJournaledSteps()) {
    const JournaledStep& step = journal_->steps()[replayed_++];
    if (const auto* trial = absl::get_if<JournaledTrial>(&step)) {
      in_flight_.erase(trial->ticket);
      OPTRAIL_RETURN_IF_ERROR(Account(*trial));
      earlier_share_ = Share();
      return absl::OkStatus();
    }
    // Draws what the interrupted session drew. A strategy of another version
    // may draw something else: the journal's word counts.
    const JournaledAsk& ask = absl::get<JournaledAsk>(step);
    if (!AsksDefault()) proposer_->Ask(1);
    in_flight_[ask.ticket].config = ask.config;
    last_ticket_ = ask.ticket;
  }
  return absl::OkStatus();
}

bool Session::AsksDefault() const {
  return (setup_.class_of_default || setup_.batch_invariant) &&
         last_ticket_ == 0 &&
         NumericsOf(session_, setup_.default_config).empty();
}

absl::Status Session::AskNext() {
  InFlight flight;
  const int64_t thinking_since_ns = clock_.NowNs();
  const std::vector<proto::Config> asked =
      AsksDefault() ? std::vector<proto::Config>{setup_.default_config}
                    : proposer_->Ask(1);
  flight.thinking_ns = clock_.NowNs() - thinking_since_ns;
  if (asked.empty()) {
    session_.set_stop_reason(proto::SPACE_EXHAUSTED);
    return absl::OkStatus();
  }
  flight.expected_improvement = proposer_->ExpectedImprovement();
  flight.config = asked[0];
  const int64_t ticket = ++last_ticket_;
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendAsk({ticket, flight.config}));
  in_flight_[ticket] = std::move(flight);
  Submit(ticket);
  return absl::OkStatus();
}

void Session::Submit(int64_t ticket) {
  InFlight& flight = in_flight_[ticket];
  flight.submitted = true;
  flight.started_unix_ns = clock_.WallNs();
  Request request;
  request.set_ticket(ticket);
  *request.mutable_config() = flight.config;
  request.set_purpose(Request::SEARCH);
  request.set_round(progress_.trials + static_cast<int64_t>(in_flight_.size()) -
                    1);
  std::vector<std::string> metrics = MetricsOf(objectives_);
  absl::optional<double> expected = best_value_;
  absl::optional<proto::Config> best = best_config_;
  if (metering_.active()) {
    // Time comes first, and is what is raced on, far more patiently than where
    // time is all that is wanted: its samples cost little beside a reading of
    // joules, and a search learns more from a time than from a bound.
    const auto time = absl::c_find(metrics, kTimeMetric);
    if (time != metrics.end()) metrics.erase(time);
    metrics.insert(metrics.begin(), kTimeMetric);
    expected = metering_.best_time_ns();
    best = metering_.fastest();
    request.set_meter_below_ns(
        metering_.MeterBelowNs(request.config(), objectives_));
  }
  *request.mutable_metrics() = {metrics.begin(), metrics.end()};
  if (expected) request.set_expected(*expected);
  if (best) *request.mutable_best() = *std::move(best);
  if (expected && setup_.race_factor > 1 &&
      (IsRaced(objectives_) || metering_.active())) {
    request.set_hopeless_above(
        *expected * (metering_.active()
                         ? std::max(setup_.race_factor, kRaceOfMetered)
                         : setup_.race_factor));
  }
  evaluator_.Submit(std::move(request));
}

absl::Status Session::NoteLost(const proto::Trial& lost) {
  if (++lost_in_a_row_ < kMaxLost) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "the evaluator lost ", lost_in_a_row_, " requests in a row",
      lost.detail().empty() ? "" : absl::StrCat(" (", lost.detail(), ")"),
      "; the same command goes on from the journal"));
}

absl::Status Session::Take(Evaluation answer) {
  const auto found = in_flight_.find(answer.ticket());
  if (found == in_flight_.end()) return absl::OkStatus();  // was cancelled
  if (answer.lost()) {
    OPTRAIL_RETURN_IF_ERROR(NoteLost(answer.trial()));
    Submit(answer.ticket());
    return absl::OkStatus();
  }
  lost_in_a_row_ = 0;
  JournaledTrial trial;
  trial.ticket = answer.ticket();
  trial.trial = std::move(*answer.mutable_trial());
  trial.trial.set_started_unix_ns(found->second.started_unix_ns);
  trial.expected_improvement = found->second.expected_improvement;
  trial.thinking_ns = found->second.thinking_ns;
  if (window_ > 1) {
    // The session's time is the clock's, since trials overlap.
    const int64_t now_ns = clock_.NowNs();
    trial.thinking_ns =
        now_ns - accounted_ns_ - trial.trial.elapsed_ns() - answer.unpaid_ns();
    accounted_ns_ = now_ns;
  }
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendTrial(trial));
  in_flight_.erase(found);
  OPTRAIL_RETURN_IF_ERROR(Account(trial));
  Report("search");
  return absl::OkStatus();
}

bool Session::all_asked() const {
  const int64_t limit = session_.budget().trials();
  return session_.stop_reason() != proto::STOP_REASON_UNSPECIFIED ||
         (limit > 0 &&
          progress_.trials + static_cast<int64_t>(in_flight_.size()) >= limit);
}

bool Session::IsReady() const {
  return HasJournaledSteps() || in_flight_.empty() || evaluator_.IsReady();
}

absl::Status Session::AskAhead() {
  // What an earlier sitting did comes first.
  if (HasJournaledSteps() || journal_->finalists() != nullptr) {
    return absl::OkStatus();
  }
  return AskWhatFits();
}

absl::Status Session::AskWhatFits() {
  const auto stopped = [this] {
    return session_.stop_reason() != proto::STOP_REASON_UNSPECIFIED;
  };
  if (!stopped()) {
    session_.set_stop_reason(stop_(progress_));
    if (!stopped() && MustLeaveTheRest()) {
      session_.set_stop_reason(proto::TIME_SPENT);
    }
  }
  // Those of an earlier sitting first; they were asked, so they are tried.
  for (auto& [ticket, flight] : in_flight_) {
    if (!flight.submitted) Submit(ticket);
  }
  while (!all_asked() && static_cast<int>(in_flight_.size()) < window_ &&
         (in_flight_.empty() || !MustLeaveTheRest())) {
    const size_t before = in_flight_.size();
    OPTRAIL_RETURN_IF_ERROR(AskNext());
    if (in_flight_.size() == before) break;
  }
  return absl::OkStatus();
}

absl::Status Session::Advance() {
  OPTRAIL_CHECK(!search_ended());
  if (HasJournaledSteps()) return ReplayTrial();
  if (journal_->finalists() != nullptr) {
    in_flight_.clear();
    session_.set_stop_reason(journal_->finalists()->stop_reason());
    return absl::OkStatus();
  }
  if (window_ > 1 && accounted_ns_ == 0) accounted_ns_ = clock_.NowNs();
  OPTRAIL_RETURN_IF_ERROR(AskWhatFits());
  // What was asked is answered, also when the search is over.
  if (in_flight_.empty()) return absl::OkStatus();
  std::vector<Evaluation> answers = evaluator_.Poll(absl::InfiniteDuration());
  if (answers.empty()) {
    return absl::InternalError(absl::StrCat("the evaluator has no answer for ",
                                            in_flight_.size(),
                                            " requests and nothing under way"));
  }
  OPTRAIL_RETURN_IF_ERROR(KeepLostNodes());
  for (Evaluation& answer : answers) {
    OPTRAIL_RETURN_IF_ERROR(Take(std::move(answer)));
  }
  return absl::OkStatus();
}

absl::Status Session::KeepLostNodes() {
  for (const proto::MeasuringNode& lost : evaluator_.TakeLostNodes()) {
    OPTRAIL_RETURN_IF_ERROR(journal_->AppendLostNode(lost));
    NoteLostNode(lost, session_.mutable_nodes());
  }
  return absl::OkStatus();
}

absl::Status Session::EndSearch(proto::StopReason reason) {
  // Readings of an earlier sitting with a larger budget are not lost.
  while (HasJournaledSteps()) OPTRAIL_RETURN_IF_ERROR(ReplayTrial());
  for (const auto& [ticket, flight] : in_flight_) evaluator_.Cancel(ticket);
  in_flight_.clear();
  if (!search_ended()) session_.set_stop_reason(reason);
  return ChooseFinalists();
}

absl::StatusOr<proto::Session> Session::Finish() {
  if (session_.finalists().empty()) {
    OPTRAIL_RETURN_IF_ERROR(EndSearch(proto::INTERRUPTED));
  }
  if (!NamesWinner(objectives_)) return session_;
  OPTRAIL_RETURN_IF_ERROR(DeclareWinner());
  // With the limits that followed from the best values.
  for (int i = 0; i < session_.objectives_size(); ++i) {
    *session_.mutable_objectives(i) = objectives_[i];
  }
  // Chosen in case that readings vary, and never looked at.
  auto* finalists = session_.mutable_finalists();
  for (int i = finalists->size() - 1; i > 0; --i) {
    if (!read_[i]) finalists->DeleteSubrange(i, 1);
  }
  return session_;
}
absl::StatusOr<proto::Session> RunSession(const SessionSetup& setup,
                                          Evaluator& evaluator, Clock& clock) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Open(setup, evaluator, clock));
  while (!session->search_ended()) OPTRAIL_RETURN_IF_ERROR(session->Advance());
  return session->Finish();
}

bool HasSessionJournal(const SessionSetup& setup) {
  return FileExists(
      SessionJournal::Path(setup.journal_directory, setup.header));
}

absl::Status RemoveSessionJournal(const SessionSetup& setup) {
  if (setup.journal_directory.empty()) return absl::OkStatus();
  return SessionJournal::Remove(setup.journal_directory, setup.header);
}

}  // namespace optrail::tuning
