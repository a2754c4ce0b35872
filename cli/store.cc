// `optrail store`: tuned configs: show, diff, promote, mend.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/git.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/flags.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(std::string, tree, "",
          "Folder below which operators are looked for, as BUILD files declare "
          "them; by default the workspace.");

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

// Which backend `bench --backend=best` takes, as a row among tuned configs:
// what its config gains over the device's own backend.
std::vector<Cell> RowOf(const proto::TunedConfigs& file,
                        const proto::BestBackend& best, const char* layer) {
  const auto name = [&](const std::string& backend) {
    return backend.empty() ? tuning::DeviceName(file.device_kind()) : backend;
  };
  const proto::BestBackend::Entry& first = best.entries(0);
  double over_own = 0;
  for (const proto::BestBackend::Entry& entry : best.entries()) {
    if (entry.backend().empty()) over_own = entry.ratio();
  }
  return {file.operator_name(),
          file.hardware_id(),
          best.shape(),
          Cell::Integer(best.threads()),
          tuning::CacheModeName(best.cache_mode()),
          absl::StrCat("best: ", name(first.backend())),
          best.objective().empty() ? "time" : best.objective(),
          Cell::Number(first.time_ns(), FormatDurationNs(first.time_ns())),
          over_own > 0
              ? Cell::Number(over_own, absl::StrFormat("%.2fx", over_own))
              : Cell::None(),
          layer,
          first.config()};
}

absl::StatusOr<int> ShowStore() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto op, tracker::CompilePattern("op", absl::GetFlag(FLAGS_op)));
  Table table({{"operator", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"shape", Align::kLeft, "", Clip::kNever},
               {"threads", Align::kRight},
               {"cache"},
               {"backend"},
               {"for", Align::kLeft, "objective"},
               {"time", Align::kRight, "time_ns"},
               {"speed-up", Align::kRight, "speedup"},
               {"layer"},
               {"config", Align::kLeft, "", Clip::kNever}});
  const auto add = [&](const std::vector<proto::TunedConfigs>& files,
                       const char* layer) {
    for (const proto::TunedConfigs& file : files) {
      if (!tracker::MatchesWhole(*op, file.operator_name())) continue;
      for (const proto::TunedConfig& tuned : file.tuned()) {
        const double speedup = tuned.default_time_ns() / tuned.time_ns();
        table.AddRow(
            {file.operator_name(), file.hardware_id(), tuned.shape(),
             Cell::Integer(tuned.threads()),
             tuning::CacheModeName(tuned.cache_mode()),
             tuned.backend().empty() ? tuning::DeviceName(file.device_kind())
                                     : tuned.backend(),
             tuned.objective().empty() ? "time" : tuned.objective(),
             Cell::Number(tuned.time_ns(), FormatDurationNs(tuned.time_ns())),
             tuned.default_time_ns() > 0
                 ? Cell::Number(speedup, absl::StrFormat("%.2fx", speedup))
                 : Cell::None(),
             layer, tuned.config()});
      }
      for (const proto::BestBackend& best : file.best()) {
        table.AddRow(RowOf(file, best, layer));
      }
    }
  };
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay,
                           tuning::ReadOverlay(StoreFolder()));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto tree, tuning::ReadTree(folders));
  add(overlay, "overlay");
  add(tree, "checked in");
  std::cout << table.Format(absl::GetFlag(FLAGS_format), TerminalWidth());
  return 0;
}

absl::StatusOr<int> DiffStore() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const auto op, tracker::CompilePattern("op", absl::GetFlag(FLAGS_op)));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto differences,
                           tuning::DiffStore(folders, StoreFolder()));
  for (const tuning::StoreDifference& difference : differences) {
    if (!tracker::MatchesWhole(*op, difference.operator_name)) continue;
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
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  const auto files = tuning::PromoteOverlay(
      folders, StoreFolder(), [&](absl::string_view operator_name) {
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
  return 0;
}

absl::StatusOr<int> MendStore() {
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto mended, tuning::MendTree(folders));
  for (const std::string& line : mended) std::cout << line << "\n";
  std::cerr << (mended.empty() ? "nothing to mend\n"
                               : "mended; review the files and commit\n");
  return 0;
}

}  // namespace

suites::Command StoreCommand() {
  suites::Command command;
  command.name = "store";
  command.arguments = "show | diff | promote | mend";
  command.summary = "Shows tuned configs, or moves them into the source tree.";
  command.details =
      "`show` lists what was tuned, and which backend was best where several "
      "were\n"
      "compared. Tuning writes its winners to an overlay, .optrail/store, "
      "which\n"
      "wins over the checked-in files. `diff` shows where they differ; "
      "`promote`\n"
      "moves them into tuned/HARDWARE.textproto in the folder of each "
      "operator,\n"
      "wherever a BUILD file declares it, to be reviewed like code. `mend` "
      "leaves\n"
      "the later of two entries that a merge of two branches made of one.\n";
  command.flags = {"store", "tree", "op", "format"};
  command.min_arguments = 1;
  command.max_arguments = 1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    if (arguments[0] == "show") return ShowStore();
    if (arguments[0] == "diff") return DiffStore();
    if (arguments[0] == "promote") return PromoteStore();
    if (arguments[0] == "mend") return MendStore();
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", arguments[0], "\": expected show, diff, promote or mend"));
  };
  return command;
}

}  // namespace optrail::cli
