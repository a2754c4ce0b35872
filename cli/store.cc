// `optrail store`: tuned configs: show, diff, promote.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/flags.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(std::string, tree, "ops",
          "Folder of the operators, under which checked-in tuned configs are.");

namespace optrail::cli {
namespace {

absl::StatusOr<int> ShowStore() {
  Table table({{"operator", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"shape", Align::kLeft, "", Clip::kNever},
               {"threads", Align::kRight},
               {"cache"},
               {"time", Align::kRight, "time_ns"},
               {"speed-up", Align::kRight, "speedup"},
               {"layer"},
               {"config", Align::kLeft, "", Clip::kNever}});
  const auto add = [&](const std::vector<proto::TunedConfigs>& files,
                       const char* layer) {
    for (const proto::TunedConfigs& file : files) {
      for (const proto::TunedConfig& tuned : file.tuned()) {
        const double speedup = tuned.default_time_ns() / tuned.time_ns();
        table.AddRow(
            {file.operator_name(), file.hardware_id(), tuned.shape(),
             Cell::Integer(tuned.threads()),
             tuning::CacheModeName(tuned.cache_mode()),
             Cell::Number(tuned.time_ns(), FormatDurationNs(tuned.time_ns())),
             tuned.default_time_ns() > 0
                 ? Cell::Number(speedup, absl::StrFormat("%.2fx", speedup))
                 : Cell::None(),
             layer, tuned.config()});
      }
    }
  };
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay,
                           tuning::ReadOverlay(StoreFolder()));
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto tree, tuning::ReadTree(UserPath(absl::GetFlag(FLAGS_tree))));
  add(overlay, "overlay");
  add(tree, "checked in");
  std::cout << table.Format(absl::GetFlag(FLAGS_format), TerminalWidth());
  return 0;
}

absl::StatusOr<int> DiffStore() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto differences,
      tuning::DiffStore(UserPath(absl::GetFlag(FLAGS_tree)), StoreFolder()));
  for (const tuning::StoreDifference& difference : differences) {
    std::cout << tuning::FormatDifference(difference);
  }
  if (differences.empty()) {
    std::cerr << "no differences: everything in " << StoreFolder()
              << " is checked in\n";
  }
  return 0;
}

absl::StatusOr<int> PromoteStore() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto op, tracker::CompilePattern("op", absl::GetFlag(FLAGS_op)));
  const std::string tree = UserPath(absl::GetFlag(FLAGS_tree));
  if (!FileExists(tree)) {
    return absl::NotFoundError(absl::StrCat(
        "--tree=", absl::GetFlag(FLAGS_tree), ": there is no folder ", tree,
        "; next: run store promote at the root of the source tree that holds "
        "the operators, or give their folder as --tree"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> files,
      tuning::PromoteOverlay(
          tree, StoreFolder(), [&](const tuning::StoreDifference& difference) {
            return tracker::MatchesWhole(*op, difference.operator_name);
          }));
  for (const std::string& file : files) std::cout << file << "\n";
  std::cerr << (files.empty() ? "nothing to promote\n"
                              : "written; review them and commit\n");
  return 0;
}

}  // namespace

suites::Command StoreCommand() {
  suites::Command command;
  command.name = "store";
  command.arguments = "show | diff | promote";
  command.summary = "Shows tuned configs, or moves them into the source tree.";
  command.details =
      "Tuning writes its winners to an overlay, .optrail/store, which wins "
      "over\n"
      "the checked-in files. `diff` shows where they differ; `promote` moves\n"
      "them into ops/OPERATOR/tuned/HARDWARE.textproto, to be reviewed like "
      "code.\n";
  command.flags = {"store", "tree", "op", "format"};
  command.min_arguments = 1;
  command.max_arguments = 1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    if (arguments[0] == "show") return ShowStore();
    if (arguments[0] == "diff") return DiffStore();
    if (arguments[0] == "promote") return PromoteStore();
    return absl::InvalidArgumentError(
        absl::StrCat("\"", arguments[0], "\": expected show, diff or promote"));
  };
  return command;
}

}  // namespace optrail::cli
