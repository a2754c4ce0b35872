#include "tuning/replay/energy_replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/process/parallel_for.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/text/units.h"
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
// Readings vary by another stream than the strategy's choices.
constexpr uint64_t kNoiseStream = 0x6a6f756c6573;
constexpr uint64_t kRecordedStream = 0x7265616461676e;
// Windows of the proof are five times as long.
constexpr double kNoiseOfProof = .5;

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
  const RecordedConfig& operator[](int64_t index) const {
    return recording_.configs[index];
  }

 private:
  const Recording& recording_;
  absl::flat_hash_map<std::string, int64_t> index_;
};

class EnergyEvaluator : public OneAtATime {
 public:
  EnergyEvaluator(const RecordedConfigs& configs, const EnergyReplay& run)
      : configs_(configs),
        meter_all_(run.meter_all),
        noise_(run.noise),
        rng_(run.seed ^ kNoiseStream) {}
  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    if (!meter_all_) offer.add_costly_metrics(kJoules);
    return offer;
  }
  const std::set<int64_t>& tried() const { return tried_; }
  const std::set<int64_t>& metered() const { return metered_; }
  double fastest_ms() const { return fastest_ms_; }

 protected:
  Evaluation Evaluate(const Request& request) override {
    const int64_t index = configs_.IndexOf(request.config());
    const RecordedConfig& config = configs_[index];
    if (request.purpose() == Request::SEARCH) tried_.insert(index);
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
    metered_.insert(index);
    proto::MetricSamples* joules = answer.mutable_trial()->add_objectives();
    joules->set_metric(kJoules);
    joules->set_unit("J");
    joules->set_direction(proto::LOWER_IS_BETTER);
    joules->add_values(config.joules * NoiseOf(request.purpose()));
    return answer;
  }

 private:
  double NoiseOf(Purpose purpose) {
    if (noise_ <= 0) return 1;
    const double deviation =
        purpose == Request::PROVE ? kNoiseOfProof * noise_ : noise_;
    return std::exp(deviation * rng_.Gaussian());
  }

  const RecordedConfigs& configs_;
  const bool meter_all_;
  const double noise_;
  Rng rng_;
  std::set<int64_t> tried_, metered_;
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

bool IsResult(const RecordedConfig& config, double slowest_ms) {
  return config.outcome == proto::OK && config.time_ms <= slowest_ms;
}

// The best configs among all that were recorded.
struct Optimum {
  const RecordedConfig* fastest = nullptr;
  double slowest_ms = std::numeric_limits<double>::infinity();  // of a result
  const RecordedConfig* least = nullptr;  // the result with the least joules
};

absl::StatusOr<Optimum> OptimumOf(const Recording& recording,
                                  double time_limit) {
  Optimum optimum;
  for (const RecordedConfig& config : recording.configs) {
    if (config.outcome != proto::OK) continue;
    if (config.joules <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(recording.name, ": configs without joules"));
    }
    if (optimum.fastest == nullptr ||
        config.time_ms < optimum.fastest->time_ms) {
      optimum.fastest = &config;
    }
  }
  if (optimum.fastest == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(recording.name, ": no config that worked"));
  }
  if (time_limit > 0) {
    optimum.slowest_ms = time_limit * optimum.fastest->time_ms;
  }
  for (const RecordedConfig& config : recording.configs) {
    if (IsResult(config, optimum.slowest_ms) &&
        (optimum.least == nullptr || config.joules < optimum.least->joules)) {
      optimum.least = &config;
    }
  }
  return optimum;
}

// The recording with joules that were read once more.
Recording ReadAgain(const Recording& truth, const EnergyReplay& run) {
  Recording again = truth;
  Rng rng(run.seed ^ kRecordedStream);
  for (RecordedConfig& config : again.configs) {
    config.joules *= std::exp(run.recorded_noise * rng.Gaussian());
  }
  return again;
}

}  // namespace

absl::StatusOr<EnergyReplayResult> RunEnergyReplay(const Recording& truth,
                                                   const EnergyReplay& run) {
  const Recording recording =
      run.recorded_noise > 0 ? ReadAgain(truth, run) : truth;
  OPTRAIL_ASSIGN_OR_RETURN(const Optimum optimum,
                           OptimumOf(recording, run.time_limit));
  const RecordedDomain domain(recording);
  const RecordedConfigs configs(recording);
  const std::vector<proto::Objective> objectives = ObjectivesFor(run);
  StrategyOptions options;
  options.seed = run.seed;
  options.budget = run.trials;
  options.objectives = static_cast<int>(objectives.size());
  EnergyEvaluator evaluator(configs, run);
  SessionSetup setup;
  for (const proto::Objective& objective : objectives) {
    *setup.header.add_objectives() = objective;
  }
  setup.header.mutable_budget()->set_trials(run.trials);
  // Any config stands for the default; it is not metered before the proof.
  Rng rng(run.seed);
  int64_t default_index;
  do {
    default_index =
        rng.UniformInt(static_cast<int64_t>(recording.configs.size()));
  } while (configs[default_index].outcome != proto::OK);
  setup.default_config = configs.At(default_index);
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
  const int64_t winner_index = configs.IndexOf(session.winner());
  const RecordedConfig& winner = configs[winner_index];
  const auto has_nearly_best = [&](const std::set<int64_t>& indices) {
    return std::any_of(indices.begin(), indices.end(), [&](int64_t i) {
      return IsResult(configs[i], optimum.slowest_ms) &&
             configs[i].joules <= optimum.least->joules * (1 + kNearlyBest);
    });
  };
  EnergyReplayResult result;
  result.loss = winner.joules / optimum.least->joules - 1;
  OPTRAIL_ASSIGN_OR_RETURN(const Optimum true_optimum,
                           OptimumOf(truth, run.time_limit));
  result.true_loss =
      truth.configs[winner_index].joules / true_optimum.least->joules - 1;
  result.trials = session.trials_size();
  result.metered = static_cast<int>(evaluator.metered().size());
  result.time_over_best = winner.time_ms / evaluator.fastest_ms();
  result.tried_nearly_best = has_nearly_best(evaluator.tried());
  result.metered_nearly_best = has_nearly_best(evaluator.metered());
  return result;
}

namespace {

// What many runs of one recording come to.
struct Outcomes {
  int runs = 0, most_metered = 0, trials = 0;
  int near = 0, truly_near = 0;
  int not_tried = 0, not_read = 0, not_chosen = 0;
  double loss = 0, true_loss = 0, worst = 0;  // sums of losses, and the worst

  void Add(const EnergyReplayResult& result) {
    ++runs;
    most_metered = std::max(most_metered, result.metered);
    trials = std::max(trials, result.trials);
    loss += result.loss;
    true_loss += result.true_loss;
    worst = std::max(worst, result.loss);
    truly_near += result.true_loss <= kNearlyBest;
    if (result.loss <= kNearlyBest) {
      ++near;
    } else if (!result.tried_nearly_best) {
      ++not_tried;
    } else if (!result.metered_nearly_best) {
      ++not_read;
    } else {
      ++not_chosen;
    }
  }
};

absl::StatusOr<Outcomes> RunSeeds(const Recording& recording,
                                  const EnergyReplays& replays,
                                  const EnergyReplay& first) {
  std::vector<absl::StatusOr<EnergyReplayResult>> results(
      replays.seeds, absl::UnknownError("not run"));
  ParallelFor(replays.seeds, replays.jobs, [&](int64_t i) {
    EnergyReplay run = first;
    run.seed += static_cast<uint64_t>(i);
    results[i] = RunEnergyReplay(recording, run);
  });
  Outcomes outcomes;
  for (const auto& result : results) {
    if (!result.ok()) return result.status();
    outcomes.Add(*result);
  }
  return outcomes;
}

Table TableOfReplays(bool with_true_loss) {
  std::vector<Column> columns = {
      {"space"},
      {"configs", Align::kRight},
      {"strategy"},
      {"metered"},
      {"trials", Align::kRight},
      {"most metered", Align::kRight, "most_metered"},
      {"mean loss", Align::kRight, "mean_loss"},
      {"worst loss", Align::kRight, "worst_loss"},
      {"within 2%", Align::kRight, "within_2_percent"},
      {"not tried", Align::kRight, "not_tried"},
      {"not read", Align::kRight, "not_read"},
      {"not chosen", Align::kRight, "not_chosen"}};
  if (with_true_loss) {
    columns.push_back({"mean true loss", Align::kRight, "mean_true_loss"});
    columns.push_back(
        {"truly within 2%", Align::kRight, "truly_within_2_percent"});
  }
  return Table(std::move(columns));
}

}  // namespace

absl::StatusOr<std::string> RunEnergyReplays(const EnergyReplays& replays,
                                             OutputFormat format) {
  const bool with_true_loss = replays.run.recorded_noise > 0;
  Table table = TableOfReplays(with_true_loss);
  for (const Recording& recording : replays.recordings) {
    for (const std::string& strategy : replays.strategies) {
      for (const bool meter_all : {false, true}) {
        EnergyReplay run = replays.run;
        run.strategy = strategy;
        run.meter_all = meter_all;
        OPTRAIL_ASSIGN_OR_RETURN(const Outcomes all,
                                 RunSeeds(recording, replays, run));
        const auto mean = [&](double sum) {
          return Cell::Number(sum / all.runs, FormatPercent(sum / all.runs));
        };
        const auto share = [&](int count) {
          return Cell::Number(static_cast<double>(count) / all.runs,
                              absl::StrCat(count, " of ", all.runs));
        };
        std::vector<Cell> row = {
            recording.name,
            Cell::Integer(static_cast<int64_t>(recording.configs.size())),
            strategy,
            meter_all ? "every trial" : "few",
            Cell::Integer(all.trials),
            Cell::Integer(all.most_metered),
            mean(all.loss),
            Cell::Number(all.worst, FormatPercent(all.worst)),
            share(all.near),
            Cell::Integer(all.not_tried),
            Cell::Integer(all.not_read),
            Cell::Integer(all.not_chosen)};
        if (with_true_loss) {
          row.push_back(mean(all.true_loss));
          row.push_back(share(all.truly_near));
        }
        table.AddRow(std::move(row));
      }
    }
  }
  return table.Format(format, TerminalWidth());
}

absl::StatusOr<std::string> DescribeEnergyOptima(
    const std::vector<Recording>& recordings, double time_limit,
    OutputFormat format) {
  if (time_limit < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "time limit ", time_limit, ", expected at least 1 (of the fastest)"));
  }
  Table table({{"space"},
               {"configs", Align::kRight},
               {"fastest", Align::kRight, "fastest_ns"},
               {"joules of it", Align::kRight, "fastest_joules"},
               {"within limit", Align::kRight, "within_limit"},
               {"least joules", Align::kRight, "least_joules"},
               {"at time", Align::kRight, "least_time_over_fastest"},
               {"saved", Align::kRight, "saved"},
               {"of all configs", Align::kRight, "least_of_all_joules"},
               {"at time", Align::kRight, "least_of_all_time_over_fastest"},
               {"saved", Align::kRight, "saved_of_all"}});
  const auto joules = [](double value) {
    return Cell::Number(value, absl::StrFormat("%.4g J", value));
  };
  const auto ratio = [](double value) {
    return Cell::Number(value, absl::StrFormat("%.3f", value));
  };
  const auto percent = [](double value) {
    return Cell::Number(value, FormatPercent(value));
  };
  double log_within = 0, log_of_all = 0;
  for (const Recording& recording : recordings) {
    OPTRAIL_ASSIGN_OR_RETURN(const Optimum within,
                             OptimumOf(recording, time_limit));
    OPTRAIL_ASSIGN_OR_RETURN(const Optimum of_all, OptimumOf(recording, 0));
    const RecordedConfig& fastest = *within.fastest;
    const auto count = std::count_if(
        recording.configs.begin(), recording.configs.end(),
        [&](const auto& one) { return IsResult(one, within.slowest_ms); });
    const double saved = 1 - within.least->joules / fastest.joules;
    const double saved_of_all = 1 - of_all.least->joules / fastest.joules;
    log_within += std::log1p(-saved);
    log_of_all += std::log1p(-saved_of_all);
    table.AddRow({recording.name,
                  Cell::Integer(static_cast<int64_t>(recording.configs.size())),
                  Cell::Number(fastest.time_ms * kNsPerMs,
                               FormatDurationNs(fastest.time_ms * kNsPerMs)),
                  joules(fastest.joules), Cell::Integer(count),
                  joules(within.least->joules),
                  ratio(within.least->time_ms / fastest.time_ms),
                  percent(saved), joules(of_all.least->joules),
                  ratio(of_all.least->time_ms / fastest.time_ms),
                  percent(saved_of_all)});
  }
  const auto mean = [&](double log_sum) {
    return percent(
        -std::expm1(log_sum / static_cast<double>(recordings.size())));
  };
  table.AddRow({"geometric mean", Cell::None(), Cell::None(), Cell::None(),
                Cell::None(), Cell::None(), Cell::None(), mean(log_within),
                Cell::None(), Cell::None(), mean(log_of_all)});
  return table.Format(format, TerminalWidth());
}

}  // namespace optrail::tuning
