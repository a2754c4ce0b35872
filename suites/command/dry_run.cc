#include "suites/command/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "suites/command/command_flags.h"
#include "suites/command/command_line.h"
#include "suites/tune/task_store.h"
#include "suites/tune/tune_buckets.h"
#include "suites/worker/run_context.h"
#include "tracker/history/store_url.h"
#include "tuning/session/objective.h"
#include "tuning/store/bucket.h"

namespace optrail::suites {
namespace {

struct Setting {
  std::string flag;
  std::string value;     // that holds, in words where the flag is silent
  std::string fallback;  // the flag's default
  std::string origin;
  bool changed_by_preset = false;
};

bool HasTotal(const TuneDriverOptions& options) {
  return options.total_trials > 0 || options.total_time_ns > 0;
}

// Fills in the value where the flag leaves it to the workload or the command.
void FillIn(const TunePlan& plan, Setting* setting) {
  const std::string from_workload =
      absl::StrCat("workload ", plan.workload.name());
  const proto::Budget& budget = plan.options.tune.budget;
  if (setting->flag == "threads" && setting->value.empty()) {
    if (plan.workload.threads().empty()) {
      setting->value = "1";
    } else {
      setting->value = absl::StrJoin(plan.workload.threads(), ",");
      setting->origin = from_workload;
    }
  } else if (setting->flag == "time_budget" && setting->value == "0" &&
             budget.has_time_ns()) {
    setting->value =
        absl::StrCat(absl::FormatDuration(absl::Nanoseconds(budget.time_ns())),
                     " of search per task");
    if (plan.workload.tune_seconds() > 0) setting->origin = from_workload;
  } else if (setting->flag == "strategy" && setting->value == "default") {
    setting->value = absl::StrCat("default: ", plan.options.tune.strategy);
  } else if (setting->flag == "processes" && setting->value == "0") {
    setting->value = absl::StrCat(plan.options.tune.rank_rounds);
  } else if (setting->flag == "history") {
    setting->value = tracker::ShownUrl(plan.context.history);
  } else if (setting->flag == "store") {
    setting->value = plan.context.store;
  }
}

std::vector<Setting> SettingsOf(const TunePlan& plan, const std::string& op) {
  std::vector<std::string> flags;
  for (const auto& list : {SelectionFlags(), TuneFlags(), PlaceFlags()}) {
    flags.insert(flags.end(), list.begin(), list.end());
  }
  std::vector<Setting> settings;
  for (const std::string& name : flags) {
    if (!op.empty() && (name == "op" || name == "with_test_operators")) {
      continue;  // the program's own
    }
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    Setting setting;
    setting.flag = name;
    setting.value = flag->CurrentValue();
    setting.fallback = flag->DefaultValue();
    setting.origin = FlagOrigin(name);
    for (const FlagSetting& preset : plan.preset.settings) {
      if (preset.flag != name) continue;
      if (setting.origin == preset.place) {
        setting.changed_by_preset = setting.value != setting.fallback;
      } else {
        absl::StrAppend(&setting.origin, " (", preset.place, ": ", preset.value,
                        ")");
      }
    }
    FillIn(plan, &setting);
    settings.push_back(std::move(setting));
  }
  return settings;
}

Table SettingsTable(const std::vector<Setting>& settings) {
  Table table({{"setting", Align::kLeft, "", Clip::kNever},
               {"value", Align::kLeft, "", Clip::kFold},
               {"default", Align::kLeft, "", Clip::kFold},
               {"from", Align::kLeft, "", Clip::kFold},
               {"changed by preset"}});
  for (const Setting& setting : settings) {
    table.AddRow({setting.flag, setting.value, setting.fallback, setting.origin,
                  setting.changed_by_preset ? "yes" : ""});
  }
  return table;
}

// A Fate says what the command is going to do with a task.
struct Fate {
  std::string text;
  bool to_tune = false;  // and of the total
};

Fate FateOf(const TaskEntry& task, const TunePlan& plan,
            const tuning::TunedConfigStore& store) {
  if (!task.available.ok() && plan.options.elsewhere.empty()) {
    return {absl::StrCat("left out: ", task.available.message())};
  }
  if (plan.range.has_value()) return {"range of shapes", true};
  // Which entries of the store these are, the meters of an open device say.
  if (absl::GetFlag(FLAGS_objective) != tuning::kTimeMetric) {
    return {"to tune, unless the store has it", true};
  }
  const absl::StatusOr<TaskSpace> space = BindTask(task, plan.context.hardware);
  if (!space.ok()) return {std::string(space.status().message())};
  if (IsTunedAlready(store, task, *space, plan.options)) {
    return {"tuned already"};
  }
  return {space->has_choice ? "to tune" : "nothing to choose", true};
}

absl::StatusOr<Table> TasksTable(const TunePlan& plan) {
  const OperatorShares& shares = plan.shares;
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(plan.context, plan.tasks));
  const bool with_shares = !shares.fractions().empty();
  std::vector<Column> columns = {{"task", Align::kLeft, "", Clip::kFold},
                                 {"calls", Align::kRight}};
  if (with_shares) {
    columns.push_back({"operator's share", Align::kRight, "operator_share"});
  }
  columns.push_back({"state", Align::kLeft, "", Clip::kFold});
  Table table(std::move(columns));
  size_t to_tune = 0;
  for (const TaskEntry& task : plan.tasks) {
    // A range has a task for its first shape.
    std::vector<Cell> row = {plan.range.has_value()
                                 ? absl::StrCat(task.task.operator_name(), " ",
                                                plan.selection.shape_regex)
                                 : ShortTaskText(task.task),
                             Cell::Integer(task.count)};
    if (with_shares) {
      const std::string& op = task.task.operator_name();
      const double fraction = shares.FractionOf(op);
      row.push_back(Cell::Number(
          fraction, absl::StrFormat(
                        "%s%.4g%%",
                        plan.options.operator_shares.count(op) > 0 ? "" : "of ",
                        100 * fraction)));
    }
    const Fate fate = FateOf(task, plan, store);
    to_tune += fate.to_tune ? 1 : 0;
    row.push_back(fate.text);
    table.AddRow(std::move(row));
  }
  if (!plan.range.has_value()) {
    OPTRAIL_RETURN_IF_ERROR(CheckTotalTrials(plan.options, to_tune));
  }
  return table;
}

// The preset's shares, which are no flag.
absl::Status ApplyPreset(const Preset& preset, TunePlan* plan) {
  plan->preset = preset;
  plan->options.operator_shares = preset.shares;
  if (preset.shares.empty()) return absl::OkStatus();
  if (!HasTotal(plan->options)) {
    return absl::InvalidArgumentError(absl::StrCat(
        preset.shares_place,
        ": a share is a part of a total; expected total_trials or total_time "
        "in the preset, or --total_trials or --total_time"));
  }
  if (tuning::Bucket::IsRange(plan->selection.shape_regex)) {
    return absl::InvalidArgumentError(absl::StrCat(
        preset.shares_place, ": a share means nothing for a range of shapes (",
        plan->selection.shape_regex, "); expected a preset without shares"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OperatorShares> SharesOf(const Preset& preset,
                                        const std::vector<TaskEntry>& tasks) {
  std::vector<std::string> operators;
  for (const TaskEntry& task : tasks) {
    operators.push_back(task.task.operator_name());
  }
  absl::StatusOr<OperatorShares> shares =
      OperatorShares::Of(preset.shares, operators);
  if (shares.ok()) return shares;
  return absl::InvalidArgumentError(
      absl::StrCat(preset.shares_place, ": ", shares.status().message()));
}

// The summary for people: what the preset brought about.
void PrintChanges(const TunePlan& plan, const std::vector<Setting>& settings,
                  std::ostream& notes) {
  std::vector<std::string> changes;
  for (const Setting& setting : settings) {
    if (!setting.changed_by_preset) continue;
    changes.push_back(absl::StrCat(setting.flag, "=", setting.value));
  }
  if (!plan.preset.proto.name().empty()) {
    notes << "preset " << plan.preset.proto.name() << " ("
          << SanitiseText(plan.preset.path) << ") changes "
          << (changes.empty() ? "no setting"
                              : SanitiseText(absl::StrJoin(changes, ", ")))
          << "\n";
  }
  notes << "dry run: nothing was measured or written; next: the same command "
           "without --dry_run\n";
}

}  // namespace

absl::StatusOr<TunePlan> MakeTunePlan(const std::string& op,
                                      const Preset& preset, bool dry_run,
                                      std::ostream& notes) {
  TunePlan plan;
  OPTRAIL_ASSIGN_OR_RETURN(plan.workload, WorkloadFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(
      plan.selection, SelectionFromFlags(op, absl::GetFlag(FLAGS_workload)));
  if (plan.selection.backend == kBestBackend) {
    return absl::InvalidArgumentError(
        "--backend=best: which backend is best follows from tuned ones: "
        "--backend=all tunes and compares them, and `bench --backend=best` "
        "takes what it found");
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      plan.options, TuneFromFlags(plan.workload, /*may_open_device=*/!dry_run));
  OPTRAIL_RETURN_IF_ERROR(ApplyPreset(preset, &plan));
  if (dry_run) {
    std::string note;
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.context,
        PlanRunContext(plan.selection.device, absl::GetFlag(FLAGS_history),
                       absl::GetFlag(FLAGS_store), &note));
    if (!note.empty()) notes << "note: " << note << "\n";
  } else {
    notes << PresetText(preset);
    OPTRAIL_ASSIGN_OR_RETURN(plan.context, RunContextFromFlags());
  }
  plan.options.worker.shared_folder = plan.context.state;
  if (tuning::Bucket::IsRange(plan.selection.shape_regex)) {
    OPTRAIL_ASSIGN_OR_RETURN(plan.range,
                             tuning::Bucket::Parse(plan.selection.shape_regex));
    OPTRAIL_RETURN_IF_ERROR(CheckRangeOptions(*plan.range, plan.options));
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.tasks,
        TasksOfRange(plan.selection, *plan.range, plan.context.hardware));
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(
        plan.tasks, SelectTasks(plan.selection, plan.context.hardware));
  }
  OPTRAIL_ASSIGN_OR_RETURN(plan.shares, SharesOf(preset, plan.tasks));
  return plan;
}

std::string PresetText(const Preset& preset) {
  if (preset.proto.name().empty()) return "";
  std::vector<std::string> values;
  for (const FlagSetting& setting : preset.settings) {
    if (FlagOrigin(setting.flag) != setting.place) continue;
    values.push_back(absl::StrCat("--", setting.flag, "=", setting.value));
  }
  return SanitiseText(absl::StrCat("preset ", preset.proto.name(), ": ",
                                   absl::StrJoin(values, " "),
                                   "; --dry_run lists every setting\n"));
}

absl::StatusOr<int> DryRunTune(const TunePlan& plan, const std::string& op,
                               std::ostream& out, std::ostream& notes) {
  OPTRAIL_ASSIGN_OR_RETURN(const Table tasks, TasksTable(plan));
  const std::vector<Setting> settings = SettingsOf(plan, op);
  const Table table = SettingsTable(settings);
  const OutputFormat format = absl::GetFlag(FLAGS_format);
  if (format == OutputFormat::kJson) {
    out << "{\"tasks\": " << absl::StripSuffix(tasks.ToJson(), "\n")
        << ",\n\"settings\": " << absl::StripSuffix(table.ToJson(), "\n")
        << "}\n";
    return 0;
  }
  const int width = format == OutputFormat::kTable ? TerminalWidth() : 0;
  out << tasks.Format(format, width) << "\n" << table.Format(format, width);
  PrintChanges(plan, settings, notes);
  return 0;
}

}  // namespace optrail::suites
