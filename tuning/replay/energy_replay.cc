#include "tuning/replay/energy_replay.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/parallel_for.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/meter_window.h"
#include "tuning/replay/recorded_domain.h"
#include "tuning/replay/recorded_proposer.h"
#include "tuning/search/strategies.h"
#include "tuning/session/evaluator.h"
#include "tuning/session/objective.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

constexpr double kNsPerMs = 1e6;

// A recorded config with its knobs, of which the session's models learn.
proto::Config ConfigOf(const Recording& recording, int64_t index) {
  const Levels& levels = recording.configs[index].levels;
  proto::Config config;
  for (size_t k = 0; k < recording.knobs.size(); ++k) {
    const KnobLevels& knob = recording.knobs[k];
    proto::KnobValue* value = config.add_set();
    value->set_knob(knob.name);
    if (knob.ordinal) {
      value->set_int_(knob.ints[levels[k]]);
    } else {
      value->set_variant(knob.labels[levels[k]]);
    }
  }
  return config;
}

class RecordedConfigs {
 public:
  explicit RecordedConfigs(const Recording& recording) : recording_(recording) {
    for (size_t i = 0; i < recording.configs.size(); ++i) {
      index_[CanonicalText(At(static_cast<int64_t>(i)))] =
          static_cast<int64_t>(i);
    }
  }
  proto::Config At(int64_t index) const { return ConfigOf(recording_, index); }
  int64_t IndexOf(const proto::Config& config) const {
    return index_.at(CanonicalText(config));
  }
  const RecordedConfig& operator[](const proto::Config& config) const {
    return recording_.configs[IndexOf(config)];
  }

 private:
  const Recording& recording_;
  absl::flat_hash_map<std::string, int64_t> index_;
};

class EnergyEvaluator : public OneAtATime {
 public:
  EnergyEvaluator(const RecordedConfigs& configs, bool meter_all)
      : configs_(configs), meter_all_(meter_all) {}
  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    if (!meter_all_) offer.add_costly_metrics(kJoules);
    return offer;
  }
  int metered() const { return static_cast<int>(metered_.size()); }
  double fastest_ms() const { return fastest_ms_; }

 protected:
  Evaluation Evaluate(const Request& request) override {
    const RecordedConfig& config = configs_[request.config()];
    Evaluation answer;
    answer.mutable_trial()->set_outcome(config.outcome);
    if (config.outcome != proto::OK) return answer;
    const double time_ns = config.time_ms * kNsPerMs;
    fastest_ms_ = std::min(fastest_ms_, config.time_ms);
    answer.mutable_trial()->set_time_ns(time_ns);
    for (const auto& [name, value] : config.facts) {
      proto::Fact* fact = answer.mutable_trial()->add_facts();
      fact->set_name(name);
      fact->set_value(value);
    }
    if (request.has_hopeless_above() && !meter_all_ &&
        time_ns > request.hopeless_above()) {
      answer.mutable_trial()->set_outcome(proto::CENSORED);
      return answer;
    }
    answer.mutable_trial()->add_measurements()->set_median_ns(time_ns);
    if (request.has_meter_below_ns() && time_ns >= request.meter_below_ns()) {
      return answer;
    }
    metered_.insert(CanonicalText(request.config()));
    proto::MetricSamples* joules = answer.mutable_trial()->add_objectives();
    joules->set_metric(kJoules);
    joules->set_unit("J");
    joules->set_direction(proto::LOWER_IS_BETTER);
    joules->add_values(config.joules);
    return answer;
  }

 private:
  const RecordedConfigs& configs_;
  const bool meter_all_;
  std::set<std::string> metered_;
  double fastest_ms_ = std::numeric_limits<double>::infinity();
};

std::vector<proto::Objective> ObjectivesFor(const EnergyReplay& run) {
  proto::Objective joules = TimeObjective();
  joules.set_metric(kJoules);
  joules.set_unit("J");
  std::vector<proto::Objective> objectives = {joules};
  if (run.time_limit > 0) {
    objectives.push_back(TimeObjective());
    objectives.back().set_limit_over_best(run.time_limit);
  }
  return objectives;
}

// Returns the least joules of the configs that are results.
absl::StatusOr<double> OptimumOf(const Recording& recording,
                                 double time_limit) {
  double fastest_ms = std::numeric_limits<double>::infinity();
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome == proto::OK) {
      fastest_ms = std::min(fastest_ms, config.time_ms);
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome != proto::OK) continue;
    if (config.joules <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(recording.name, ": configs without joules"));
    }
    if (time_limit <= 0 || config.time_ms <= time_limit * fastest_ms) {
      least = std::min(least, config.joules);
    }
  }
  return least;
}

}  // namespace

absl::StatusOr<EnergyReplayResult> RunEnergyReplay(const Recording& recording,
                                                   const EnergyReplay& run) {
  OPTRAIL_ASSIGN_OR_RETURN(const double optimum,
                           OptimumOf(recording, run.time_limit));
  const RecordedDomain domain(recording);
  const RecordedConfigs configs(recording);
  const std::vector<proto::Objective> objectives = ObjectivesFor(run);
  StrategyOptions options;
  options.seed = run.seed;
  options.budget = run.trials;
  options.objectives = static_cast<int>(objectives.size());
  EnergyEvaluator evaluator(configs, run.meter_all);
  SessionSetup setup;
  for (const proto::Objective& objective : objectives) {
    *setup.header.add_objectives() = objective;
  }
  setup.header.mutable_budget()->set_trials(run.trials);
  // Any config stands for the default; it is not metered before the proof.
  Rng rng(run.seed);
  do {
    setup.default_config = configs.At(static_cast<int64_t>(
        rng.UniformInt(static_cast<int64_t>(recording.configs.size()))));
  } while (configs[setup.default_config].outcome != proto::OK);
  setup.rank_rounds = 2;
  setup.propose = [&](const proto::Session&,
                      int) -> absl::StatusOr<std::unique_ptr<Proposer>> {
    OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Strategy> strategy,
                             MakeStrategy(run.strategy, domain, options));
    return std::make_unique<RecordedProposer>(
        objectives, std::move(strategy),
        [&](const Levels& levels) {
          return configs.At(*domain.IndexOf(levels));
        },
        [&](const proto::Config& config) {
          return domain.At(configs.IndexOf(config));
        });
  };
  FakeClock clock;
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                           RunSession(setup, evaluator, clock));
  if (!session.has_winner()) {
    return absl::NotFoundError(absl::StrCat(recording.name, ": no winner"));
  }
  const RecordedConfig& winner = configs[session.winner()];
  EnergyReplayResult result;
  result.loss = winner.joules / optimum - 1;
  result.trials = session.trials_size();
  result.metered = evaluator.metered();
  result.time_over_best = winner.time_ms / evaluator.fastest_ms();
  return result;
}

absl::StatusOr<std::string> RunEnergyReplays(const EnergyReplays& replays,
                                             OutputFormat format) {
  constexpr double kNearlyBest = .02;
  Table table({{"space"},
               {"configs", Align::kRight},
               {"strategy"},
               {"metered"},
               {"trials", Align::kRight},
               {"most metered", Align::kRight, "most_metered"},
               {"mean loss", Align::kRight, "mean_loss"},
               {"worst loss", Align::kRight, "worst_loss"},
               {"within 2%", Align::kRight, "within_2_percent"}});
  for (const Recording& recording : replays.recordings) {
    for (const std::string& strategy : replays.strategies) {
      for (const bool meter_all : {false, true}) {
        std::vector<absl::StatusOr<EnergyReplayResult>> results(
            replays.seeds, absl::UnknownError("not run"));
        ParallelFor(replays.seeds, replays.jobs, [&](int64_t i) {
          EnergyReplay run = replays.run;
          run.strategy = strategy;
          run.meter_all = meter_all;
          run.seed += static_cast<uint64_t>(i);
          results[i] = RunEnergyReplay(recording, run);
        });
        int most = 0, trials = 0, near = 0;
        double sum = 0, worst = 0;
        for (const auto& result : results) {
          if (!result.ok()) return result.status();
          most = std::max(most, result->metered);
          trials = std::max(trials, result->trials);
          near += result->loss <= kNearlyBest ? 1 : 0;
          sum += result->loss;
          worst = std::max(worst, result->loss);
        }
        table.AddRow(
            {recording.name,
             Cell::Integer(static_cast<int64_t>(recording.configs.size())),
             strategy, meter_all ? "every trial" : "few", Cell::Integer(trials),
             Cell::Integer(most),
             Cell::Number(sum / replays.seeds,
                          FormatPercent(sum / replays.seeds)),
             Cell::Number(worst, FormatPercent(worst)),
             Cell::Number(static_cast<double>(near) / replays.seeds,
                          absl::StrCat(near, " of ", replays.seeds))});
      }
    }
  }
  return table.Format(format, TerminalWidth());
}

}  // namespace optrail::tuning
