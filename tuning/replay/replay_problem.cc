#include "tuning/replay/replay_problem.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "tuning/replay/recorded_proposer.h"
#include "tuning/replay/score.h"
#include "tuning/search/strategies.h"
#include "tuning/session/evaluator.h"
#include "tuning/session/ranking.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

// Repeats are drawn by another stream than the strategy's choices.
constexpr uint64_t kNoiseStream = 0x6e6f697365;

// Noise mode keeps a tenth of the budget to verify finalists, as a tuning
// session does: the lowest of many single readings is a lucky one.
constexpr int kVerifyShare = 10;
constexpr int kMaxFinalists = 16;
constexpr int kLeastReadings = 2;  // per finalist, on average

double ThreadCpuMs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

// The compile time is 0 where it was not recorded.
Point2 ToPoint(const RecordedConfig& config) {
  return {config.time_ms, std::max(config.compile_ms, 1e-3)};
}

// The medians of both objectives: what is worse than half of the space in
// either is no part of an interesting front.
Point2 ReferencePoint(const Recording& recording) {
  std::vector<double> x, y;
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome != proto::OK) continue;
    x.push_back(ToPoint(config).x);
    y.push_back(ToPoint(config).y);
  }
  const size_t middle = x.size() / 2;
  std::nth_element(x.begin(), x.begin() + middle, x.end());
  std::nth_element(y.begin(), y.begin() + middle, y.end());
  return {x[middle], y[middle]};
}

// A recorded config is named by its index: the session sees no levels.
constexpr char kIndex[] = "index";
constexpr char kCompileMetric[] = "compile_ms";
constexpr char kTimeMsMetric[] = "time_ms";

proto::Config ConfigOf(int64_t index) {
  proto::Config config;
  config.add_set()->set_knob(kIndex);
  config.mutable_set(0)->set_int_(index);
  return config;
}

int64_t IndexOf(const proto::Config& config) { return config.set(0).int_(); }

std::vector<proto::Objective> ObjectivesFor(const ReplayRun& run) {
  std::vector<proto::Objective> objectives(run.compile_time_objective ? 2 : 1);
  objectives[0].set_metric(kTimeMsMetric);
  objectives[0].set_direction(proto::LOWER_IS_BETTER);
  if (objectives.size() > 1) {
    objectives[1].set_metric(kCompileMetric);
    objectives[1].set_direction(proto::LOWER_IS_BETTER);
  }
  return objectives;
}

// Answers from a recording, as many at a time as a run asks for.
class RecordedEvaluator : public OneAtATime {
 public:
  RecordedEvaluator(int slots, std::function<Trial(int64_t)> measure)
      : slots_(slots), measure_(std::move(measure)) {}
  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    offer.set_measure_slots(slots_);
    return offer;
  }

 protected:
  Evaluation Evaluate(const Request& request) override {
    const Trial measured = measure_(IndexOf(request.config()));
    Evaluation answer;
    answer.mutable_trial()->set_outcome(measured.outcome);
    for (size_t i = 0; i < measured.objectives.size(); ++i) {
      proto::MetricSamples* value = answer.mutable_trial()->add_objectives();
      value->set_metric(i == 0 ? kTimeMsMetric : kCompileMetric);
      value->add_values(measured.objectives[i]);
    }
    return answer;
  }

 private:
  const int slots_;
  const std::function<Trial(int64_t)> measure_;
};

}  // namespace

Trial TrialOf(const RecordedConfig& config) {
  Trial trial;
  trial.levels = config.levels;
  trial.outcome = config.outcome;
  if (config.outcome == proto::OK) {
    trial.objectives = {config.time_ms, ToPoint(config).y};
  }
  return trial;
}

absl::StatusOr<Recording> AfterSearch(const Recording& recording, int trials,
                                      uint64_t seed) {
  const RecordedDomain domain(recording);
  StrategyOptions options;
  options.seed = seed;
  options.budget = trials;
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Strategy> strategy,
                           MakeStrategy("default", domain, options));
  Recording known = recording;
  known.configs.clear();
  while (static_cast<int>(known.configs.size()) < trials) {
    const std::vector<Levels> next = strategy->Ask(1);
    if (next.empty()) break;
    const RecordedConfig& config =
        recording.configs[*domain.IndexOf(next.front())];
    strategy->Tell({TrialOf(config)});
    known.configs.push_back(config);
  }
  return known;
}

ReplayProblem::ReplayProblem(Recording recording)
    : recording_(std::move(recording)),
      domain_(recording_),
      optimum_ms_(OptimumMs(recording_)) {}

void ReplayProblem::SetPriorFrom(const Recording& other) {
  prior_.assign(recording_.configs.size(),
                -std::numeric_limits<double>::infinity());
  const absl::StatusOr<TransferSource> source = MakeSource(other);
  if (!source.ok()) return;
  for (const Trial& trial : source->trials) {
    const absl::optional<int64_t> index = domain_.IndexOf(trial.levels);
    if (index && trial.outcome == proto::OK) {
      prior_[*index] = -trial.objectives[0];
    }
  }
  domain_.SetPrior(prior_);
}

double ReplayProblem::BestFractionOfTopK(int top_k) const {
  std::vector<int64_t> order(recording_.configs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
    return prior_[a] > prior_[b];
  });
  double fraction = 0;
  for (int i = 0; i < top_k && i < static_cast<int>(order.size()); ++i) {
    const RecordedConfig& config = recording_.configs[order[i]];
    if (config.outcome == proto::OK) {
      fraction = std::max(fraction, optimum_ms_ / config.time_ms);
    }
  }
  return fraction;
}

Trial ReplayProblem::Measure(int64_t index, bool noise, Rng& rng) const {
  const RecordedConfig& config = recording_.configs[index];
  Trial trial = TrialOf(config);
  if (noise && !trial.objectives.empty() && !config.repeats_ms.empty()) {
    trial.objectives[0] =
        config.repeats_ms[rng.UniformInt(config.repeats_ms.size())];
  }
  return trial;
}

double ReplayProblem::VerifiedTimeMs(const Strategy& strategy, int readings,
                                     Rng& rng) const {
  std::vector<const RecordedConfig*> finalists;
  size_t repeats = 1;
  for (const Levels& levels : strategy.Finalists(
           std::clamp(readings / kLeastReadings, 1, kMaxFinalists))) {
    finalists.push_back(&recording_.configs[*domain_.IndexOf(levels)]);
    repeats = std::max(repeats, finalists.back()->repeats_ms.size());
  }
  if (finalists.empty()) return std::numeric_limits<double>::infinity();

  // Ranked as a session ranks them. Interleaved: what disturbs a round (a cold
  // device, say) disturbs all that is read in it, so a round answers with the
  // same repeat of every finalist. The reading that made it a finalist is
  // biased and does not count.
  std::vector<size_t> order(repeats);
  std::iota(order.begin(), order.end(), 0);
  rng.Shuffle(order);
  SequentialHalving ranking(static_cast<int>(finalists.size()), readings);
  while (!ranking.done()) {
    const size_t repeat = order[ranking.rounds() % repeats];
    std::map<int, double> costs;
    for (const int i : ranking.NextRound()) {
      const std::vector<double>& repeats_ms = finalists[i]->repeats_ms;
      costs[i] = repeats_ms.empty() ? finalists[i]->time_ms
                                    : repeats_ms[repeat % repeats_ms.size()];
    }
    ranking.AddRound(costs);
  }
  return finalists[ranking.Order().front()]->time_ms;
}

namespace {

StrategyOptions OptionsOf(const ReplayRun& run) {
  StrategyOptions options;
  options.seed = run.seed;
  options.batch = run.batch;
  options.budget = run.budgets.empty() ? 0 : run.budgets.back();
  options.objectives = run.compile_time_objective ? 2 : 1;
  options.top_k = run.top_k;
  options.sources = run.sources;
  return options;
}

// The session of a run; `domain` must outlive it.
SessionSetup SetupFor(const ReplayRun& run, const RecordedDomain& domain,
                      const std::shared_ptr<Strategy>& strategy) {
  SessionSetup setup;
  for (proto::Objective& objective : ObjectivesFor(run)) {
    *setup.header.add_objectives() = std::move(objective);
  }
  setup.header.mutable_budget()->set_trials(OptionsOf(run).budget);
  setup.propose = [&domain, strategy, objectives = ObjectivesFor(run)](
                      const proto::Session&,
                      int) -> absl::StatusOr<std::unique_ptr<Proposer>> {
    return std::make_unique<RecordedProposer>(
        objectives, strategy,
        [&domain](const Levels& levels) {
          // A config that is not recorded is none; the evaluator says so.
          return ConfigOf(domain.IndexOf(levels).value_or(-1));
        },
        [&domain](const proto::Config& config) {
          return domain.At(IndexOf(config));
        });
  };
  setup.race_factor = 0;
  return setup;
}

double FullVolume(const ReplayRun& run, const Recording& recording,
                  const Point2& reference) {
  if (!run.compile_time_objective) return 0;
  std::vector<Point2> all;
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome == proto::OK) all.push_back(ToPoint(config));
  }
  return LogHypervolume(all, reference);
}

}  // namespace

absl::StatusOr<ReplayResult> ReplayProblem::Run(const ReplayRun& run) const {
  const StrategyOptions options = OptionsOf(run);
  ReplayResult result;
  Rng noise_rng(run.seed ^ kNoiseStream);
  const Point2 reference =
      run.compile_time_objective ? ReferencePoint(recording_) : Point2{};
  const double full_volume = FullVolume(run, recording_, reference);
  double best_ms = std::numeric_limits<double>::infinity();
  std::vector<Point2> found;
  double cpu_ms = -ThreadCpuMs();
  OPTRAIL_ASSIGN_OR_RETURN(const std::shared_ptr<Strategy> strategy,
                           MakeStrategy(run.strategy, domain_, options));
  result.ev5 = options.budget;
  int done = 0;
  bool invalid = false;
  RecordedEvaluator evaluator(run.batch, [&](int64_t index) {
    if (index < 0) {
      invalid = true;
      return Trial();
    }
    ++done;
    const RecordedConfig& config = recording_.configs[index];
    if (config.outcome == proto::OK) {
      best_ms = std::min(best_ms, config.time_ms);
      found.push_back(ToPoint(config));
      if (WithinFivePercent(config.time_ms, optimum_ms_)) {
        result.ev5 = std::min(result.ev5, done);
      }
    }
    return Measure(index, run.noise, noise_rng);
  });
  FakeClock clock;
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Open(SetupFor(run, domain_, strategy), evaluator, clock));
  double declared_ms = best_ms;
  for (const int budget : run.budgets) {
    const int verify = run.noise ? budget / kVerifyShare : 0;
    while (session->trials() < budget - verify && !session->search_ended()) {
      OPTRAIL_RETURN_IF_ERROR(session->Advance());
      if (invalid) {
        return absl::InternalError(
            absl::StrCat(run.strategy, " proposed an invalid config"));
      }
    }
    if (session->trials() < budget - verify) {
      result.stop_reason = strategy->StopReason();
    }
    declared_ms =
        run.noise ? VerifiedTimeMs(*strategy, verify, noise_rng) : best_ms;
    result.fractions.push_back(run.compile_time_objective
                                   ? LogHypervolume(found, reference) /
                                         std::max(full_volume, 1e-12)
                                   : optimum_ms_ / declared_ms);
  }
  // Nothing succeeded, nothing lost.
  result.winner_loss = std::isfinite(best_ms) ? declared_ms / best_ms - 1 : 0;
  result.cpu_ms = cpu_ms + ThreadCpuMs();
  return result;
}

absl::StatusOr<TransferSource> ReplayProblem::MakeSource(
    const Recording& other) const {
  const size_t knobs = recording_.knobs.size();
  // For each of our knobs: which of theirs, and our level of each of theirs.
  std::vector<size_t> theirs(knobs);
  std::vector<std::vector<int>> level(knobs);
  for (size_t k = 0; k < knobs; ++k) {
    const KnobLevels& mine = recording_.knobs[k];
    const auto match = std::find_if(
        other.knobs.begin(), other.knobs.end(),
        [&mine](const KnobLevels& knob) { return knob.name == mine.name; });
    if (match == other.knobs.end() || other.knobs.size() != knobs) {
      return absl::NotFoundError(
          absl::StrCat(other.name, " has other knobs than ", recording_.name));
    }
    theirs[k] = match - other.knobs.begin();
    for (const std::string& label : match->labels) {
      const auto it = std::find(mine.labels.begin(), mine.labels.end(), label);
      level[k].push_back(it == mine.labels.end() ? -1
                                                 : it - mine.labels.begin());
    }
  }
  TransferSource source;
  source.name = other.name;
  for (const RecordedConfig& config : other.configs) {
    Levels levels;
    bool known = true;
    for (size_t k = 0; k < knobs && known; ++k) {
      const int mine = level[k][config.levels[theirs[k]]];
      known = mine >= 0;
      levels.push_back(static_cast<uint16_t>(mine));
    }
    if (!known) continue;
    Trial trial = TrialOf(config);
    trial.levels = std::move(levels);
    source.trials.push_back(std::move(trial));
  }
  return source;
}

}  // namespace optrail::tuning
