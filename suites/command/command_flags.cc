#include "suites/command/command_flags.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/socket.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/quote.h"
#include "ops/core/device_type.h"
#include "suites/bench/google_benchmark_face.h"
#include "suites/command/command_line.h"
#include "suites/command/tune_program.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/objectives.h"
#include "suites/tune/session_evaluator.h"
#include "suites/workload/workload.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/session/objective.h"

ABSL_FLAG(std::string, history, "",
          "Folder of runs and sessions; by default .optrail/history in the "
          "workspace.");
ABSL_FLAG(std::string, store, "",
          "Folder of tuned configs found here, which win over checked-in ones; "
          "by default .optrail/store in the workspace.");
ABSL_FLAG(optrail::OutputFormat, format, optrail::OutputFormat::kTable,
          "What to print: table, json, csv or markdown.");
ABSL_FLAG(bool, quiet, false, "Show no progress.");

ABSL_FLAG(std::string, op, "",
          "Operators whose whole name this regular expression matches.");
ABSL_FLAG(std::string, shape, "",
          "Shapes whose text, such as m=384,n=1024,k=1024/f32, this regular "
          "expression matches somewhere; or one, written in full, that no file "
          "lists.");
ABSL_FLAG(std::string, workload, "",
          "Shapes of a workload (its name, or the path of a "
          ".workload.textproto) instead of the operators' shapes files.");
ABSL_FLAG(std::vector<std::string>, threads, {},
          "Numbers of threads, such as 1,2; 0 stands for all cores. By default "
          "what the workload says, else 1.");
ABSL_FLAG(std::string, device, "cpu",
          "Kind of device: cpu, cuda, or any other that is linked in.");
ABSL_FLAG(std::string, backend, "",
          "Which implementations of an operator, between commas: names such as "
          "openblas; all of them, but Halide's autoschedulers (halide_...) and "
          "naive only by name; or best, which an earlier `bench "
          "--backend=all` found. OPERATOR:NAME is for one operator of several. "
          "By default the device's own.");
ABSL_FLAG(std::string, objective, "time",
          "What to tune for, or which tuned configs to benchmark: time, what a "
          "meter of the device reads (joules), memory, error, edp, "
          "joules_per_flop, joules_per_byte or cost. Several with limits, such "
          "as joules,time<=1.05x, or with --weights have a winner; else tuning "
          "finds their front.");
ABSL_FLAG(std::vector<std::string>, weights, {},
          "One number per objective or metric: minimise the weighted product "
          "instead of searching for the Pareto front.");
ABSL_FLAG(double, price_per_kwh, 0,
          "Price of a kWh in any currency, for --objective=cost.");
ABSL_FLAG(double, price_per_hour, 0,
          "Price of an hour of the machine, for --objective=cost.");
ABSL_FLAG(int32_t, meter_windows, 1,
          "With --objective=joules: windows in which each process is metered; "
          "their median counts.");
ABSL_FLAG(absl::Duration, meter_window, absl::ZeroDuration(),
          "With --objective=joules: how long a window is at least, such as "
          "60s; by default as long as the device's sensor needs.");
ABSL_FLAG(
    std::string, inputs, "typical",
    "What is timed and metered: typical values, or zeros, which take less "
    "energy and are not recorded.");
ABSL_FLAG(std::string, preset, "",
          "What to tune and how, for a kind of model: recommender, vision, "
          "language, or the path of a .preset.textproto of your own. A flag "
          "that is given wins over it.");
ABSL_FLAG(bool, dry_run, false, "Print what would be done, change nothing.");
ABSL_FLAG(std::string, worker, "",
          "Where to measure instead of in processes of this command's own: the "
          "address that an `optrail worker` serves, unix:PATH or HOST:PORT; "
          "several, parted by commas, search together.");
ABSL_FLAG(std::string, cache, "hot",
          "hot: operands are as warm as the call before left them; cold: "
          "caches are flushed before each call.");

ABSL_FLAG(std::string, launch, "",
          "stream or graph: how calls are launched on a device that has a "
          "choice; by default as the device usually does.");

ABSL_FLAG(std::string, strategy, "default",
          "How to choose configs to try (docs/method/search.md); an unknown "
          "name lists "
          "them.");
ABSL_FLAG(uint64_t, seed, 1,
          "Seed of all random choices: the same seed makes the same choices.");
ABSL_FLAG(int64_t, trials, 0, "Most configs to try per task; 0: no limit.");
ABSL_FLAG(absl::Duration, time_budget, absl::ZeroDuration(),
          "About how long each task takes on a clock, such as 30s: at most "
          "half for the search, the rest to rank finalists and prove the "
          "winner. Two configs and a proof of ten measurements are the least. "
          "With --proof_time it is the search alone, without opening "
          "processes. 0: the workload's seconds of search, else 20s of search "
          "unless --trials is given, and the proof on top.");
ABSL_FLAG(int64_t, total_trials, 0,
          "Configs to try over all tasks together; 0: no such limit. Each next "
          "trial goes to the task from which a run of the workload gains most "
          "(calls times time), and tasks that stall are left. --trials and "
          "--time_budget then bound each task, by default not at all.");
ABSL_FLAG(absl::Duration, total_time, absl::ZeroDuration(),
          "Search time over all tasks together, such as 10m, divided like "
          "--total_trials; 0: no such limit. Verifying the finalists comes on "
          "top.");
ABSL_FLAG(int64_t, patience, 0,
          "Stop after this many trials without improvement; 0: never.");
ABSL_FLAG(int32_t, finalists, 4,
          "How many of the best are measured again before one wins; up to four "
          "times as many where their readings vary.");
ABSL_FLAG(absl::Duration, proof_time, absl::ZeroDuration(),
          "Longest proof of a task's winner against its default, such as 30s; "
          "it ends sooner once the gain is known within 1%. 0: a third of "
          "--time_budget; without one as long as the search took, at least 3s "
          "and at most 1m.");
ABSL_FLAG(bool, retune, false, "Tune what the store has, too.");
ABSL_FLAG(std::string, numerics, "any",
          "any, class-of-default: only configs whose results have the "
          "default's bits on fixed inputs may win, or batch-invariant: only "
          "those of whose results a row has the same bits however many rows "
          "are computed.");
ABSL_FLAG(bool, forget, false,
          "Do not start from the trials of earlier sessions, of this task or "
          "of nearby ones.");
ABSL_FLAG(absl::Duration, config_deadline, absl::Seconds(10),
          "A config that has not answered by then is killed.");
ABSL_FLAG(int64_t, max_config_mib, 1024,
          "Memory in MiB that a config may use beside its operands.");

ABSL_FLAG(int32_t, processes, 0,
          "Fresh processes per benchmark or finalist; 0 takes the workload's, "
          "else 5.");
ABSL_FLAG(
    std::vector<std::string>, select,
    std::vector<std::string>({"default", "tuned"}),
    "Which configs to benchmark: default, tuned, or both as default,tuned.");
ABSL_FLAG(std::string, config, "",
          "A config, knob=value,..., to run in place of the tuned one.");
ABSL_FLAG(std::string, config_name, "",
          "Run --config beside the others, as a series of this name.");
ABSL_FLAG(bool, record, false, "Add the run to the history.");
ABSL_FLAG(bool, resume, false,
          "Go on from what the same command had measured when it was "
          "interrupted or killed; with nothing of it kept, begin.");
ABSL_FLAG(std::string, suite, "",
          "Name of the run in the history; by default the workload, the "
          "operator, or of imported results what made them.");
ABSL_FLAG(std::string, pairing, "",
          "Id of the runs that are measured in turn with this one; they are "
          "judged as pairs of a --round.");
ABSL_FLAG(int, round, 0, "Which turn of --pairing this is, from 1.");
ABSL_FLAG(std::string, listen, "", "Where to serve: unix:PATH, or HOST:PORT.");
ABSL_FLAG(bool, allow_network, false,
          "Also serve other machines, which are not asked who they are.");
ABSL_FLAG(bool, with_test_operators, false,
          "Also offer operators that exist for tests.");

namespace optrail::suites {
namespace {

constexpr absl::Duration kDefaultSearch = absl::Seconds(20);
constexpr int kDefaultProcesses = 5;

absl::Status CheckRange(absl::string_view flag, int64_t value, int64_t low,
                        int64_t high) {
  return tracker::CheckFlag(value >= low && value <= high, flag, value,
                            absl::StrCat(low, " to ", high));
}

absl::StatusOr<WorkerOptions> WorkerFromFlags() {
  WorkerOptions worker;
  worker.config_deadline = absl::GetFlag(FLAGS_config_deadline);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      worker.config_deadline >= absl::Milliseconds(100), "config_deadline",
      absl::FormatDuration(worker.config_deadline), "at least 100ms"));
  OPTRAIL_RETURN_IF_ERROR(CheckRange("max_config_mib",
                                     absl::GetFlag(FLAGS_max_config_mib), 1,
                                     int64_t{1} << 24));
  worker.max_config_bytes = absl::GetFlag(FLAGS_max_config_mib) << 20;
  return worker;
}

// --proof_time, where it is given.
absl::StatusOr<absl::optional<absl::Duration>> ProofTimeFromFlags() {
  const absl::Duration time = absl::GetFlag(FLAGS_proof_time);
  if (time == absl::ZeroDuration()) return absl::optional<absl::Duration>();
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(time > absl::ZeroDuration(), "proof_time",
                         absl::FormatDuration(time), "a duration such as 30s"));
  return absl::make_optional(time);
}

absl::Status SetTotalFromFlags(TuneDriverOptions& options) {
  options.total_trials = absl::GetFlag(FLAGS_total_trials);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("total_trials", options.total_trials, 0, 100'000'000));
  const absl::Duration time = absl::GetFlag(FLAGS_total_time);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      time >= absl::ZeroDuration() && time != absl::InfiniteDuration(),
      "total_time", absl::FormatDuration(time), "a duration such as 10m"));
  options.total_time_ns = absl::ToInt64Nanoseconds(time);
  return absl::OkStatus();
}

absl::StatusOr<proto::DeviceKind> DeviceFromFlags() {
  const auto type = ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device));
  if (type.ok()) return (*type)->kind();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --device: ", type.status().message()));
}

// The reason why the device has no energy meter; "" if it has one.
std::string NoMeterText(proto::DeviceKind kind) {
  const auto type = ops::FindDeviceType(kind);
  if (!type.ok()) return "";
  for (const ops::DeviceType::Support& support : (*type)->DescribeSupport()) {
    if (absl::StartsWith(support.what, "energy meter") &&
        absl::StartsWith(support.here, "unsupported here")) {
      return support.here;
    }
  }
  return "";
}

// A price is one of --objective=cost.
absl::Status CheckPricesCount(absl::string_view objectives) {
  for (const absl::string_view one : absl::StrSplit(objectives, ',')) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(one), "cost")) {
      return absl::OkStatus();
    }
  }
  for (const auto& [flag, price] :
       {std::make_pair("price_per_kwh", absl::GetFlag(FLAGS_price_per_kwh)),
        std::make_pair("price_per_hour",
                       absl::GetFlag(FLAGS_price_per_hour))}) {
    // A preset's price may belong to an objective that the call replaces.
    if (price == 0 || FlagOrigin(flag) != "command line") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("flag --", flag, "=", price,
                     ": it has no effect without --objective=cost; next: "
                     "leave it out, or --objective=time,cost"));
  }
  return absl::OkStatus();
}

// --objective, by the meters of --device, which is opened for them; empty for
// time alone.
absl::StatusOr<std::vector<proto::Objective>> ObjectivesFromFlags(
    bool may_open_device) {
  const std::string text = absl::GetFlag(FLAGS_objective);
  OPTRAIL_RETURN_IF_ERROR(CheckPricesCount(text));
  if (text == tuning::kTimeMetric) {
    if (const auto given = absl::GetFlag(FLAGS_weights); !given.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --weights=", absl::StrJoin(given, ","),
          ": one objective has no weights; next: --objective=time,joules"));
    }
    return std::vector<proto::Objective>();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const proto::DeviceKind kind, DeviceFromFlags());
  std::unique_ptr<ops::Device> device;
  ObjectiveSource source;
  source.device = absl::GetFlag(FLAGS_device);
  source.meters_unknown = !may_open_device;
  if (may_open_device) {
    OPTRAIL_ASSIGN_OR_RETURN(device, ops::MakeDevice(kind, {}));
    source.meters = device->meters();
    source.no_joules = NoMeterText(kind);
  }
  for (const auto& [flag, value, price] :
       {std::make_tuple("price_per_kwh", absl::GetFlag(FLAGS_price_per_kwh),
                        &source.price_per_kwh),
        std::make_tuple("price_per_hour", absl::GetFlag(FLAGS_price_per_hour),
                        &source.price_per_hour)}) {
    OPTRAIL_RETURN_IF_ERROR(
        tracker::CheckFlag(value >= 0 && std::isfinite(value), flag, value,
                           "a price of at least 0"));
    *price = value;
  }
  std::vector<double> weights;
  for (const std::string& weight : absl::GetFlag(FLAGS_weights)) {
    double value = 0;
    if (!absl::SimpleAtod(weight, &value) || !(value > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --weights: \"", weight, "\", expected a positive number"));
    }
    weights.push_back(value);
  }
  auto objectives = ParseObjectives(text, weights, source);
  if (objectives.ok()) return objectives;
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --objective=", text, ": ", objectives.status().message()));
}

// --meter_windows, --meter_window and --inputs.
absl::Status SetMeteringFromFlags(BenchOptions& options) {
  options.meter_windows = absl::GetFlag(FLAGS_meter_windows);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("meter_windows", options.meter_windows, 1, 1000));
  options.meter_window = absl::GetFlag(FLAGS_meter_window);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      options.meter_window >= absl::ZeroDuration() &&
          options.meter_window <= absl::Hours(1),
      "meter_window", absl::FormatDuration(options.meter_window),
      "a duration of at most an hour, such as 60s"));
  const std::string inputs = absl::GetFlag(FLAGS_inputs);
  options.zero_inputs = inputs == "zeros";
  return tracker::CheckFlag(inputs == "zeros" || inputs == "typical", "inputs",
                            inputs, "typical or zeros");
}

// The command that tunes what this one selects.
std::string TuneCommandLine(const std::string& op,
                            const proto::Workload& workload) {
  // The binary of one operator has a neighbour that tunes it.
  std::string text = op.empty() ? "optrail tune" : TuneProgramBeside(OwnPath());
  if (absl::GetFlag(FLAGS_workload).empty() && !workload.name().empty()) {
    absl::StrAppend(&text, " --workload=", workload.name());  // of a suite
  }
  for (const std::string& name : SelectionFlags()) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    if (flag->CurrentValue() == flag->DefaultValue()) continue;
    // A test operator's own binaries mean that operator without a flag.
    if (!op.empty() && name == "with_test_operators") continue;
    std::string value = flag->CurrentValue();
    // To know the best, all have to be tuned.
    if (name == "backend" && value == kBestBackend) value = kAllBackends;
    absl::StrAppend(&text, " --", name, "=", QuoteForShell(value));
  }
  return text;
}

}  // namespace

std::vector<std::string> SelectionFlags() {
  return {"op",
          "shape",
          "workload",
          "threads",
          "device",
          "backend",
          "cache",
          "launch",
          "objective",
          "weights",
          "price_per_kwh",
          "price_per_hour",
          "with_test_operators"};
}

std::vector<std::string> TuneFlags() {
  return {"strategy",       "seed",
          "trials",         "time_budget",
          "total_trials",   "total_time",
          "patience",       "finalists",
          "proof_time",     "retune",
          "forget",         "processes",
          "numerics",       "config_deadline",
          "max_config_mib", "worker"};
}

std::vector<std::string> BenchFlags() {
  return {"select", "config",          "config_name",    "record",
          "suite",  "pairing",         "round",          "processes",
          "seed",   "config_deadline", "max_config_mib", "resume",
          "inputs", "meter_window",    "meter_windows"};
}

std::vector<std::string> PlaceFlags() { return {"history", "store"}; }

absl::StatusOr<RunContext> RunContextFromFlags() {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::DeviceKind device, DeviceFromFlags());
  return FindRunContext(device, absl::GetFlag(FLAGS_history),
                        absl::GetFlag(FLAGS_store));
}

absl::StatusOr<TaskSelection> SelectionFromFlags(const std::string& op,
                                                 const std::string& workload) {
  TaskSelection selection;
  selection.workload = workload;
  selection.op_regex = op.empty() ? absl::GetFlag(FLAGS_op) : op;
  selection.shape_regex = absl::GetFlag(FLAGS_shape);
  OPTRAIL_ASSIGN_OR_RETURN(selection.device, DeviceFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(selection.cache_mode,
                           tuning::ParseCacheMode(absl::GetFlag(FLAGS_cache)));
  if (const std::string launch = absl::GetFlag(FLAGS_launch); !launch.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(selection.launch_mode,
                             tuning::ParseLaunchMode(launch));
  }
  for (const std::string& text : absl::GetFlag(FLAGS_threads)) {
    int count;
    if (!absl::SimpleAtoi(text, &count) || count < 0 || count > 1024) {
      return absl::InvalidArgumentError(absl::StrCat(
          "flag --threads: \"", text, "\", expected numbers from 0 to 1024"));
    }
    selection.threads.push_back(count);
  }
  selection.backend = absl::GetFlag(FLAGS_backend);
  selection.with_test_only = absl::GetFlag(FLAGS_with_test_operators);
  return selection;
}

namespace {

// --strategy; sessions say which the default was, since it may change between
// commits.
absl::StatusOr<std::string> StrategyFromFlags() {
  const std::string strategy = absl::GetFlag(FLAGS_strategy);
  if (strategy == "default") return tuning::kDefaultStrategy;
  const std::vector<std::string> strategies = tuning::StrategyNames();
  if (std::find(strategies.begin(), strategies.end(), strategy) !=
          strategies.end() ||
      absl::StartsWith(strategy, "evolution")) {
    return strategy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("flag --strategy=", strategy, ": expected default or ",
                   absl::StrJoin(strategies, ", "),
                   "; of schedules evolution:MODEL or random",
                   DidYouMean(strategy, strategies)));
}

// --numerics.
absl::Status SetNumericsFromFlags(TuneOptions& options) {
  const std::string numerics = absl::GetFlag(FLAGS_numerics);
  options.class_of_default = numerics == "class-of-default";
  options.batch_invariant = numerics == "batch-invariant";
  return tracker::CheckFlag(
      numerics == "any" || options.class_of_default || options.batch_invariant,
      "numerics", numerics, "any, class-of-default or batch-invariant");
}

absl::StatusOr<std::vector<std::string>> WorkersFromFlags() {
  absl::StatusOr<std::vector<std::string>> workers =
      ParseWorkerAddresses(absl::GetFlag(FLAGS_worker));
  if (workers.ok()) return workers;
  return absl::InvalidArgumentError(
      absl::StrCat("flag --worker: ", workers.status().message()));
}

// Refuses what a total (--total_trials, --total_time) does not go with.
absl::Status CheckTotal(const TuneDriverOptions& options) {
  if (absl::GetFlag(FLAGS_objective) != tuning::kTimeMetric) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --objective=", absl::GetFlag(FLAGS_objective),
        ": a total (--total_trials, --total_time) is divided by the time "
        "that a run of the workload takes; expected time, or --trials"));
  }
  if (!options.elsewhere.empty()) {
    return absl::InvalidArgumentError(
        "flag --worker: one session at a time is served, and a total "
        "(--total_trials, --total_time) has them all open; expected --trials "
        "or --time_budget");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TuneDriverOptions> TuneFromFlags(const proto::Workload& workload,
                                                bool may_open_device) {
  TuneDriverOptions options;
  OPTRAIL_ASSIGN_OR_RETURN(options.worker, WorkerFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.strategy, StrategyFromFlags());
  options.tune.seed = absl::GetFlag(FLAGS_seed);
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("trials", absl::GetFlag(FLAGS_trials), 0, 100'000'000));
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("patience", absl::GetFlag(FLAGS_patience), 0, 100'000'000));
  OPTRAIL_RETURN_IF_ERROR(
      CheckRange("finalists", absl::GetFlag(FLAGS_finalists), 1, 100));
  OPTRAIL_RETURN_IF_ERROR(CheckRange(
      "processes", absl::GetFlag(FLAGS_processes), 0, kMostProcesses));
  proto::Budget& budget = options.tune.budget;
  if (const int64_t trials = absl::GetFlag(FLAGS_trials); trials > 0) {
    budget.set_trials(trials);
  }
  if (const int64_t patience = absl::GetFlag(FLAGS_patience); patience > 0) {
    budget.set_patience_trials(patience);
  }
  OPTRAIL_RETURN_IF_ERROR(SetTotalFromFlags(options));
  options.most_gain_first = !workload.name().empty();
  const bool has_total = options.total_trials > 0 || options.total_time_ns > 0;
  const absl::Duration whole = absl::GetFlag(FLAGS_time_budget);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      whole >= absl::ZeroDuration(), "time_budget", absl::FormatDuration(whole),
      "a duration such as 30s"));
  absl::Duration search = absl::ZeroDuration();
  if (whole == absl::ZeroDuration() && !has_total) {
    search = absl::Seconds(workload.tune_seconds());
    if (search == absl::ZeroDuration() && !budget.has_trials()) {
      search = kDefaultSearch;
    }
  }
  if (search > absl::ZeroDuration()) {
    budget.set_time_ns(absl::ToInt64Nanoseconds(search));
  }
  OPTRAIL_ASSIGN_OR_RETURN(options.elsewhere, WorkersFromFlags());
  if (has_total) OPTRAIL_RETURN_IF_ERROR(CheckTotal(options));
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.objectives,
                           ObjectivesFromFlags(may_open_device));
  options.tune.finalists = absl::GetFlag(FLAGS_finalists);
  OPTRAIL_ASSIGN_OR_RETURN(options.tune.proof.max_time, ProofTimeFromFlags());
  DivideTimeBudget(whole, &budget, &options.tune.proof);
  const int processes = absl::GetFlag(FLAGS_processes);
  options.tune.rank_rounds = processes > 0 ? processes : kDefaultProcesses;
  options.tune.sampling = DefaultSamplingOptions();
  options.retune = absl::GetFlag(FLAGS_retune);
  OPTRAIL_RETURN_IF_ERROR(SetNumericsFromFlags(options.tune));
  options.forget_trials = absl::GetFlag(FLAGS_forget);
  options.quiet = absl::GetFlag(FLAGS_quiet);
  return options;
}

namespace {

// --select, --config and --config_name.
absl::Status SetConfigsFromFlags(BenchDriverOptions& options) {
  options.with_default = false;
  options.with_tuned = false;
  for (const std::string& selection : absl::GetFlag(FLAGS_select)) {
    if (selection == "default") {
      options.with_default = true;
    } else if (selection == "tuned") {
      options.with_tuned = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --select: \"", selection, "\", ",
                       ExpectedOneOf(selection, {"default", "tuned"})));
    }
  }
  const std::string config = absl::GetFlag(FLAGS_config);
  options.given_name = absl::GetFlag(FLAGS_config_name);
  if (!config.empty()) {
    absl::StatusOr<proto::Config> parsed = tuning::ParseConfig(config);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --config: ", parsed.status().message()));
    }
    options.given_config = *std::move(parsed);
  } else if (!options.given_name.empty()) {
    return absl::InvalidArgumentError(
        "flag --config_name names what --config gives, which is missing");
  }
  return absl::OkStatus();
}

// --pairing and --round.
absl::Status SetPairingFromFlags(BenchDriverOptions& options) {
  options.pairing_id = absl::GetFlag(FLAGS_pairing);
  options.round = absl::GetFlag(FLAGS_round);
  const bool plain = std::all_of(
      options.pairing_id.begin(), options.pairing_id.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (!plain || options.pairing_id.size() > 80) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --pairing: \"", absl::CHexEscape(options.pairing_id),
        "\", expected at most 80 letters, digits, '-', '_' and '.'"));
  }
  if (options.round < 0 || (options.round > 0) == options.pairing_id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --round: ", options.round,
                     ", expected 1 or more with --pairing, else 0"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BenchDriverOptions> BenchFromFlags(
    const proto::Workload& workload, const std::string& op) {
  BenchDriverOptions options;
  options.workload = workload;
  OPTRAIL_RETURN_IF_ERROR(CheckGoogleBenchmarkFlags());
  OPTRAIL_ASSIGN_OR_RETURN(options.worker, WorkerFromFlags());
  OPTRAIL_RETURN_IF_ERROR(CheckRange(
      "processes", absl::GetFlag(FLAGS_processes), 0, kMostProcesses));
  int processes = BenchmarkRepetitions();
  if (processes == 0) processes = absl::GetFlag(FLAGS_processes);
  if (processes == 0) processes = workload.processes();
  options.bench.processes = processes > 0 ? processes : kDefaultProcesses;
  options.bench.sampling = BenchSamplingOptions();
  if (const double min_time_s = BenchmarkMinTimeSeconds(); min_time_s > 0) {
    options.bench.sampling.set_max_time_ns(
        static_cast<int64_t>(min_time_s * 1e9));
    options.bench.sampling.set_target_relative_half_width(0);
    options.bench.sampling.set_max_samples(1'000'000);
    // Deadlines are for configs that hang, not for long sampling.
    options.worker.config_deadline += absl::Seconds(4 * min_time_s);
  }
  OPTRAIL_RETURN_IF_ERROR(SetMeteringFromFlags(options.bench));
  options.resume = absl::GetFlag(FLAGS_resume);
  options.bench.random_interleaving = BenchmarkRandomInterleaving();
  options.bench.seed = absl::GetFlag(FLAGS_seed);

  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Objective> objectives,
                           ObjectivesFromFlags(/*may_open_device=*/true));
  options.objective = ObjectiveKey(objectives);
  options.metrics = MeteredOf(tuning::MetricsOf(objectives));
  OPTRAIL_RETURN_IF_ERROR(SetConfigsFromFlags(options));
  options.tune_command = TuneCommandLine(op, workload);
  options.suite = absl::GetFlag(FLAGS_suite);
  if (options.suite.empty()) options.suite = workload.name();
  if (options.suite.empty()) {
    options.suite = op.empty() ? absl::GetFlag(FLAGS_op) : op;
  }
  if (options.suite.empty()) options.suite = "all";
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckName("suite", options.suite));
  options.quiet = absl::GetFlag(FLAGS_quiet);
  OPTRAIL_RETURN_IF_ERROR(SetPairingFromFlags(options));
  return options;
}

void DivideTimeBudget(absl::Duration whole, proto::Budget* budget,
                      tuning::ProofOptions* proof) {
  if (whole <= absl::ZeroDuration()) return;
  const bool is_divided = !proof->max_time.has_value();
  budget->set_time_ns(absl::ToInt64Nanoseconds(is_divided ? whole / 2 : whole));
  if (!is_divided) return;
  proof->max_time = whole / 3;
  proof->session_max_time = whole;
}

absl::StatusOr<ServeOptions> ServeFromFlags() {
  ServeOptions options;
  options.address = absl::GetFlag(FLAGS_listen);
  if (options.address.empty()) {
    return absl::InvalidArgumentError(
        "flag --listen is missing: expected unix:PATH or HOST:PORT");
  }
  // Before devices are looked for, which takes seconds where there are GPUs.
  if (const absl::Status form = CheckAddress(options.address); !form.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --listen: ", form.message()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(options.worker, WorkerFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(options.device, DeviceFromFlags());
  options.sampling = DefaultSamplingOptions();
  if (IsForeign(options.address) && !absl::GetFlag(FLAGS_allow_network)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --listen=", options.address,
        ": whoever reaches it may measure here; expected unix:PATH or "
        "localhost:PORT, tunnelled by ssh -L, or --allow_network"));
  }
  return options;
}

absl::StatusOr<proto::Workload> WorkloadFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_workload);
  if (name.empty()) return proto::Workload();
  return FindWorkload(name);
}

}  // namespace optrail::suites
