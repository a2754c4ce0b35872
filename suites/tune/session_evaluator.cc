#include "suites/tune/session_evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/process/host_name.h"
#include "suites/stopwatch/stopwatch.h"
#include "tuning/session/objective.h"

namespace optrail::suites {
namespace {

using tuning::Purpose;
using tuning::Request;

constexpr uint64_t kFirstRankSeed = 1000;
constexpr uint64_t kFirstProofSeed = 2000;

// Opening processes takes the processors, and the driver's lock, for which
// readings wait: beside the search one is begun now and then, and never are
// more than two under way. Eight that are begun at once are open together at
// the end; of eight in turn, the one that is needed first is open first.
constexpr int kAnswersAnOpening = 8;
constexpr int64_t kOpeningNs = 40'000'000;
constexpr size_t kOpeningTogether = 2;

// A bound on what a meter reads says nothing of the stopwatch.
bool IsTimed(const tuning::Request& request) {
  return request.metrics().empty() || request.metrics(0) == tuning::kTimeMetric;
}

bool HasLongCalls(const tuning::Request& request) {
  return request.has_expected() && request.expected() >= kLongCallNs;
}

}  // namespace

std::vector<std::string> MeteredOf(const std::vector<std::string>& metrics) {
  std::vector<std::string> metered;
  for (const std::string& metric : metrics) {
    if (metric != tuning::kTimeMetric && metric != kMemoryMetric &&
        metric != kErrorMetric) {
      metered.push_back(metric);
    }
  }
  return metered;
}

uint64_t SessionEvaluator::SeedOf(Purpose purpose, int64_t round) const {
  // Inputs rotate among some sets during the search, among others while a
  // winner is proven, and again among others while finalists are ranked in
  // processes of their own. New ones for each round would each need a
  // reference.
  const ops::MeasurementPolicy& policy = options_.policy;
  // A process keeps its inputs.
  if (purpose == Request::PROVE && policy.proof_processes > 0) {
    round %= policy.proof_processes;
  }
  const auto set = static_cast<uint64_t>(round % policy.input_sets);
  if (purpose == Request::PROVE) return kFirstProofSeed + set;
  return purpose == Request::RANK && !policy.interleaves_rounds
             ? kFirstRankSeed + set
             : set;
}

SessionEvaluatorOptions SessionEvaluatorFor(
    const tuning::BoundSpace& space, const proto::SamplingOptions& sampling,
    suites::Evaluator& evaluator) {
  SessionEvaluatorOptions options;
  options.sampling = sampling;
  options.compile_ahead = evaluator.CompileAhead(space.default_config());
  if (options.compile_ahead > 0) {
    options.default_config = space.default_config();
  }
  options.policy = evaluator.policy();
  options.tells_numerics = !options.policy.host_is_free;
  if (!space.has_fact_constraints()) return options;
  options.accept_facts = [&space](const proto::Config& config,
                                  const Facts& facts) {
    std::vector<std::pair<std::string, int64_t>> told;
    for (const proto::Fact& fact : facts) {
      told.emplace_back(fact.name(), fact.value());
    }
    return space.CheckFacts(config, told);
  };
  return options;
}

SessionEvaluator::SessionEvaluator(suites::Evaluator& evaluator,
                                   SessionEvaluatorOptions options)
    : evaluator_(evaluator), options_(std::move(options)), screen_(evaluator) {}

absl::StatusOr<tuning::Offer> SessionEvaluator::Open(const proto::Task&) {
  tuning::Offer offer;
  offer.set_compile_ahead(options_.compile_ahead);
  offer.set_begins_ahead(options_.policy.host_is_free);
  *offer.mutable_costly_metrics() = {options_.costly_metrics.begin(),
                                     options_.costly_metrics.end()};
  proto::MeasuringNode& here = *offer.add_nodes();
  here.set_host(HostName());
  here.set_searches(true);
  here.set_proves(true);
  return offer;
}

absl::Status SessionEvaluator::ProveOn(const std::string& host,
                                       const std::string&) {
  if (host == HostName()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this host is ", HostName(), ", expected ", host));
}

void SessionEvaluator::Submit(tuning::Request request) {
  OpenAhead(request);
  evaluator_.Prepare(request.config());
  PrepareDefault(request);
  waiting_.push_back(std::move(request));
}

void SessionEvaluator::PrepareDefault(const tuning::Request& request) {
  if (!options_.default_config || default_prepared_) return;
  // Behind what the search begins with.
  if (request.purpose() == Request::SEARCH && answered_ == 0) return;
  default_prepared_ = true;
  evaluator_.Prepare(*options_.default_config);
}

void SessionEvaluator::OpenOfSearch() {
  ComingProcess process;
  for (int set = 0; set < options_.policy.input_sets; ++set) {
    process.input_seeds.push_back(SeedOf(Request::SEARCH, set));
  }
  evaluator_.OpenAhead(process);
}

void SessionEvaluator::OpenOfProof() {
  const ComingProcess process =
      ComingFor(Request::PROVE, proof_processes_opened_++);
  opening_.push_back(*process.process_of_round);
  evaluator_.OpenAhead(process);
}

ComingProcess SessionEvaluator::ComingFor(Purpose purpose,
                                          int64_t round) const {
  return {ProcessOf(purpose, round), {SeedOf(purpose, round)}};
}

void SessionEvaluator::OpenAhead(const tuning::Request& request) {
  if (options_.policy.processes_ahead == 0) return;
  if (request.purpose() != Request::PROVE) {
    // While its first config is compiled.
    if (answered_ == 0) OpenOfSearch();
    return;
  }
  while (proof_processes_opened_ < options_.policy.proof_processes &&
         proof_processes_opened_ <= request.round()) {
    OpenOfProof();
  }
}

void SessionEvaluator::OpenFinalists(const tuning::Request& answered,
                                     int64_t elapsed_ns) {
  if (options_.policy.processes_ahead == 0) return;
  if (answered.purpose() == Request::SEARCH) {
    if (!options_.finalists_ahead || !options_.finalists_ahead()) return;
    ++answers_since_opening_;
    ns_since_opening_ += elapsed_ns;
    if (answers_since_opening_ < kAnswersAnOpening &&
        ns_since_opening_ < kOpeningNs) {
      return;
    }
  }
  opening_.erase(std::remove_if(opening_.begin(), opening_.end(),
                                [this](int64_t process) {
                                  return evaluator_.IsOpen(process);
                                }),
                 opening_.end());
  // Beside the search one, which is waited for by nobody yet.
  const size_t most = answered.purpose() == Request::SEARCH
                          ? std::min(opening_.size() + 1, kOpeningTogether)
                          : kOpeningTogether;
  while (opening_.size() < most && OpenNext(answered)) {
    answers_since_opening_ = 0;
    ns_since_opening_ = 0;
  }
}

bool SessionEvaluator::OpenNext(const tuning::Request& answered) {
  int64_t most = options_.policy.processes_ahead;
  if (answered.purpose() == Request::PROVE) most += answered.round() + 1;
  if (proof_processes_opened_ >=
      std::min<int64_t>(most, options_.policy.proof_processes)) {
    return false;
  }
  OpenOfProof();
  return true;
}

absl::optional<int64_t> SessionEvaluator::ProcessOf(Purpose purpose,
                                                    int64_t round) const {
  const ops::MeasurementPolicy& policy = options_.policy;
  if (purpose == Request::PROVE) {
    const int64_t of = policy.proof_processes;
    return 2 * (of > 0 ? round % of : round) + 1;
  }
  if (purpose == Request::SEARCH || policy.interleaves_rounds) {
    return absl::nullopt;
  }
  return 2 * round;
}

std::deque<tuning::Request>::iterator SessionEvaluator::FirstReady() {
  return std::find_if(waiting_.begin(), waiting_.end(),
                      [this](const tuning::Request& request) {
                        return evaluator_.IsReady(request.config());
                      });
}

void SessionEvaluator::BeginNext() {
  if (!options_.policy.host_is_free) return;
  const auto next = FirstReady();
  if (next == waiting_.end()) return;
  Begun begun{*next, {}};
  Tighten(&begun.request);
  if (HasLongCalls(begun.request) || IsReadTogether(begun.request)) return;
  begun.options = OptionsFor(begun.request);
  if (!evaluator_.Begin(begun.request.config(), begun.options)) return;
  waiting_.erase(next);
  begun_ = std::move(begun);
}

std::vector<Evaluation> SessionEvaluator::Poll(absl::Duration wait) {
  if (begun_) {
    return Answered(*std::exchange(begun_, absl::nullopt));
  }
  if (waiting_.empty()) return {};
  auto next = FirstReady();
  if (next == waiting_.end()) {
    std::vector<proto::Config> configs;
    for (const tuning::Request& request : waiting_) {
      evaluator_.Prepare(request.config());
      configs.push_back(request.config());
    }
    evaluator_.AwaitReady(configs, wait);
    next = FirstReady();
    if (next == waiting_.end()) return {};
  }
  // Those that come from elsewhere come one by one.
  if (IsReadTogether(*next) && WaitingOfRound(*next) < next->of_round()) {
    return {};
  }
  Begun begun{std::move(*next), {}};
  waiting_.erase(next);
  if (IsReadTogether(begun.request)) return AnswerRound(begun.request);
  Tighten(&begun.request);
  begun.options = OptionsFor(begun.request);
  return Answered(begun);
}

bool SessionEvaluator::IsReadTogether(const tuning::Request& request) const {
  // Rounds tell more than samples of long calls, and those are few.
  return options_.policy.interleaves_rounds &&
         request.purpose() != Request::SEARCH && IsTimed(request) &&
         request.metrics().size() <= 1 && !HasLongCalls(request);
}

bool SessionEvaluator::AreReadTogether(const tuning::Request& one,
                                       const tuning::Request& other) const {
  return one.purpose() == other.purpose() && one.round() == other.round() &&
         IsReadTogether(one) && IsReadTogether(other);
}

int64_t SessionEvaluator::WaitingOfRound(const tuning::Request& one) const {
  return std::count_if(waiting_.begin(), waiting_.end(),
                       [&](const tuning::Request& other) {
                         return AreReadTogether(one, other);
                       });
}

std::vector<Evaluation> SessionEvaluator::AnswerRound(
    const tuning::Request& first) {
  std::vector<tuning::Request> round = {first};
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (AreReadTogether(first, *it)) {
      round.push_back(std::move(*it));
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
  std::vector<proto::Config> configs;
  for (const tuning::Request& request : round) {
    configs.push_back(request.config());
  }
  std::vector<Evaluation> evaluations =
      evaluator_.EvaluateTogether(configs, OptionsFor(first));
  std::vector<Evaluation> answers;
  for (size_t i = 0; i < round.size(); ++i) {
    answers.push_back(AnswerOf(round[i], std::move(evaluations[i])));
  }
  OpenFinalists(first, /*elapsed_ns=*/0);
  return answers;
}

std::vector<Evaluation> SessionEvaluator::Answered(const Begun& begun) {
  std::vector<Evaluation> answers;
  answers.push_back(Evaluate(begun));
  BeginNext();
  OpenFinalists(begun.request, answers.back().trial().elapsed_ns());
  return answers;
}

bool SessionEvaluator::IsReady() {
  if (begun_ || waiting_.empty()) return true;
  const auto next = FirstReady();
  return next != waiting_.end() &&
         evaluator_.IsOpen(OptionsFor(*next).process_of_round);
}

void SessionEvaluator::Cancel(int64_t ticket) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->ticket() != ticket) continue;
    evaluator_.Abandon(it->config());
    waiting_.erase(it);
    return;
  }
}

proto::SamplingOptions SessionEvaluator::SamplingFor(
    const tuning::Request& request) const {
  proto::SamplingOptions sampling = options_.sampling;
  if (HasLongCalls(request)) {
    sampling.set_warm_up_ns(0);
    sampling.set_max_time_ns(1);
    if (request.purpose() == Request::SEARCH) {
      sampling.set_decisive_above_ns(kClearlySlower * request.expected());
    }
  }
  const ops::MeasurementPolicy& policy = options_.policy;
  if (request.purpose() != Request::SEARCH) {
    sampling.set_min_sample_ns(
        std::max(sampling.min_sample_ns(), policy.round_sample_ns));
  } else if (policy.search_warm_up_ns) {
    if (answered_ > 0) {
      sampling.set_warm_up_ns(
          std::min(sampling.warm_up_ns(), *policy.search_warm_up_ns));
    }
    if (IsTimed(request) && request.has_expected()) {
      sampling.set_decisive_above_ns(kClearlySlower * request.expected());
    }
  }
  return sampling;
}

EvaluationOptions SessionEvaluator::OptionsFor(
    const tuning::Request& request) const {
  EvaluationOptions options;
  options.sampling = SamplingFor(request);
  const ops::MeasurementPolicy& policy = options_.policy;
  if (request.has_hopeless_above() && IsTimed(request)) {
    options.sampling.set_hopeless_above_ns(request.hopeless_above());
    if (HasLongCalls(request) && longest_reading_ns_ > 0) {
      options.hopeless_after = absl::Nanoseconds(
          kLongestReadings * static_cast<double>(longest_reading_ns_) +
          kCallsOfAReading * request.hopeless_above());
    }
  }
  proto::Metering& metering = options.metering;
  if (!request.has_meter_below_ns() || request.meter_below_ns() > 0) {
    for (std::string& metric :
         MeteredOf({request.metrics().begin(), request.metrics().end()})) {
      metering.add_metrics(std::move(metric));
    }
  }
  // Readings in turns share their temperature.
  metering.set_quickly(true);
  metering.set_min_window_ns(absl::ToInt64Nanoseconds(
      request.purpose() == Request::PROVE ? kProofWindow : kSearchWindow));
  if (std::isfinite(request.meter_below_ns())) {
    metering.set_below_ns(std::max(0.0, request.meter_below_ns()));
  }
  options.accept_facts = options_.accept_facts;
  options.input_seed = SeedOf(request.purpose(), request.round());
  if (request.purpose() == Request::SEARCH) {
    if (options_.tells_numerics) {
      options.numerics_seed = SeedOf(Request::SEARCH, 0);
    }
    return options;
  }
  options.sampling.set_max_time_ns(
      std::min(options.sampling.max_time_ns(), kRoundSamplingNs));
  // What a process is like (where its pages lie) is shared by all that is read
  // in its round, and by no other round of a proof.
  options.process_of_round = ProcessOf(request.purpose(), request.round());
  for (int next = 1; next < policy.processes_together; ++next) {
    options.next_rounds.push_back(
        ComingFor(request.purpose(), request.round() + next));
  }
  return options;
}

void SessionEvaluator::Tighten(tuning::Request* request) const {
  if (request->purpose() != Request::SEARCH || options_.race_factor <= 0 ||
      !best_ || !IsTimed(*request)) {
    return;
  }
  if (request->has_expected() && request->expected() <= best_time_ns_) return;
  request->set_expected(best_time_ns_);
  *request->mutable_best() = *best_;
  request->set_hopeless_above(best_time_ns_ * options_.race_factor);
}

Evaluation SessionEvaluator::Evaluate(const Begun& begun) {
  const auto& [request, options] = begun;
  Screened screened;
  // A session that meters wants every time, not a bound.
  if (HasLongCalls(request) && request.has_best() &&
      !request.has_meter_below_ns() &&
      options.sampling.has_hopeless_above_ns()) {
    screened = screen_.Compare(request.config(), request.best(),
                               request.expected(), options);
    if (screened.hopeless) {
      Evaluation answer;
      answer.set_ticket(request.ticket());
      answer.set_unpaid_ns(screened.unpaid_ns);
      proto::Trial& trial = *answer.mutable_trial();
      *trial.mutable_config() = request.config();
      trial.set_outcome(proto::CENSORED);
      trial.set_fidelity(1);
      trial.set_detail("clearly slower than the best on a smaller problem");
      trial.set_time_ns(screened.ratio * request.expected());
      trial.set_elapsed_ns(screened.elapsed_ns);
      trial.mutable_effort()->set_open_ns(screened.unpaid_ns);
      ++answered_;
      return answer;
    }
  }
  Evaluation evaluation = evaluator_.Evaluate(request.config(), options);
  proto::Trial& trial = *evaluation.mutable_trial();
  if (request.purpose() == Request::SEARCH && trial.outcome() == proto::OK) {
    longest_reading_ns_ = std::max(longest_reading_ns_, trial.elapsed_ns());
    if (trial.has_time_ns() && (!best_ || trial.time_ns() < best_time_ns_)) {
      best_ = request.config();
      best_time_ns_ = trial.time_ns();
    }
  }
  evaluation.set_unpaid_ns(evaluation.unpaid_ns() + screened.unpaid_ns);
  trial.set_elapsed_ns(trial.elapsed_ns() + screened.elapsed_ns);
  return AnswerOf(request, std::move(evaluation));
}

Evaluation SessionEvaluator::AnswerOf(const tuning::Request& request,
                                      Evaluation answer) {
  ++answered_;
  answer.set_ticket(request.ticket());
  proto::Trial& trial = *answer.mutable_trial();
  *trial.mutable_config() = request.config();
  proto::Effort& effort = *trial.mutable_effort();
  effort.set_open_ns(answer.unpaid_ns() - effort.turn_ns());
  const auto add = [&](const char* metric, const char* unit, double value) {
    if (!absl::c_linear_search(request.metrics(), metric)) return;
    proto::MetricSamples* read = trial.add_objectives();
    read->set_metric(metric);
    read->set_unit(unit);
    read->set_direction(proto::LOWER_IS_BETTER);
    read->add_values(value);
  };
  if (answer.has_memory_bytes()) {
    add(kMemoryMetric, "B", static_cast<double>(answer.memory_bytes()));
  }
  if (trial.has_error_in_tolerances()) {
    add(kErrorMetric, "tolerances", trial.error_in_tolerances());
  }
  return answer;
}

}  // namespace optrail::suites
