// `optrail store`: tuned configs: show, diff, promote, mend, check.

#include "tuning/store/store.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/table.h"
#include "base/text/utf8.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/store_numerics.h"
#include "cli/store_tables.h"
#include "ops/core/registry.h"
#include "suites/command/command_flags.h"
#include "suites/tune/promotion.h"
#include "suites/tune/store_check.h"
#include "suites/tune/task_store.h"
#include "suites/worker/run_context.h"
#include "tracker/command/command_support.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(std::string, tree, "",
          "Folder below which operators are looked for, as BUILD files declare "
          "them; by default the workspace.");

ABSL_FLAG(bool, all, false,
          "Check entries whose kernel has not changed, too, and those of the "
          "build.");

ABSL_DECLARE_FLAG(bool, retune);
ABSL_DECLARE_FLAG(std::string, hw);
ABSL_DECLARE_FLAG(std::string, numerics);

namespace optrail::cli {
namespace {

absl::StatusOr<tuning::OperatorFolders> FindOperators() {
  const std::string& tree = absl::GetFlag(FLAGS_tree);
  const auto folders = tuning::OperatorFolders::Find(
      tree.empty() ? WorkspaceDirectory() : UserPath(tree));
  if (folders.ok() || tree.empty()) return folders;
  return absl::NotFoundError(
      absl::StrCat("--tree=", tree, ": ", folders.status().message()));
}

// Returns the overlay's folder. NotFound if --store names one that is not
// there.
absl::StatusOr<std::string> NamedStore() {
  const std::string folder = StoreFolder();
  if (absl::GetFlag(FLAGS_store).empty() || FileExists(folder)) return folder;
  return absl::NotFoundError(absl::StrCat(
      "--store=", absl::GetFlag(FLAGS_store),
      ": no such folder, expected one that optrail tune has written; next: "
      "optrail tune --store=",
      absl::GetFlag(FLAGS_store), " --op=OPERATOR"));
}

// The entries of the tree that this program lacks.
struct NotBuiltIn {
  // They were checked in, or changed, since it was built.
  std::vector<proto::TunedConfigs> later;
  // It has no operator of that name, so building it again brings none of them.
  std::vector<proto::TunedConfigs> of_others;
};

absl::StatusOr<NotBuiltIn> FindNotBuiltIn(
    const tuning::OperatorFolders& folders) {
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore built_in,
                           suites::LoadWholeStore({}));
  OPTRAIL_ASSIGN_OR_RETURN(const auto tree, tuning::ReadTree(folders));
  NotBuiltIn found;
  for (proto::TunedConfigs& file :
       tuning::EntriesMissingFrom(built_in.Contents(), tree)) {
    const bool is_linked =
        ops::Registry::Get().Find(file.operator_name()) != nullptr;
    (is_linked ? found.later : found.of_others).push_back(std::move(file));
  }
  return found;
}

// Logs how many entries of the operators of --op were checked in since this
// program was built.
void LogNotBuiltIn(const NotBuiltIn& found, const RE2& op) {
  int count = 0;
  for (const proto::TunedConfigs& file : found.later) {
    if (!tracker::MatchesWhole(op, file.operator_name())) continue;
    count += file.tuned_size() + file.best_size();
  }
  if (count == 0) return;
  std::cerr << "this program was built before " << count
            << (count == 1 ? " checked-in config, and runs without it"
                           : " checked-in configs, and runs without them")
            << "; next: build it again\n";
}

// The same after other work, whose verdict stands if the tree can't be read.
void LogNotBuiltIn(const tuning::OperatorFolders& folders, const RE2& op) {
  if (const auto found = FindNotBuiltIn(folders); found.ok()) {
    LogNotBuiltIn(*found, op);
  } else {
    std::cerr << "note: not compared with the configs in this program: "
              << SanitiseText(found.status().message()) << "\n";
  }
}

// Compiles --op. NotFound if it matches neither an operator of this binary nor
// one of the tree or the overlay.
absl::StatusOr<std::unique_ptr<RE2>> OperatorPattern(
    const tuning::OperatorFolders& folders,
    const std::vector<proto::TunedConfigs>& overlay) {
  const std::string op = absl::GetFlag(FLAGS_op);
  OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<RE2> pattern,
                           tracker::CompilePattern("op", op));
  std::set<std::string> names;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    names.insert(entry->op->name());
  }
  for (const auto& [name, unused] : folders.folders()) names.insert(name);
  for (const auto& file : overlay) names.insert(file.operator_name());
  if (op.empty() ||
      std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return tracker::MatchesWhole(*pattern, name);
      })) {
    return pattern;
  }
  return absl::NotFoundError(
      absl::StrCat("no operator matches --op=", op,
                   "; there are: ", absl::StrJoin(names, ", "),
                   DidYouMean(op, {names.begin(), names.end()}, "--op=")));
}

// Says which files of the overlay no lookup reads, and why.
void LogIgnoredFiles(const std::string& store) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(store, error);
       !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code broken;
    const fs::file_status status = fs::status(it->path(), broken);
    const bool is_named = it->path().extension() == ".textproto";
    const bool is_folder = fs::is_directory(status);
    // The lock and files that are being written.
    if (absl::StartsWith(name, ".") || (is_folder && !is_named) ||
        (is_named && fs::is_regular_file(status))) {
      continue;
    }
    std::cerr << "note: " << SanitiseText(it->path().string())
              << " is not read: "
              << (!is_named   ? "its name does not end in .textproto"
                  : is_folder ? "it is a folder"
                              : "it is a link that leads nowhere")
              << "\n";
  }
}

absl::StatusOr<int> ShowStore(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, tuning::ReadOverlay(store));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto op, OperatorPattern(folders, overlay));
  suites::RunContext context;
  context.store = store;
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore known,
                           suites::LoadWholeStore(context));
  OPTRAIL_ASSIGN_OR_RETURN(const NotBuiltIn not_built_in,
                           FindNotBuiltIn(folders));
  StoreTable table;
  const std::string hw = absl::GetFlag(FLAGS_hw);
  const auto add = [&](const std::vector<proto::TunedConfigs>& files,
                       const char* layer) {
    for (const proto::TunedConfigs& file : files) {
      if (!tracker::MatchesWhole(*op, file.operator_name())) continue;
      if (!hw.empty() && file.hardware_id() != hw) continue;
      table.Add(file, layer);
    }
  };
  add(known.Contents(tuning::StoreLayer::kOverlay), "overlay");
  add(known.Contents(tuning::StoreLayer::kCheckedIn), "checked in");
  add(not_built_in.of_others, "checked in");
  add(not_built_in.later, "checked in, not built in");
  std::cout << table.Format(absl::GetFlag(FLAGS_format));
  LogIgnoredFiles(store);
  LogNotBuiltIn(not_built_in, *op);
  return 0;
}

absl::StatusOr<int> DiffStore(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, tuning::ReadOverlay(store));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto op, OperatorPattern(folders, overlay));
  OPTRAIL_ASSIGN_OR_RETURN(const auto differences,
                           tuning::DiffStore(folders, store));
  const std::string& numerics = absl::GetFlag(FLAGS_numerics);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(numerics == "any" || numerics == "same", "numerics",
                         numerics, "any or same"));
  const OutputFormat format = absl::GetFlag(FLAGS_format);
  DifferenceTable table;
  int shown = 0;
  std::vector<const tuning::StoreDifference*> tuned;
  for (const tuning::StoreDifference& difference : differences) {
    if (!tracker::MatchesWhole(*op, difference.operator_name)) continue;
    ++shown;
    if (format == OutputFormat::kTable) {
      std::cout << tuning::FormatDifference(difference);
    } else {
      table.Add(difference);
    }
    if (!difference.is_best) tuned.push_back(&difference);
  }
  if (format != OutputFormat::kTable) std::cout << table.Format(format);
  if (shown == 0) {
    const std::string of = absl::GetFlag(FLAGS_op);
    std::cerr << "no differences: everything in " << store
              << (of.empty() ? "" : absl::StrCat(" of --op=", of))
              << " is checked in\n";
  }
  return numerics == "same" ? JudgeNumerics(tuned) : 0;
}

// --time_budget; `usual` where it is 0.
absl::StatusOr<absl::Duration> TimeOr(absl::Duration usual) {
  const absl::Duration given = absl::GetFlag(FLAGS_time_budget);
  OPTRAIL_RETURN_IF_ERROR(
      CheckDuration("time_budget", given, absl::ZeroDuration()));
  return given > absl::ZeroDuration() ? given : usual;
}

// Promotes the entries that do not make the workload slower.
absl::StatusOr<int> PromoteMeasured(const std::string& workload) {
  if (!absl::GetFlag(FLAGS_op).empty()) {
    return absl::InvalidArgumentError(
        "--op with --workload: a workload is measured as a whole; expected one "
        "of the two");
  }
  OPTRAIL_RETURN_IF_ERROR(NamedStore().status());
  suites::PromotionCommand promotion;
  OPTRAIL_ASSIGN_OR_RETURN(promotion.time, TimeOr(promotion.time));
  OPTRAIL_ASSIGN_OR_RETURN(promotion.context, suites::RunContextFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(promotion.selection,
                           suites::SelectionFromFlags("", workload));
  OPTRAIL_ASSIGN_OR_RETURN(promotion.folders, FindOperators());
  promotion.dry_run = absl::GetFlag(FLAGS_dry_run);
  promotion.format = absl::GetFlag(FLAGS_format);
  OPTRAIL_ASSIGN_OR_RETURN(
      const int code, suites::RunPromotion(promotion, std::cout, std::cerr));
  LogNotBuiltIn(promotion.folders, RE2(".*"));
  return code;
}

absl::StatusOr<int> PromoteStore(const std::vector<std::string>&) {
  if (const std::string workload = absl::GetFlag(FLAGS_workload);
      !workload.empty()) {
    return PromoteMeasured(workload);
  }
  if (absl::GetFlag(FLAGS_dry_run)) {
    return absl::InvalidArgumentError(
        "--dry_run without --workload: nothing is measured then; next: "
        "optrail store diff");
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, tuning::ReadOverlay(store));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto op, OperatorPattern(folders, overlay));
  const auto files = tuning::PromoteOverlay(
      folders, store, [&](absl::string_view operator_name) {
        return tracker::MatchesWhole(*op, operator_name);
      });
  if (absl::IsNotFound(files.status())) {
    return absl::NotFoundError(absl::StrCat(
        files.status().message(),
        "; next: run store promote in the workspace that holds the operator, "
        "give --tree=FOLDER, or leave it out with --op"));
  }
  OPTRAIL_RETURN_IF_ERROR(files.status());
  for (const std::string& file : *files) std::cout << file << "\n";
  std::cerr << (files->empty() ? "nothing to promote\n"
                               : "written; review them and commit\n");
  if (!files->empty()) {
    std::cerr << "note: they are no more in " << store
              << "; a program that opens it with liboptrail gets them from the "
                 "folders above (optrail_store_open(\""
              << DirectoryOf(files->front()) << "\")), or from a new build\n";
  }
  LogNotBuiltIn(folders, *op);
  return 0;
}

absl::StatusOr<int> MendStore(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto mended,
                           tuning::MendStore(folders, store));
  for (const std::string& line : mended) {
    std::cout << SanitiseText(line) << "\n";
  }
  std::cerr << (mended.empty() ? "nothing to mend\n"
                               : "mended; review the files and commit\n");
  return 0;
}

absl::StatusOr<int> CheckStore(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, tuning::ReadOverlay(store));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto op, OperatorPattern(folders, overlay));
  suites::StoreCheckCommand check;
  OPTRAIL_ASSIGN_OR_RETURN(check.time, TimeOr(check.time));
  OPTRAIL_ASSIGN_OR_RETURN(check.context, suites::RunContextFromFlags());
  OPTRAIL_ASSIGN_OR_RETURN(check.tune,
                           suites::TuneFromFlags(proto::Workload()));
  check.op_regex = absl::GetFlag(FLAGS_op);
  check.all = absl::GetFlag(FLAGS_all);
  check.dry_run = absl::GetFlag(FLAGS_dry_run);
  check.retune = absl::GetFlag(FLAGS_retune);
  check.format = absl::GetFlag(FLAGS_format);
  OPTRAIL_ASSIGN_OR_RETURN(const int code,
                           suites::RunStoreCheck(check, std::cout, std::cerr));
  LogNotBuiltIn(folders, *op);
  return code;
}

}  // namespace

suites::Command StoreCommand() {
  suites::Command command;
  command.name = "store";
  command.arguments = "show | diff | promote | mend | check";
  command.summary = "Shows tuned configs, or moves them into the source tree.";
  command.details = HelpText("store");
  command.defaults = {{"retune", "true"}};
  command.meanings = {
      {"time_budget", "Time for the whole check or promotion; 0: 2 minutes."},
      {"numerics",
       "any, or same: exit code 1 if a config gives results other bits than "
       "what ran before, 3 if nobody knows."},
      {"hw",
       "Show entries of this hardware alone, as optrail doctor names it."},
      {"retune", "Tune entries that fail, in the time that is left."},
      {"dry_run",
       "check lists entries and measures nothing; promote --workload judges "
       "and moves nothing."}};
  command.parts = {
      Part("show", "", "Lists tuned configs and the best backends.",
           {"store", "tree", "op", "hw", "format"}, 0, 0, ShowStore),
      Part("diff", "", "Shows where the overlay differs from checked-in files.",
           {"store", "tree", "op", "numerics", "format"}, 0, 0, DiffStore),
      Part("promote", "", "Moves winners into the source tree.",
           {"store", "history", "tree", "op", "workload", "threads", "device",
            "time_budget", "dry_run", "format"},
           0, 0, PromoteStore),
      Part("check", "", "Proves entries again whose kernel has changed.",
           {"store", "history", "op", "device", "time_budget", "all", "retune",
            "dry_run", "quiet", "format"},
           0, 0, CheckStore),
      Part("mend", "", "Repairs files of tuned configs after a merge.",
           {"store", "tree"}, 0, 0, MendStore)};
  return command;
}

}  // namespace optrail::cli
