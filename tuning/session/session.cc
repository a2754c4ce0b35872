#include "tuning/session/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"
#include "tuning/session/ranking.h"

namespace optrail::tuning {
namespace {

// A gain below this fraction is noise to the patience.
constexpr double kNoise = 0.002;

// A proof may take as long as the search took, or the least.
constexpr absl::Duration kLeastProofTime = absl::Seconds(3);
constexpr absl::Duration kMostProofTime = absl::Minutes(1);
// A busy machine makes a reading twice too slow now and then, and the least of
// many is a lucky one: what took this many times as long is not read again.
constexpr double kHopeless = 4;
// A metered search has up to so many times the usual finalists.
constexpr int kMostMetered = 2;

// Rounds of a proof that give nothing are repeated so often beyond those that
// give something.
constexpr int kMaxEmptyRounds = 10;

bool IsRaced(const std::vector<proto::Objective>& objectives) {
  return objectives.size() == 1 &&
         objectives[0].direction() != proto::HIGHER_IS_BETTER;
}

void AddEffort(const proto::Effort& one, proto::Effort* all) {
  all->set_open_ns(all->open_ns() + one.open_ns());
  all->set_check_ns(all->check_ns() + one.check_ns());
  all->set_turn_ns(all->turn_ns() + one.turn_ns());
  if (one.has_busy_ns()) all->set_busy_ns(all->busy_ns() + one.busy_ns());
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

// Returns the time that counts towards the budget. A session with a
// proof.session_max_time also pays for opening processes, so that it takes that
// long on a clock.
absl::Duration Spent(const SessionSetup& setup, const proto::Session& session) {
  const absl::Duration elapsed = absl::Nanoseconds(session.elapsed_ns());
  if (!setup.proof.session_max_time.has_value()) return elapsed;
  return elapsed + absl::Nanoseconds(session.time().effort().open_ns());
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

absl::StatusOr<proto::Conditions> Session::GoOnProving() {
  for (const Reading& reading : journal_->readings()) {
    const proto::Conditions& conditions = reading.measurement().conditions();
    if (conditions.host().empty()) continue;
    const absl::Status here =
        evaluator_.ProveOn(conditions.host(), conditions.device_uuid());
    if (here.ok()) return conditions;
    return NeedsProver(conditions, here.message());
  }
  return proto::Conditions();
}

absl::Status Session::NeedsProver(const proto::Conditions& prover,
                                  absl::string_view why) const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the finalists of this session were read on ", prover.host(),
      ", where the others have to be read, too: ", why,
      "; next: offer that node, or move ",
      SessionJournal::Path(setup_.journal_directory, setup_.header),
      " away to tune anew"));
}

absl::Status Session::CheckProver(const Reading& reading) {
  const proto::Conditions& is = reading.measurement().conditions();
  if (is.host().empty()) return absl::OkStatus();
  if (prover_.host().empty()) prover_ = is;
  if (is.host() == prover_.host() &&
      is.device_uuid() == prover_.device_uuid()) {
    return absl::OkStatus();
  }
  const auto text = [](const proto::Conditions& one) {
    return one.device_uuid().empty()
               ? one.host()
               : absl::StrCat(one.host(), ", device ", one.device_uuid());
  };
  return NeedsProver(prover_, absl::StrCat("a reading is of ", text(is),
                                           ", expected ", text(prover_)));
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
  OPTRAIL_RETURN_IF_ERROR(proposer_->TellPredicted(
      metering_.Completed(trial), metering_.DeviationOf(trial)));
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
  progress_.elapsed = Spent(setup_, session_);
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
  progress.elapsed_ns = absl::ToInt64Nanoseconds(Spent(setup_, session_));
  progress.time_limit_ns = session_.budget().time_ns();
  progress.best_value = best_value_;
  progress.phase = phase;
  progress.share = Share();
  progress.earlier_share = earlier_share_;
  setup_.on_progress(progress);
}

double Session::Share() const {
  // Ranking takes half as long as the proof, about.
  constexpr double kVerification = 1.5;
  // A proof that is decided late still has something to do.
  constexpr double kMost = .99;
  const proto::Budget& budget = session_.budget();
  absl::Duration search = progress_.elapsed;
  if (!search_ended()) {
    search = absl::InfiniteDuration();
    if (budget.time_ns() > 0) search = absl::Nanoseconds(budget.time_ns());
    if (budget.trials() > 0 && progress_.trials > 0) {
      search = std::min(search, progress_.elapsed *
                                    static_cast<double>(budget.trials()) /
                                    static_cast<double>(progress_.trials));
    }
  }
  const absl::Duration whole = search + kVerification * MostProofTime(search);
  return whole > absl::ZeroDuration()
             ? std::min(kMost,
                        absl::FDivDuration(Spent(setup_, session_), whole))
             : 0;
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

std::vector<proto::Trial> Session::CompletedTrials(double deviations) const {
  return metering_.Completed(
      std::vector<proto::Trial>(session_.trials().begin(),
                                session_.trials().end()),
      deviations);
}

std::vector<proto::Config> Session::BestByLimits(int count) const {
  std::vector<std::pair<double, const proto::Trial*>> within;
  // Where little was metered, what may be the best: finalists are.
  const std::vector<proto::Trial> trials = CompletedTrials(/*deviations=*/-1);
  for (const proto::Trial& trial : trials) {
    const auto values = ValuesOf(objectives_, trial);
    const absl::optional<double> cost = Cost(objectives_, values);
    if (trial.outcome() == proto::OK && cost.has_value() &&
        WithinLimits(objectives_, values)) {
      within.emplace_back(*cost, &trial);
    }
  }
  std::stable_sort(
      within.begin(), within.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<proto::Config> configs;
  for (const auto& [cost, trial] : within) {
    if (static_cast<int>(configs.size()) < count) {
      configs.push_back(trial->config());
    }
  }
  return configs;
}

std::vector<proto::Config> Session::MeteredFinalists() const {
  // The least of several readings is a lucky one, so more than one is read
  // again.
  constexpr int kReadAgain = 2;
  absl::flat_hash_set<std::string> metered, taken;
  for (int i = session_.warm_start_trial_count(); i < session_.trials_size();
       ++i) {
    const proto::Trial& trial = session_.trials(i);
    if (metering_.IsMetered(trial)) {
      metered.insert(CanonicalText(trial.config()));
    }
  }
  int unspent = kMeteredConfigs - static_cast<int>(metered.size());
  for (const proto::Finalist& finalist : session_.finalists()) {
    const std::string text = CanonicalText(finalist.config());
    if (!metered.contains(text)) --unspent;
    taken.insert(text);
  }
  std::vector<proto::Config> again, chosen;
  for (const proto::Config& config : BestByLimits(session_.trials_size())) {
    const std::string text = CanonicalText(config);
    if (!MayWin(config) || !taken.insert(text).second) continue;
    if (metered.contains(text)) {
      if (static_cast<int>(again.size()) < kReadAgain) again.push_back(config);
    } else if (unspent > 0) {
      --unspent;
      chosen.push_back(config);
    }
  }
  // A ranking that is short of time reads the first ones.
  if (!again.empty()) chosen.insert(chosen.begin(), again.front());
  if (again.size() > 1) chosen.push_back(again.back());
  const size_t most = kMostMetered * static_cast<size_t>(setup_.finalists);
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

absl::optional<proto::Config> Session::BestIn(size_t objective) const {
  const proto::Trial* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const proto::Trial& trial : session_.trials()) {
    const auto value = ValueOf(trial, objectives_[objective]);
    if (trial.outcome() != proto::OK || !value || !(*value > 0)) continue;
    const double cost = CostOf(objectives_[objective], *value);
    if (cost >= least) continue;
    least = cost;
    best = &trial;
  }
  return best == nullptr ? absl::nullopt : absl::make_optional(best->config());
}

void Session::VerifyLimits() {
  std::vector<proto::Objective> verified = objectives_;
  for (proto::Objective& objective : verified) {
    if (objective.has_limit_over_best()) objective.clear_limit();
  }
  for (const proto::Finalist& finalist : session_.finalists()) {
    if (finalist.outcome() != proto::OK) continue;
    TightenLimits(ValuesOf(verified, finalist), verified);
  }
  for (size_t i = 0; i < verified.size(); ++i) {
    if (verified[i].has_limit()) objectives_[i] = verified[i];
  }
}

bool Session::MayWin(const proto::Config& config) const {
  if (!setup_.class_of_default && !setup_.batch_invariant) return true;
  const std::string numerics = NumericsOf(session_, config);
  // A short search may not draw the incumbent, whose class is known from the
  // session that it won.
  if (numerics.empty()) {
    return session_.has_incumbent() &&
           CanonicalText(session_.incumbent()) == CanonicalText(config);
  }
  if (setup_.batch_invariant && !IsBatchInvariant(numerics)) return false;
  return !setup_.class_of_default ||
         SameBits(numerics, NumericsOf(session_, setup_.default_config));
}

absl::Status Session::ChooseFinalists() {
  if (journal_->finalists() != nullptr) {
    session_.set_stop_reason(journal_->finalists()->stop_reason());
    *session_.mutable_finalists() = journal_->finalists()->finalists();
  } else {
    absl::flat_hash_set<std::string> chosen;
    const auto times_ns = FirstReadings([](const proto::Trial& trial) {
      return trial.has_time_ns() ? absl::make_optional(trial.time_ns())
                                 : absl::nullopt;
    });
    const auto add = [&](const proto::Config& config, bool is_default) {
      const std::string text = CanonicalText(config);
      if (!is_default && !MayWin(config)) return;
      if (!chosen.insert(text).second) return;
      proto::Finalist* finalist = session_.add_finalists();
      *finalist->mutable_config() = config;
      finalist->set_is_default(is_default);
      const auto time_ns = times_ns.find(text);
      if (time_ns != times_ns.end()) {
        finalist->set_first_time_ns(time_ns->second);
      }
    };
    add(setup_.default_config, /*is_default=*/true);
    // What a limit depends on is read again beside the others.
    for (size_t i = 0; i < objectives_.size(); ++i) {
      if (!objectives_[i].has_limit_over_best()) continue;
      if (const auto best = BestIn(i)) add(*best, /*is_default=*/false);
    }
    const bool has_winner = NamesWinner(objectives_);
    if (has_winner && session_.has_incumbent()) {
      add(session_.incumbent(), /*is_default=*/false);
    }
    // In some classes, of all that were tried.
    const bool in_classes = setup_.class_of_default || setup_.batch_invariant;
    const int most =
        in_classes ? session_.trials_size() : kMostFinalists * setup_.finalists;
    const bool by_proposer =
        objectives_.size() == 1 || objectives_[0].has_weight();
    for (const proto::Config& config : !has_winner          ? proposer_->Front()
                                       : metering_.active() ? MeteredFinalists()
                                       : by_proposer
                                           ? proposer_->Finalists(most)
                                           : BestByLimits(most)) {
      if (in_classes &&
          session_.finalists_size() > kMostFinalists * setup_.finalists) {
        break;
      }
      add(config, /*is_default=*/false);
    }
    OPTRAIL_RETURN_IF_ERROR(journal_->AppendFinalists(session_.finalists(),
                                                      session_.stop_reason()));
  }
  disqualified_.assign(session_.finalists_size(), false);
  read_.assign(session_.finalists_size(), false);
  for (int i = 0; session_.has_incumbent() && i < session_.finalists_size();
       ++i) {
    if (CanonicalText(session_.finalists(i).config()) ==
        CanonicalText(session_.incumbent())) {
      incumbent_ = i;
    }
  }
  return absl::OkStatus();
}

void Session::AccountReading(const Reading& reading) {
  session_.set_elapsed_ns(session_.elapsed_ns() + reading.elapsed_ns());
  proto::SessionTime& time = *session_.mutable_time();
  if (reading.of_proof()) {
    time.set_prove_ns(time.prove_ns() + reading.elapsed_ns());
  } else {
    time.set_rank_ns(time.rank_ns() + reading.elapsed_ns());
  }
  AddEffort(reading.effort(), time.mutable_effort());
}

absl::StatusOr<Session::Reading> Session::Read(bool of_proof, int round,
                                               int finalist) {
  read_[finalist] = true;
  const auto journaled = journaled_readings_.find({of_proof, round, finalist});
  if (journaled != journaled_readings_.end()) {
    Reading reading = std::move(journaled->second);
    journaled_readings_.erase(journaled);
    AccountReading(reading);
    earlier_share_ = Share();
    return reading;
  }
  Reading reading;
  reading.set_round(round);
  reading.set_finalist(finalist);
  reading.set_of_proof(of_proof);
  for (int attempt = 0; attempt < kReadingAttempts;) {
    const auto expected = expected_readings_.find({of_proof, round, finalist});
    int64_t ticket = 0;
    if (expected != expected_readings_.end()) {
      ticket = expected->second;
      expected_readings_.erase(expected);
    } else {
      ticket = SubmitReading(of_proof, round, finalist, /*of_round=*/1);
    }
    while (answers_.count(ticket) == 0) {
      std::vector<Evaluation> answers =
          evaluator_.Poll(absl::InfiniteDuration());
      if (answers.empty()) {
        return absl::InternalError("the evaluator has nothing under way");
      }
      for (Evaluation& one : answers) answers_[one.ticket()] = std::move(one);
    }
    const Evaluation answer = std::move(answers_[ticket]);
    answers_.erase(ticket);
    if (answer.lost()) {
      OPTRAIL_RETURN_IF_ERROR(NoteLost(answer.trial()));
      continue;
    }
    lost_in_a_row_ = 0;
    ++attempt;
    const proto::Trial& trial = answer.trial();
    reading.set_outcome(trial.outcome());
    reading.set_detail(trial.detail());
    reading.set_elapsed_ns(reading.elapsed_ns() + trial.elapsed_ns());
    AddEffort(trial.effort(), reading.mutable_effort());
    if (!trial.measurements().empty()) {
      *reading.mutable_measurement() = trial.measurements(0);
    }
    // A command has no samples: what it printed is the measurement.
    for (const proto::MetricSamples& value : trial.objectives()) {
      *reading.mutable_measurement()->add_metrics() = value;
    }
    reading.mutable_measurement()->set_round(round + 1);
    if (trial.outcome() != proto::CONTENDED) break;
  }
  OPTRAIL_RETURN_IF_ERROR(CheckProver(reading));
  OPTRAIL_RETURN_IF_ERROR(journal_->AppendReading(reading));
  AccountReading(reading);
  return reading;
}

void Session::ExpectReadings(bool of_proof, int round,
                             const std::vector<int>& finalists) {
  if (!begins_ahead_) return;
  std::vector<int> unread;
  for (const int finalist : finalists) {
    if (journaled_readings_.count({of_proof, round, finalist}) == 0) {
      unread.push_back(finalist);
    }
  }
  for (const int finalist : unread) {
    expected_readings_[{of_proof, round, finalist}] = SubmitReading(
        of_proof, round, finalist, static_cast<int>(unread.size()));
  }
}

int64_t Session::SubmitReading(bool of_proof, int round, int finalist,
                               int of_round) {
  Request request;
  request.set_ticket(++last_ticket_);
  *request.mutable_config() = session_.finalists(finalist).config();
  request.set_purpose(of_proof ? Request::PROVE : Request::RANK);
  request.set_round(round);
  request.set_of_round(of_round);
  for (std::string& metric : MetricsOf(objectives_)) {
    request.add_metrics(std::move(metric));
  }
  if (session_.finalists(finalist).has_time_ns()) {
    request.set_expected(session_.finalists(finalist).time_ns());
  } else if (session_.finalists(finalist).first_time_ns() > 0) {
    request.set_expected(session_.finalists(finalist).first_time_ns());
  }
  evaluator_.Submit(std::move(request));
  return last_ticket_;
}

absl::optional<double> Session::CostOfReading(const Reading& reading) {
  if (reading.outcome() == proto::OK) {
    return Cost(objectives_, ValuesOf(objectives_, reading.measurement()));
  }
  // One wrong or crashed reading is enough: such a config never wins.
  if (reading.outcome() != proto::CONTENDED) {
    proto::Finalist& failed = *session_.mutable_finalists(reading.finalist());
    failed.set_outcome(reading.outcome());
    failed.set_detail(reading.detail());
    disqualified_[reading.finalist()] = true;
  }
  return absl::nullopt;
}

bool Session::SetVerified(
    int finalist,
    const google::protobuf::RepeatedPtrField<proto::Measurement>& readings) {
  proto::Finalist& verified = *session_.mutable_finalists(finalist);
  verified.clear_objectives();
  const auto store = [&](const std::string& metric, const std::string& unit,
                         proto::Direction direction) {
    std::vector<double> medians;
    for (const proto::Measurement& reading : readings) {
      const auto value = ValueOf(reading, metric);
      if (value.has_value()) medians.push_back(*value);
    }
    if (medians.empty()) return;
    // What a command calls "time" has the command's unit.
    if (metric == kTimeMetric && unit == TimeObjective().unit()) {
      verified.set_time_ns(Median(medians));
      return;
    }
    proto::MetricSamples* stored = verified.add_objectives();
    stored->set_metric(metric);
    stored->set_unit(unit);
    stored->set_direction(direction);
    stored->add_values(Median(medians));
  };
  // Also where something else is optimised, people ask what it takes.
  std::vector<double> times_ns;
  for (const proto::Measurement& reading : readings) {
    if (reading.has_median_ns()) times_ns.push_back(reading.median_ns());
  }
  if (!times_ns.empty()) verified.set_time_ns(Median(times_ns));
  // Metrics alone; what is computed from them is computed when it is asked for.
  for (const proto::Objective& objective : objectives_) {
    if (objective.terms().empty()) {
      store(objective.metric(), objective.unit(), objective.direction());
    }
  }
  for (const std::string& metric : MetricsOf(objectives_)) {
    if (!ValueOf(verified, metric)) {
      store(metric, metric == kTimeMetric ? TimeObjective().unit() : "",
            proto::LOWER_IS_BETTER);
    }
  }
  verified.set_outcome(proto::OK);
  return WithinLimits(objectives_, ValuesOf(objectives_, verified));
}

absl::Status Session::ReadAll(const std::vector<int>& candidates,
                              int first_round, SequentialHalving& ranking) {
  while (!ranking.done()) {
    if (ranking.rounds() > 0 && TimeBeforeProof() <= absl::ZeroDuration()) {
      ranking.Stop();
      ranking_cut_ = true;
      break;
    }
    const int round = first_round + ranking.rounds();
    Report(absl::StrCat("rank ", round + 1));
    std::map<int, double> costs;
    std::vector<int> finalists;
    for (const int i : ranking.NextRound()) finalists.push_back(candidates[i]);
    ExpectReadings(/*of_proof=*/false, round, finalists);
    for (const int i : ranking.NextRound()) {
      OPTRAIL_ASSIGN_OR_RETURN(const Reading reading,
                               Read(/*of_proof=*/false, round, candidates[i]));
      if (const auto cost = CostOfReading(reading)) {
        costs[i] = *cost;
        *session_.mutable_finalists(candidates[i])->add_measurements() =
            reading.measurement();
      }
    }
    ranking.AddRound(costs);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (Disqualified(candidates[i])) ranking.Disqualify(static_cast<int>(i));
    }
  }
  return absl::OkStatus();
}

absl::flat_hash_map<std::string, double> Session::FirstReadings(
    absl::FunctionRef<absl::optional<double>(const proto::Trial&)> value)
    const {
  absl::flat_hash_map<std::string, double> readings;
  for (const proto::Trial& trial : CompletedTrials(/*deviations=*/0)) {
    if (trial.outcome() != proto::OK) continue;
    if (const auto known = value(trial)) {
      readings[CanonicalText(trial.config())] = *known;
    }
  }
  return readings;
}

std::vector<int> Session::InDoubt(const std::vector<int>& candidates) const {
  const auto first_costs = FirstReadings([this](const proto::Trial& trial) {
    return Cost(objectives_, ValuesOf(objectives_, trial));
  });
  const auto first_cost = [&](int candidate) {
    const auto found =
        first_costs.find(CanonicalText(session_.finalists(candidate).config()));
    return found == first_costs.end() ? std::numeric_limits<double>::infinity()
                                      : found->second;
  };
  double least = std::numeric_limits<double>::infinity();
  for (const int candidate : candidates) {
    least = std::min(least, first_cost(candidate));
  }
  std::vector<int> in_doubt;
  for (const int candidate : candidates) {
    if (!Disqualified(candidate) &&
        (candidate == incumbent_ ||
         first_cost(candidate) <= least * kHopeless)) {
      in_doubt.push_back(candidate);
    }
  }
  return in_doubt;
}

absl::Duration Session::MostProofTime(absl::Duration search) const {
  return setup_.proof.max_time.value_or(
      std::min(kMostProofTime, std::max(kLeastProofTime, search)));
}

absl::Duration Session::TimeLeft() const {
  return setup_.proof.session_max_time.value_or(absl::InfiniteDuration()) -
         Spent(setup_, session_);
}

absl::Duration Session::TimeBeforeProof() const {
  return TimeLeft() -
         std::max(MostProofTime(progress_.elapsed), LeastProofTime());
}

absl::Duration Session::ReadingTime() const {
  // The newest are as long as those to come. A process stays open for many
  // trials, and each reading of a finalist opens one, as the first trial did.
  constexpr int kNewest = 16;
  const int first = session_.warm_start_trial_count();
  const int end = session_.trials_size();
  int64_t elapsed_ns = 0, open_ns = 0;
  int count = 0;
  for (int i = end - 1; i >= first && count < kNewest; --i) {
    const proto::Trial& trial = session_.trials(i);
    open_ns = std::max(open_ns, trial.effort().open_ns());
    if (trial.outcome() != proto::OK) continue;
    elapsed_ns += trial.elapsed_ns();
    ++count;
  }
  if (count == 0) return absl::ZeroDuration();
  open_ns = std::max(open_ns, session_.trials(first).effort().open_ns());
  return absl::Nanoseconds(elapsed_ns / count + open_ns);
}

absl::Duration Session::LeastProofTime() const {
  return 2 * setup_.proof.min_rounds * ReadingTime();
}

bool Session::MustLeaveTheRest() const {
  // The default and one other config, and this share of the time: less is no
  // search. What a reading takes is a guess, too: the first process may have
  // been slow to open.
  constexpr int kLeastTrials = 2;
  constexpr double kLeastShare = .25;
  const auto in_flight = static_cast<int>(in_flight_.size());
  if (!setup_.proof.session_max_time.has_value() ||
      progress_.trials + in_flight < kLeastTrials ||
      Spent(setup_, session_) < kLeastShare * *setup_.proof.session_max_time) {
    return false;
  }
  return TimeBeforeProof() < (in_flight + 1 + setup_.finalists) * ReadingTime();
}

std::string Session::ShortBudgetText() const {
  const absl::Duration whole =
      setup_.proof.session_max_time.value_or(absl::InfiniteDuration());
  const absl::Duration reading = ReadingTime();
  // Two trials and a proof are the least.
  const absl::Duration least = 2 * reading + LeastProofTime();
  if (least <= whole) return "";
  const auto text = [](absl::Duration duration) {
    return FormatDurationNs(absl::ToDoubleNanoseconds(duration));
  };
  return absl::StrCat("one measurement takes ", text(reading),
                      ", and a proof at least ", 2 * setup_.proof.min_rounds,
                      " of them: this takes about ", text(least), ", not the ",
                      text(whole),
                      " of the time budget, and tries few configs; next: a "
                      "larger budget");
}

void Session::SortByPreference(std::vector<int>* finalists) const {
  using Preference = std::tuple<bool, int64_t, std::string>;
  const std::string default_text = CanonicalText(setup_.default_config);
  const absl::flat_hash_set<absl::string_view> default_parts =
      absl::StrSplit(default_text, ',');
  std::vector<std::pair<Preference, int>> sorted;
  for (const int i : *finalists) {
    const std::string text = CanonicalText(session_.finalists(i).config());
    const int64_t changed = absl::c_count_if(
        absl::StrSplit(text, ','),
        [&](absl::string_view part) { return !default_parts.contains(part); });
    sorted.push_back({{i != incumbent_, changed, text}, i});
  }
  absl::c_sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) (*finalists)[i] = sorted[i].second;
}

absl::StatusOr<std::vector<int>> Session::Rank() {
  std::vector<int> all;
  for (int i = 0; i < session_.finalists_size(); ++i) {
    if (!session_.finalists(i).is_default()) all.push_back(i);
  }
  std::vector<int> few = all;
  // The incumbent is there beside the best of the search. Finalists of a
  // metered search were chosen to be read, each of them; they share the
  // readings of fewer.
  const int usual = setup_.finalists + (incumbent_ > 0 ? 1 : 0);
  int most = metering_.active() ? static_cast<int>(few.size()) : usual;
  // A round of more would take the time of the proof.
  if (const absl::Duration reading = ReadingTime();
      setup_.proof.session_max_time.has_value() &&
      reading > absl::ZeroDuration()) {
    const double affordable = absl::FDivDuration(TimeBeforeProof(), reading);
    const int least = incumbent_ > 0 ? 2 : 1;
    if (affordable < most && most > least) {
      most = std::max(least, static_cast<int>(affordable));
      ranking_cut_ = true;
    }
  }
  few.resize(std::min<size_t>(few.size(), most));
  SortByPreference(&few);
  const absl::Duration spent_before = Spent(setup_, session_);
  SequentialHalving ranking(
      static_cast<int>(few.size()),
      std::min<int>(few.size(), usual) * setup_.rank_rounds);
  OPTRAIL_RETURN_IF_ERROR(ReadAll(few, /*first_round=*/0, ranking));
  std::vector<int> order;
  for (const int i : ranking.Order()) order.push_back(few[i]);
  OPTRAIL_RETURN_IF_ERROR(
      RankMore(all, ranking, Spent(setup_, session_) - spent_before, &order));
  for (const int finalist : all) {
    const proto::Finalist& read = session_.finalists(finalist);
    if (Disqualified(finalist) || read.measurements().empty()) continue;
    const auto measurements = read.measurements();
    SetVerified(finalist, measurements);
  }
  VerifyLimits();
  order.erase(
      std::remove_if(order.begin(), order.end(),
                     [this](int i) {
                       return !WithinLimits(
                           objectives_,
                           ValuesOf(objectives_, session_.finalists(i)));
                     }),
      order.end());
  return order;
}

absl::Status Session::RankMore(const std::vector<int>& all,
                               const SequentialHalving& ranking,
                               absl::Duration took, std::vector<int>* order) {
  const int wanted = ReadingsWanted(ranking.Spread());
  if (wanted < 2 * setup_.rank_rounds || ranking.rounds() == 0) {
    return absl::OkStatus();
  }
  std::vector<int> many = InDoubt(all);
  const int readings_so_far = ranking.readings();
  const double per_reading_ns =
      std::max(1., absl::ToDoubleNanoseconds(took)) / readings_so_far;
  const double affordable =
      absl::ToDoubleNanoseconds(
          std::min(MostProofTime(progress_.elapsed) / 4, TimeBeforeProof())) /
      per_reading_ns;
  if (affordable < readings_so_far) return absl::OkStatus();
  const int readings = static_cast<int>(
      std::min(affordable, static_cast<double>(many.size()) * wanted));
  many.resize(std::min<size_t>(many.size(), readings / setup_.rank_rounds));
  if (many.size() < 2 || readings < 2 * readings_so_far) {
    return absl::OkStatus();
  }
  SortByPreference(&many);
  SequentialHalving wider(static_cast<int>(many.size()), readings);
  OPTRAIL_RETURN_IF_ERROR(ReadAll(many, ranking.rounds(), wider));
  std::vector<int> wider_order;
  for (const int i : wider.Order()) wider_order.push_back(many[i]);
  // Those that were in no doubt come last.
  for (const int i : *order) {
    if (!absl::c_linear_search(many, i) && !Disqualified(i)) {
      wider_order.push_back(i);
    }
  }
  *order = std::move(wider_order);
  return absl::OkStatus();
}

PairedProof Session::NewProof(int base) const {
  ProofOptions options = setup_.proof;
  options.max_time = std::min(MostProofTime(progress_.elapsed),
                              std::max(absl::ZeroDuration(), TimeLeft()));
  if (base == incumbent_) options.margin = setup_.incumbent_margin;
  return PairedProof(options, objectives_);
}

absl::StatusOr<Session::Proven> Session::Compare(int candidate, int base,
                                                 PairedProof* paired,
                                                 proto::Proof* proof) {
  *proof->mutable_candidate() = session_.finalists(candidate).config();
  const absl::Duration spent_before = Spent(setup_, session_);
  int empty_rounds = 0;
  while (paired->Open(Spent(setup_, session_) - spent_before) &&
         empty_rounds <= paired->rounds() + kMaxEmptyRounds) {
    Report(absl::StrCat("prove round ", paired->rounds() + 1));
    const int round = proof_round_++;
    // In turns, so that neither side always runs first.
    const bool base_first = round % 2 == 0;
    Reading first, second;
    ExpectReadings(/*of_proof=*/true, round,
                   base_first ? std::vector<int>{base, candidate}
                              : std::vector<int>{candidate, base});
    OPTRAIL_ASSIGN_OR_RETURN(
        first, Read(/*of_proof=*/true, round, base_first ? base : candidate));
    OPTRAIL_ASSIGN_OR_RETURN(
        second, Read(/*of_proof=*/true, round, base_first ? candidate : base));
    if (!base_first) std::swap(first, second);
    const absl::optional<double> base_cost = CostOfReading(first);
    const absl::optional<double> cost = CostOfReading(second);
    if (Disqualified(candidate)) return Proven::kCandidateFailed;
    if (cost) *proof->add_candidate_measurements() = second.measurement();
    if (Disqualified(base)) {
      *session_.mutable_finalists(candidate)->add_measurements() =
          second.measurement();
      return Proven::kBaseFailed;
    }
    if (!cost || !base_cost) {
      if (cost) proof->mutable_candidate_measurements()->RemoveLast();
      ++empty_rounds;
      continue;
    }
    *proof->add_default_measurements() = first.measurement();
    paired->Add(*cost, *base_cost);
  }
  paired->Fill(proof);
  return Proven::kDecided;
}

absl::StatusOr<Session::Proven> Session::Prove(int candidate) {
  constexpr int kDefault = 0;  // the first finalist
  PairedProof paired = NewProof(kDefault);
  proto::Proof proof;
  OPTRAIL_ASSIGN_OR_RETURN(const Proven proven,
                           Compare(candidate, kDefault, &paired, &proof));
  if (proven != Proven::kDecided) return proven;
  *session_.mutable_proof() = proof;
  if (paired.rounds() < setup_.proof.min_rounds) {
    session_.mutable_finalists(kDefault)->set_outcome(proto::CONTENDED);
    session_.mutable_finalists(candidate)->set_outcome(proto::CONTENDED);
    return Proven::kDecided;
  }
  if (!SetVerified(candidate, proof.candidate_measurements())) {
    disqualified_[candidate] = true;
    return Proven::kCandidateFailed;
  }
  // Beyond a limit the default is no result, however the two compare.
  const bool default_counts =
      SetVerified(kDefault, proof.default_measurements()) &&
      (!setup_.batch_invariant || MayWin(setup_.default_config));
  const bool stays = candidate == incumbent_
                         ? !paired.LostBy(setup_.incumbent_margin)
                         : paired.Claimed();
  *session_.mutable_winner() =
      session_.finalists(stays || !default_counts ? candidate : kDefault)
          .config();
  return Proven::kDecided;
}

absl::StatusOr<bool> Session::VerifyAlone(int finalist) {
  // Rounds of the ranking have other numbers.
  constexpr int kFirstRound = 1000;
  const int wanted = setup_.rank_rounds;
  proto::Finalist& alone = *session_.mutable_finalists(finalist);
  int round = 0;
  for (; round < 2 * wanted && alone.measurements_size() < wanted; ++round) {
    if (round > 0 && TimeLeft() <= absl::ZeroDuration()) break;
    Report(absl::StrCat("verify ", round + 1));
    OPTRAIL_ASSIGN_OR_RETURN(
        const Reading reading,
        Read(/*of_proof=*/false, kFirstRound + round, finalist));
    if (CostOfReading(reading)) {
      *alone.add_measurements() = reading.measurement();
    }
    if (Disqualified(finalist)) return false;
  }
  if (2 * alone.measurements_size() < std::min(wanted, round)) {
    alone.set_outcome(proto::CONTENDED);
    return false;
  }
  const auto measurements = alone.measurements();
  return SetVerified(finalist, measurements);
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

absl::Status Session::DefendIncumbent(std::vector<int>* order) {
  const auto incumbent = [&] { return absl::c_find(*order, incumbent_); };
  // The default defends itself in the proof of the first.
  while (incumbent() != order->end() && incumbent() != order->begin()) {
    PairedProof paired = NewProof(incumbent_);
    proto::Proof proof;
    OPTRAIL_ASSIGN_OR_RETURN(
        const Proven proven,
        Compare(order->front(), incumbent_, &paired, &proof));
    if (proven == Proven::kCandidateFailed) {
      order->erase(order->begin());
      continue;
    }
    if (proven == Proven::kBaseFailed) {
      order->erase(incumbent());
      return absl::OkStatus();
    }
    *session_.mutable_incumbent_proof() = proof;
    if (!paired.Claimed()) {
      std::rotate(order->begin(), incumbent(), incumbent() + 1);
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Session::DefendAgainstDefault(int candidate) {
  if (incumbent_ <= 0 || candidate == incumbent_ || Disqualified(incumbent_) ||
      CanonicalText(session_.winner()) !=
          CanonicalText(setup_.default_config)) {
    return absl::OkStatus();
  }
  const proto::Proof proof = session_.proof();
  OPTRAIL_ASSIGN_OR_RETURN(const Proven proven, Prove(incumbent_));
  if (proven == Proven::kDecided) return absl::OkStatus();
  *session_.mutable_proof() = proof;
  *session_.mutable_winner() = setup_.default_config;
  return absl::OkStatus();
}

absl::Status Session::DeclareWinner() {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<int> order, Rank());
  bool default_failed = false;
  while (true) {
    // Each time: what comes after one that failed has met no incumbent yet.
    OPTRAIL_RETURN_IF_ERROR(DefendIncumbent(&order));
    if (order.empty()) break;
    const int candidate = order.front();
    order.erase(order.begin());
    Proven proven = Proven::kBaseFailed;
    if (!default_failed) {
      OPTRAIL_ASSIGN_OR_RETURN(proven, Prove(candidate));
    }
    if (proven == Proven::kDecided) return DefendAgainstDefault(candidate);
    session_.clear_proof();
    if (proven == Proven::kCandidateFailed) continue;
    // There is nothing to be better than.
    default_failed = true;
    OPTRAIL_ASSIGN_OR_RETURN(const bool works, VerifyAlone(candidate));
    if (!works) continue;
    *session_.mutable_winner() = session_.finalists(candidate).config();
    return absl::OkStatus();
  }
  if (!default_failed &&
      (!setup_.batch_invariant || MayWin(setup_.default_config))) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool works, VerifyAlone(0));
    if (works) *session_.mutable_winner() = session_.finalists(0).config();
  }
  return absl::OkStatus();
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
