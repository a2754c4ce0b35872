// How much is lost by what tuning picks: tunes each shape several times from
// nothing, then measures a fixed list of configs, the picks and the default
// among them, in interleaved rounds: all of them twice, those within
// --contenders of the best of these, the picks and the default in --rounds
// more, with samples as long as those of a proof.
//
//   bazel run //suites:regret -- --device=cuda --op=matmul --launch=graph
//       --cache=cold --shape=m=1024,n=1024,k=1024/bf16 --tunings=10
//
// The best of the list is chosen on the even of these rounds, and all ratios
// are of the odd ones, which have a process and inputs of their own: a config
// that was lucky once does not make everybody else look bad. A pick's regret is
// its time over the best's there; the winner flips in a tuning whose pick is
// not the most frequent one, and `spread` is the slowest pick over the fastest.
// Prints JSON, one object a shape.

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "ops/core/device_type.h"
#include "suites/evaluation/evaluation.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/worker/worker_evaluator.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/session/results.h"

ABSL_FLAG(std::string, device, "cpu", "kind of device");
ABSL_FLAG(std::string, op, "", "operators, a regular expression");
ABSL_FLAG(std::string, shape, "", "shapes, a regular expression");
ABSL_FLAG(std::string, cache, "hot", "hot or cold");
ABSL_FLAG(std::string, launch, "", "stream or graph");
ABSL_FLAG(int, tunings, 10, "of each shape, from nothing");
ABSL_FLAG(int, trials, 72, "of each tuning");
ABSL_FLAG(int, configs, 300, "in the list beside the picks");
ABSL_FLAG(int, rounds, 8, "over the contenders, a process each");
ABSL_FLAG(double, contenders, 1.25,
          "how many times the best's time still is a contender's");
ABSL_FLAG(std::string, record, "",
          "folder for the readings of each shape, as recordings that `optrail "
          "replay` reads; with more --configs than the space has, of all");
ABSL_FLAG(std::string, state, "/tmp/optrail-regret", "folder for all of it");

namespace optrail::suites {
namespace {

struct Shape {
  TaskEntry task;
  std::vector<std::string> picks;  // of each tuning; "" for none
  double tune_s = 0;               // wall time of one, on average
  proto::SessionTime time;         // of all; wait_ns without overlaps
  int64_t overlap_ns = 0;          // of all
};

// "compile_s": ..., of one tuning on average.
std::string CostText(const Shape& shape) {
  const auto seconds = [&](int64_t ns) {
    return static_cast<double>(ns) * 1e-9 /
           static_cast<double>(shape.picks.size());
  };
  const proto::SessionTime& time = shape.time;
  return absl::StrCat(
      "\"tune_s\": ", shape.tune_s,
      ", \"compile_s\": ", seconds(time.compile_ns()),
      ", \"measure_s\": ", seconds(time.measure_ns()),
      ", \"wait_s\": ", seconds(time.wait_ns()),
      ", \"overlap_s\": ", seconds(shape.overlap_ns),
      ", \"verify_s\": ", seconds(time.rank_ns() + time.prove_ns()),
      ", \"open_s\": ", seconds(time.effort().open_ns()));
}

absl::StatusOr<Shape> Tune(const TaskEntry& task, RunContext context) {
  Shape shape;
  shape.task = task;
  TuneDriverOptions options;
  options.tune.strategy = tuning::kDefaultStrategy;
  options.tune.sampling = DefaultSamplingOptions();
  options.tune.budget.set_trials(absl::GetFlag(FLAGS_trials));
  options.worker.shared_folder = context.state;
  options.worker.used = std::make_shared<UsedWorkers>();
  options.retune = true;
  options.forget_trials = true;
  options.quiet = true;
  const int64_t start_ns = Clock::Real()->NowNs();
  for (int i = 0; i < absl::GetFlag(FLAGS_tunings); ++i) {
    options.tune.seed = 1000 + i;
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                             TuneTasks({task}, context, options));
    const auto& session = summaries[0].session;
    if (session.has_value()) {
      proto::SessionTime& time = shape.time;
      const proto::SessionTime& one = session->time();
      time.set_compile_ns(time.compile_ns() + one.compile_ns());
      time.set_measure_ns(time.measure_ns() + one.measure_ns());
      time.set_wait_ns(time.wait_ns() + tuning::WaitedNs(one));
      shape.overlap_ns += tuning::OverlapNs(one);
      time.set_rank_ns(time.rank_ns() + one.rank_ns());
      time.set_prove_ns(time.prove_ns() + one.prove_ns());
      time.mutable_effort()->set_open_ns(time.effort().open_ns() +
                                         one.effort().open_ns());
    }
    shape.picks.push_back(session.has_value() && session->has_winner()
                              ? tuning::CanonicalText(session->winner())
                              : "");
  }
  shape.tune_s = static_cast<double>(Clock::Real()->NowNs() - start_ns) * 1e-9 /
                 absl::GetFlag(FLAGS_tunings);
  return shape;
}

absl::StatusOr<std::set<std::string>> ConfigsOf(const Shape& shape,
                                                const proto::Hardware& hardware,
                                                std::string* default_config) {
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(shape.task, hardware));
  *default_config = tuning::CanonicalText(space.bound->default_config());
  std::set<std::string> configs = {*default_config};
  Rng rng(1);
  const auto wanted = static_cast<size_t>(absl::GetFlag(FLAGS_configs));
  for (int draws = 0; configs.size() < wanted && draws < 20 * wanted; ++draws) {
    const proto::Config config =
        space.bound->ToConfig(space.bound->Sample(rng));
    configs.insert(tuning::CanonicalText(config));
  }
  for (const std::string& pick : shape.picks) {
    if (!pick.empty()) configs.insert(pick);
  }
  return configs;
}

struct Times {
  std::vector<double> all;                 // of the list, twice
  std::vector<double> chosen_on, told_by;  // of contenders
};

constexpr int kScreeningRounds = 2;  // in one process
constexpr int64_t kContenderSampleNs = 1'000'000;

EvaluationOptions OptionsFor(int process) {
  EvaluationOptions options;
  options.sampling = DefaultSamplingOptions();
  options.sampling.set_max_time_ns(20'000'000);
  options.sampling.set_warm_up_ns(500'000);
  if (process > 0) options.sampling.set_min_sample_ns(kContenderSampleNs);
  options.process_of_round = process;
  options.input_seed = process;
  return options;
}

// One round over `order`, in a shuffled order: contenders, which are compared
// with each other, together.
absl::Status MeasureRound(std::vector<std::string> order, int process, Rng& rng,
                          WorkerEvaluator& evaluator,
                          std::map<std::string, Times>* times,
                          std::vector<double> Times::*readings) {
  rng.Shuffle(order);
  const EvaluationOptions options = OptionsFor(process);
  std::vector<proto::Config> configs;
  for (const std::string& text : order) {
    OPTRAIL_ASSIGN_OR_RETURN(configs.emplace_back(), tuning::ParseConfig(text));
  }
  std::vector<Evaluation> evaluations;
  if (process > 0 && evaluator.policy().interleaves_rounds) {
    evaluations = evaluator.EvaluateTogether(configs, options);
  } else {
    for (const proto::Config& config : configs) {
      evaluations.push_back(evaluator.Evaluate(config, options));
    }
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const Evaluation& one = evaluations[i];
    if (one.trial().outcome() != proto::OK || !one.trial().has_time_ns())
      continue;
    ((*times)[order[i]].*readings).push_back(one.trial().time_ns());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Times>> Measure(
    const Shape& shape, const std::set<std::string>& configs,
    const std::string& default_config, const RunContext& context) {
  WorkerOptions worker;
  worker.shared_folder = context.state;
  worker.hardware = context.hardware;
  worker.configs_per_worker = 1 << 20;
  WorkerEvaluator evaluator(shape.task.task, worker);
  for (const std::string& text : configs) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                             tuning::ParseConfig(text));
    evaluator.Prepare(config);
  }
  if (evaluator.policy().processes_ahead > 0) {
    for (int process = 0; process <= absl::GetFlag(FLAGS_rounds); ++process) {
      ComingProcess coming;
      coming.process_of_round = process;
      coming.input_seeds = {static_cast<uint64_t>(process)};
      evaluator.OpenAhead(coming);
    }
  }
  std::map<std::string, Times> times;
  Rng rng(2);
  for (int round = 0; round < kScreeningRounds; ++round) {
    OPTRAIL_RETURN_IF_ERROR(MeasureRound({configs.begin(), configs.end()},
                                         /*process=*/0, rng, evaluator, &times,
                                         &Times::all));
  }
  double best_ns = std::numeric_limits<double>::infinity();
  for (const auto& [text, one] : times) {
    best_ns = std::min(best_ns, Median(one.all));
  }
  std::set<std::string> contenders = {default_config};
  for (const std::string& pick : shape.picks) {
    if (!pick.empty()) contenders.insert(pick);
  }
  for (const auto& [text, one] : times) {
    if (Median(one.all) <= absl::GetFlag(FLAGS_contenders) * best_ns) {
      contenders.insert(text);
    }
  }
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    OPTRAIL_RETURN_IF_ERROR(
        MeasureRound({contenders.begin(), contenders.end()},
                     /*process=*/1 + round, rng, evaluator, &times,
                     round % 2 == 0 ? &Times::chosen_on : &Times::told_by));
  }
  return times;
}

nlohmann::json ValueOf(const proto::KnobValue& value) {
  if (value.has_bool_()) return value.bool_() ? 1 : 0;
  if (value.has_variant()) return value.variant();
  return value.int_();
}

// In the format of Kernel Tuner's cache files. What was never read failed.
absl::Status Record(const Shape& shape, const std::set<std::string>& configs,
                    const std::map<std::string, Times>& times,
                    const RunContext& context) {
  nlohmann::json cache, values;
  std::vector<std::string> keys;
  for (const std::string& text : configs) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                             tuning::ParseConfig(text));
    nlohmann::json entry;
    std::vector<std::string> words;
    for (const proto::KnobValue& value : config.set()) {
      const nlohmann::json one = ValueOf(value);
      entry[value.knob()] = one;
      if (cache.empty()) keys.push_back(value.knob());
      words.push_back(one.is_string() ? one.get<std::string>() : one.dump());
      nlohmann::json& seen = values[value.knob()];
      if (std::find(seen.begin(), seen.end(), one) == seen.end()) {
        seen.push_back(one);
      }
    }
    std::vector<double> all_ms;
    if (const auto found = times.find(text); found != times.end()) {
      for (const double ns : found->second.all) all_ms.push_back(ns * 1e-6);
    }
    if (all_ms.empty()) {
      entry["time"] = "RuntimeFailedConfig";
    } else {
      entry["time"] = Mean(all_ms);
      entry["times"] = all_ms;
    }
    cache[absl::StrJoin(words, ",")] = entry;
  }
  for (auto& [knob, seen] : values.items()) std::sort(seen.begin(), seen.end());
  const nlohmann::json file = {
      {"device_name", context.hardware.model()},
      {"kernel_name", ShortTaskText(shape.task.task)},
      {"problem_size", tuning::CanonicalText(shape.task.task.shape())},
      {"tune_params_keys", keys},
      {"tune_params", values},
      {"cache", cache}};
  // For example: m1024_n1024_k1024_bf16.
  const std::string name = absl::StrCat(
      shape.task.task.operator_name(), "_",
      absl::StrReplaceAll(tuning::CanonicalText(shape.task.task.shape()),
                          {{"=", ""}, {",", "_"}, {"/", "_"}}),
      ".json");
  return WriteFileAtomically(JoinPath(absl::GetFlag(FLAGS_record), name),
                             file.dump());
}

absl::Status Report(const Shape& shape,
                    const std::map<std::string, Times>& times) {
  std::string best;
  double best_ns = 0;
  for (const auto& [config, one] : times) {
    if (one.chosen_on.empty() || one.told_by.empty()) continue;
    const double ns = Median(one.chosen_on);
    if (best.empty() || ns < best_ns) {
      best = config;
      best_ns = ns;
    }
  }
  if (best.empty()) return absl::UnavailableError("nothing could be measured");
  const double told_ns = Median(times.at(best).told_by);
  std::vector<double> regrets;
  std::map<std::string, int> winners;
  int contenders = 0, most_frequent = 0;
  for (const auto& [config, one] : times) contenders += !one.told_by.empty();
  for (const std::string& pick : shape.picks) {
    const auto found = times.find(pick);
    if (found == times.end() || found->second.told_by.empty()) continue;
    regrets.push_back(Median(found->second.told_by) / told_ns);
    most_frequent = std::max(most_frequent, ++winners[pick]);
  }
  std::cout << "{\"task\": \"" << ShortTaskText(shape.task.task)
            << "\", \"configs\": " << times.size()
            << ", \"contenders\": " << contenders << ", \"best\": \"" << best
            << "\", \"best_ns\": " << told_ns << ", " << CostText(shape)
            << ", \"different_picks\": " << winners.size() << ", \"flips\": "
            << static_cast<int>(regrets.size()) - most_frequent
            << ", \"regrets\": [";
  for (size_t i = 0; i < regrets.size(); ++i) {
    std::cout << (i > 0 ? ", " : "") << regrets[i];
  }
  double sum = 0;
  for (const double regret : regrets) sum += regret;
  std::cout << "]";
  if (!regrets.empty()) {
    const auto [least, most] =
        std::minmax_element(regrets.begin(), regrets.end());
    std::cout << ", \"mean\": " << sum / static_cast<double>(regrets.size())
              << ", \"worst\": " << *most << ", \"spread\": " << *most / *least;
  }
  std::cout << "}" << std::endl;
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run() {
  TaskSelection selection;
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::DeviceType* type,
      ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device)));
  selection.device = type->kind();
  selection.op_regex = absl::GetFlag(FLAGS_op);
  selection.shape_regex = absl::GetFlag(FLAGS_shape);
  OPTRAIL_ASSIGN_OR_RETURN(selection.cache_mode,
                           tuning::ParseCacheMode(absl::GetFlag(FLAGS_cache)));
  if (const std::string launch = absl::GetFlag(FLAGS_launch); !launch.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(selection.launch_mode,
                             tuning::ParseLaunchMode(launch));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const RunContext context,
      ContextIn(absl::GetFlag(FLAGS_state), selection.device));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                           SelectTasks(selection, context.hardware));
  for (const TaskEntry& task : tasks) {
    OPTRAIL_ASSIGN_OR_RETURN(const Shape shape, Tune(task, context));
    std::string default_config;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::set<std::string> configs,
        ConfigsOf(shape, context.hardware, &default_config));
    OPTRAIL_ASSIGN_OR_RETURN(const auto times,
                             Measure(shape, configs, default_config, context));
    if (!absl::GetFlag(FLAGS_record).empty()) {
      OPTRAIL_RETURN_IF_ERROR(Record(shape, configs, times, context));
    }
    OPTRAIL_RETURN_IF_ERROR(Report(shape, times));
  }
  return ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}
