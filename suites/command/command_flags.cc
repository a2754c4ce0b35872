#include "suites/command/command_flags.h"

#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/socket.h"
#include "base/status_macros.h"
#include "ops/core/device_type.h"
#include "suites/command/command_line.h"
#include "suites/command/shared_flags.h"
#include "suites/stopwatch/stopwatch.h"
#include "suites/tune/objectives.h"
#include "suites/workload/workload.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
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
ABSL_FLAG(std::string, preset, "",
          "What to tune and how, for a kind of model: recommender, vision, "
          "language, or the path of a .preset.textproto of your own. A flag "
          "that is given wins over it.");
ABSL_FLAG(bool, dry_run, false, "Print what would be done, change nothing.");
ABSL_FLAG(std::string, cache, "hot",
          "hot: operands are as warm as the call before left them; cold: "
          "caches are flushed before each call.");

ABSL_FLAG(std::string, launch, "",
          "stream or graph: how calls are launched on a device that has a "
          "choice; by default as the device usually does.");

ABSL_FLAG(uint64_t, seed, 1,
          "Seed of all random choices: the same seed makes the same choices.");
ABSL_FLAG(absl::Duration, config_deadline, absl::Seconds(10),
          "A config that has not answered by then is killed.");
ABSL_FLAG(int64_t, max_config_mib, 1024,
          "Memory in MiB that a config may use beside its operands.");

ABSL_FLAG(int32_t, processes, 0,
          "Fresh processes per benchmark or finalist; 0 takes the workload's, "
          "else 5.");
ABSL_FLAG(std::string, listen, "", "Where to serve: unix:PATH, or HOST:PORT.");
ABSL_FLAG(bool, allow_network, false,
          "Also serve other machines, which are not asked who they are.");
ABSL_FLAG(bool, with_test_operators, false,
          "Also offer operators that exist for tests.");

namespace optrail::suites {

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

namespace {

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

}  // namespace

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
