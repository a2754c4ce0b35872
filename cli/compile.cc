// `optrail compile`: fills the compile cache ahead of tuning.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/textproto.h"
#include "base/text/units.h"
#include "cli/compile_for.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "ops/core/device_type.h"
#include "suites/command/command_flags.h"
#include "suites/tune/compile_ahead.h"
#include "suites/tune/task_store.h"
#include "tracker/command/command_support.h"

ABSL_FLAG(std::string, hw, "",
          "What to compile for: the id of a known GPU (nvidia-h200), an "
          "architecture (sm_90a), or a file with a hardware record; by default "
          "the device that is here.");

namespace optrail::cli {
namespace {

constexpr int64_t kDefaultTrials = 72;
// Tensor cores came with the first; the last leaves room for what comes.
constexpr int64_t kFirstCapability = 70;
constexpr int64_t kLastCapability = 199;

// "sm_90a" is the declared hardware with that compute capability.
absl::StatusOr<proto::Hardware> HardwareNamed(const std::string& name,
                                              const ops::DeviceType& type) {
  proto::Hardware declared = type.Declared();
  if (name == declared.id()) return declared;
  if (FileExists(UserPath(name))) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text, ReadFile(UserPath(name)));
    OPTRAIL_ASSIGN_OR_RETURN(auto parsed,
                             ParseTextProto<proto::Hardware>(text, name));
    if (parsed.message.device_kind() == type.kind()) return parsed.message;
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --hw=", name, ": a record of another kind of device"));
  }
  absl::string_view digits = name;
  int64_t capability = 0;
  if (absl::ConsumePrefix(&digits, "sm_") &&
      absl::SimpleAtoi(absl::StripSuffix(digits, "a"), &capability) &&
      capability >= kFirstCapability && capability <= kLastCapability) {
    for (proto::HardwareAttribute& attribute : *declared.mutable_attributes()) {
      if (attribute.name() != "compute_capability") continue;
      // On the same architecture the declared limits hold.
      if (attribute.int_() == capability) {
        std::cerr << "note: --hw=" << name << ": limits and tuned configs of "
                  << declared.id() << " are used\n";
      } else {
        declared.set_id(name);
      }
      attribute.set_int_(capability);
      return declared;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --hw=", name, ": expected ",
      declared.id().empty() ? "" : absl::StrCat(declared.id(), ", sm_90a or "),
      "a file with a hardware record"));
}

}  // namespace

absl::StatusOr<suites::RunContext> ContextToCompileFor(
    const ops::DeviceType& type) {
  const std::string name = absl::GetFlag(FLAGS_hw);
  if (name.empty()) {
    absl::StatusOr<suites::RunContext> here = suites::RunContextFromFlags();
    const std::string known = type.Declared().id();
    if (here.ok() || known.empty()) return here;
    // Compiling needs no device, so its lack has another mend than elsewhere.
    const absl::string_view why = here.status().message();
    return absl::Status(
        here.status().code(),
        absl::StrCat(why.substr(0, why.find("; next: ")),
                     "; next: --hw=", known, ", which needs no device"));
  }
  suites::RunContext context;
  OPTRAIL_ASSIGN_OR_RETURN(context.hardware, HardwareNamed(name, type));
  context.workspace = WorkspaceDirectory();
  context.store = StoreFolder();
  context.state = JoinPath(context.workspace, ".optrail/state");
  return context;
}

namespace {

absl::StatusOr<int> Compile() {
  OPTRAIL_ASSIGN_OR_RETURN(
      suites::TaskSelection selection,
      suites::SelectionFromFlags("", absl::GetFlag(FLAGS_workload)));
  OPTRAIL_ASSIGN_OR_RETURN(const ops::DeviceType* type,
                           ops::FindDeviceType(selection.device));
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           ContextToCompileFor(*type));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<suites::TaskEntry> tasks,
                           suites::SelectTasks(selection, context.hardware));
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           suites::LoadStore(context, tasks));
  suites::CompileAheadOptions options;
  options.trials = absl::GetFlag(FLAGS_trials);
  if (options.trials == 0) options.trials = kDefaultTrials;
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      options.trials >= 0 && options.trials <= 1'000'000, "trials",
      options.trials, "a number from 1 to 1000000"));
  if (absl::GetFlag(FLAGS_strategy) != "default") {
    options.strategy = absl::GetFlag(FLAGS_strategy);
  }
  options.seed = absl::GetFlag(FLAGS_seed);
  options.worker.shared_folder = context.state;
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(context.state));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<suites::CompiledTask> all,
      suites::CompileAhead(tasks, context, store, options));
  Table table({{"task"},
               {"compiled", Align::kRight},
               {"known", Align::kRight},
               {"failed", Align::kRight},
               {"compilers", Align::kRight, "compile_ns"},
               {"first failure"}});
  bool all_well = true;
  for (const suites::CompiledTask& one : all) {
    all_well &= one.failed == 0 && one.error.empty();
    table.AddRow({suites::ShortTaskText(one.task), Cell::Integer(one.compiled),
                  Cell::Integer(one.known), Cell::Integer(one.failed),
                  Cell::Number(static_cast<double>(one.compile_ns),
                               FormatDurationNs(one.compile_ns)),
                  one.error.empty() ? one.first_failure.substr(
                                          0, one.first_failure.find('\n'))
                                    : one.error});
  }
  std::cout << table.Format(absl::GetFlag(FLAGS_format), TerminalWidth());
  return ToInt(all_well ? ExitCode::kOk : ExitCode::kCheckFailed);
}

}  // namespace

suites::Command CompileCommand() {
  suites::Command command;
  command.name = "compile";
  command.summary = "Compiles what tuning is going to need, on all cores.";
  command.details = HelpText("compile");
  command.flags = suites::SelectionFlags();
  for (const char* flag :
       {"hw", "trials", "strategy", "seed", "format", "history", "store"}) {
    command.flags.push_back(flag);
  }
  command.meanings = {
      {"trials", "Configs to compile for each shape; 0: 72."},
      {"strategy", "The strategy whose first configs are compiled."},
      {"seed", "Seed of that strategy."},
      {"threads", "Numbers of threads that the configs are for."}};
  command.run = [](const std::vector<std::string>&) { return Compile(); };
  return command;
}

}  // namespace optrail::cli
