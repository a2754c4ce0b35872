// `optrail store`: tuned configs: show, diff, promote, mend, check.

#include "tuning/store/store.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/quote.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "ops/core/registry.h"
#include "suites/command/command_flags.h"
#include "suites/tune/promotion.h"
#include "suites/tune/store_check.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/store/operator_folders.h"
#include "tuning/store/store_files.h"

ABSL_FLAG(std::string, tree, "",
          "Folder below which operators are looked for, as BUILD files declare "
          "them; by default the workspace.");

ABSL_FLAG(bool, all, false, "Check entries whose kernel has not changed, too.");

ABSL_DECLARE_FLAG(bool, retune);
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

// The overlay's folder. NotFound if --store names one that is not there.
absl::StatusOr<std::string> NamedStore() {
  const std::string folder = StoreFolder();
  if (absl::GetFlag(FLAGS_store).empty() || FileExists(folder)) return folder;
  return absl::NotFoundError(absl::StrCat(
      "--store=", absl::GetFlag(FLAGS_store),
      ": no such folder, expected one that optrail tune has written; next: "
      "optrail tune --store=",
      absl::GetFlag(FLAGS_store), " --op=OPERATOR"));
}

// Entries that were checked in since this program was built, which therefore
// does not use them.
absl::StatusOr<std::vector<proto::TunedConfigs>> NotBuiltIn(
    const tuning::OperatorFolders& folders) {
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore built_in,
                           suites::LoadWholeStore({}));
  OPTRAIL_ASSIGN_OR_RETURN(const auto tree, tuning::ReadTree(folders));
  return tuning::EntriesMissingFrom(built_in.Contents(), tree);
}

// Says on the log how many of them are of the operators of --op.
absl::Status NoteNotBuiltIn(const tuning::OperatorFolders& folders,
                            const RE2& op) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto files, NotBuiltIn(folders));
  int count = 0;
  for (const proto::TunedConfigs& file : files) {
    if (!tracker::MatchesWhole(op, file.operator_name())) continue;
    count += file.tuned_size() + file.best_size();
  }
  if (count > 0) {
    std::cerr << "this program was built before " << count
              << (count == 1 ? " checked-in config, and runs without it"
                             : " checked-in configs, and runs without them")
              << "; next: build it again\n";
  }
  return absl::OkStatus();
}

// What `store show` lists: for programs a column for each part of an entry's
// key; for people, whose lines are short, one for all that.
class StoreTable {
 public:
  void Add(const proto::TunedConfigs& file, const proto::TunedConfig& tuned,
           const char* layer) {
    AddRow(file, tuned, layer, NameOf(file, tuned.backend()),
           absl::StrCat(
               tuning::EntryText(tuned),
               tuned.bucket().empty() || tuned.bucket() == tuned.shape()
                   ? ""
                   : absl::StrCat(", for ", tuned.bucket()),
               tuning::IsBatchInvariant(tuned.numerics()) ? ", batch-invariant"
                                                          : ""),
           tuned.time_ns(), tuning::SpeedUpOverDefault(tuned), tuned.config(),
           tuned.numerics(), tuned.bucket());
  }

  // Which backend `bench --backend=best` takes: what its config gains over the
  // device's own backend.
  void Add(const proto::TunedConfigs& file, const proto::BestBackend& best,
           const char* layer) {
    const proto::BestBackend::Entry& first = best.entries(0);
    double over_own = 0;
    for (const proto::BestBackend::Entry& entry : best.entries()) {
      if (entry.backend().empty()) over_own = entry.ratio();
    }
    const std::string name =
        absl::StrCat("best: ", NameOf(file, first.backend()));
    AddRow(file, best, layer, name,
           absl::StrCat(tuning::EntryText(best), ", ", name), first.time_ns(),
           over_own, first.config(), /*numerics=*/"", /*bucket=*/"");
  }

  std::string Format(OutputFormat format) const {
    return format == OutputFormat::kTable ? short_.ToText(TerminalWidth())
                                          : whole_.Format(format);
  }

 private:
  static std::string NameOf(const proto::TunedConfigs& file,
                            const std::string& backend) {
    return backend.empty() ? tuning::DeviceName(file.device_kind()) : backend;
  }

  template <typename Entry>
  void AddRow(const proto::TunedConfigs& file, const Entry& entry,
              const char* layer, const std::string& backend,
              const std::string& key, double time_ns, double speedup,
              const std::string& config, const std::string& numerics,
              const std::string& bucket) {
    const Cell time = time_ns > 0
                          ? Cell::Number(time_ns, FormatDurationNs(time_ns))
                          : Cell::None();
    const Cell gain =
        speedup > 0 ? Cell::Number(speedup, absl::StrFormat("%.2fx", speedup))
                    : Cell::None();
    whole_.AddRow({file.operator_name(), file.hardware_id(), entry.shape(),
                   Cell::Integer(entry.threads()),
                   tuning::CacheModeName(entry.cache_mode()), backend,
                   entry.objective().empty() ? "time" : entry.objective(), time,
                   gain, layer, config,
                   numerics.empty() ? Cell::None() : Cell(numerics),
                   bucket.empty() ? Cell::None() : Cell(bucket)});
    short_.AddRow({file.operator_name(), key,
                   absl::StrCat(file.hardware_id(), ", ", layer), time, gain,
                   config});
  }

  Table whole_{{{"operator"},
                {"hardware"},
                {"shape"},
                {"threads", Align::kRight},
                {"cache"},
                {"backend"},
                {"for", Align::kLeft, "objective"},
                {"time", Align::kRight, "time_ns"},
                {"speed-up", Align::kRight, "speedup"},
                {"layer"},
                {"config"},
                {"numerics"},
                {"bucket"}}};
  Table short_{{{"operator", Align::kLeft, "", Clip::kFold},
                {"shape, threads, cache", Align::kLeft, "", Clip::kFold},
                {"hardware", Align::kLeft, "", Clip::kFold},
                {"time", Align::kRight},
                {"speed-up", Align::kRight},
                {"config", Align::kLeft, "", Clip::kFold}}};
};

// --op. NotFound if it matches neither an operator of this binary nor one of
// the tree or the overlay.
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

absl::StatusOr<int> ShowStore(const std::vector<std::string>&) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string store, NamedStore());
  OPTRAIL_ASSIGN_OR_RETURN(const auto overlay, tuning::ReadOverlay(store));
  OPTRAIL_ASSIGN_OR_RETURN(const auto folders, FindOperators());
  OPTRAIL_ASSIGN_OR_RETURN(const auto op, OperatorPattern(folders, overlay));
  suites::RunContext context;
  context.store = store;
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore known,
                           suites::LoadWholeStore(context));
  OPTRAIL_ASSIGN_OR_RETURN(const auto not_built_in, NotBuiltIn(folders));
  StoreTable table;
  const auto add = [&](const std::vector<proto::TunedConfigs>& files,
                       const char* layer) {
    for (const proto::TunedConfigs& file : files) {
      if (!tracker::MatchesWhole(*op, file.operator_name())) continue;
      for (const auto& tuned : file.tuned()) table.Add(file, tuned, layer);
      for (const auto& best : file.best()) table.Add(file, best, layer);
    }
  };
  add(known.Contents(tuning::StoreLayer::kOverlay), "overlay");
  add(known.Contents(tuning::StoreLayer::kCheckedIn), "checked in");
  add(not_built_in, "checked in, not built in");
  std::cout << table.Format(absl::GetFlag(FLAGS_format));
  OPTRAIL_RETURN_IF_ERROR(NoteNotBuiltIn(folders, *op));
  return 0;
}

// The table that `store diff` prints for programs has a row for each entry that
// differs.
class DifferenceTable {
 public:
  void Add(const tuning::StoreDifference& difference) {
    if (difference.is_best) {
      AddRow(difference, difference.overlay_best,
             ConfigOf(difference.checked_in_best),
             ConfigOf(difference.overlay_best),
             difference.overlay_best.entries(0).backend());
    } else {
      AddRow(difference, difference.overlay, difference.checked_in.config(),
             difference.overlay.config(), difference.overlay.backend());
    }
  }

  std::string Format(OutputFormat format) const {
    return table_.Format(format);
  }

 private:
  static std::string ConfigOf(const proto::BestBackend& best) {
    return best.entries_size() > 0 ? best.entries(0).config() : "";
  }

  template <typename Entry>
  void AddRow(const tuning::StoreDifference& difference, const Entry& entry,
              const std::string& checked_in, const std::string& overlay,
              const std::string& backend) {
    const absl::optional<bool> changes = tuning::ChangesNumerics(difference);
    table_.AddRow(
        {difference.operator_name, difference.hardware_id, entry.shape(),
         Cell::Integer(entry.threads()),
         tuning::CacheModeName(entry.cache_mode()),
         backend.empty() ? tuning::DeviceName(difference.device_kind) : backend,
         entry.objective().empty() ? "time" : entry.objective(),
         difference.is_best ? "best backend" : "tuned",
         difference.is_new ? Cell::None() : Cell(checked_in), overlay,
         !changes.has_value() ? Cell::None()
                              : Cell(*changes ? "other bits" : "the same bits"),
         difference.path.empty() ? Cell::None() : Cell(difference.path)});
  }

  Table table_{{{"operator"},
                {"hardware"},
                {"shape"},
                {"threads", Align::kRight},
                {"cache"},
                {"backend"},
                {"for", Align::kLeft, "objective"},
                {"entry"},
                {"checked in"},
                {"overlay"},
                {"numerics"},
                {"file"}}};
};

// The command that finds a config with the bits of the default for an entry.
std::string RetuneInClass(const tuning::StoreDifference& difference) {
  const proto::TunedConfig& entry = difference.overlay;
  std::string text =
      absl::StrCat("optrail tune --op=", difference.operator_name,
                   " --shape=", QuoteForShell(entry.shape()));
  if (entry.threads() != 1) {
    absl::StrAppend(&text, " --threads=", entry.threads());
  }
  if (difference.device_kind != proto::CPU) {
    absl::StrAppend(&text,
                    " --device=", tuning::DeviceName(difference.device_kind));
  }
  if (!entry.backend().empty()) {
    absl::StrAppend(&text, " --backend=", entry.backend());
  }
  if (entry.cache_mode() == proto::COLD)
    absl::StrAppend(&text, " --cache=cold");
  if (entry.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    absl::StrAppend(&text,
                    " --launch=", tuning::LaunchModeName(entry.launch_mode()));
  }
  return absl::StrCat(text, " --retune --numerics=class-of-default");
}

// Says what --numerics=same found. Returns the exit code.
int JudgeNumerics(const std::vector<const tuning::StoreDifference*>& tuned) {
  constexpr size_t kMostCommands = 5;
  int changed = 0, unknown = 0;
  std::vector<std::string> next;
  for (const tuning::StoreDifference* difference : tuned) {
    const absl::optional<bool> changes = tuning::ChangesNumerics(*difference);
    if (changes.has_value() && !*changes) continue;
    changed += changes.has_value();
    unknown += !changes.has_value();
    next.push_back(RetuneInClass(*difference));
  }
  if (next.empty()) return 0;
  std::vector<std::string> texts;
  if (changed > 0) {
    texts.push_back(absl::StrCat(
        changed, changed == 1 ? " config changes" : " configs change",
        " the bits of results"));
  }
  if (unknown > 0) {
    texts.push_back(absl::StrCat("of ", unknown,
                                 unknown == 1 ? " config" : " configs",
                                 " nobody knows whether it does"));
  }
  std::cerr << absl::StrJoin(texts, ", ") << "; next:\n";
  for (size_t i = 0; i < next.size() && i < kMostCommands; ++i) {
    std::cerr << "  " << SanitiseText(next[i]) << "\n";
  }
  if (next.size() > kMostCommands) {
    std::cerr << "  and so on, for " << next.size() - kMostCommands
              << " more\n";
  }
  return ToInt(changed > 0 ? ExitCode::kCheckFailed : ExitCode::kNotEnoughData);
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
  OPTRAIL_RETURN_IF_ERROR(NoteNotBuiltIn(promotion.folders, RE2(".*")));
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
  OPTRAIL_RETURN_IF_ERROR(NoteNotBuiltIn(folders, *op));
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
  OPTRAIL_RETURN_IF_ERROR(NoteNotBuiltIn(folders, *op));
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
      {"retune", "Tune entries that fail, in the time that is left."},
      {"dry_run",
       "check lists entries and measures nothing; promote --workload judges "
       "and moves nothing."}};
  command.parts = {
      Part("show", "", "Lists tuned configs and the best backends.",
           {"store", "tree", "op", "format"}, 0, 0, ShowStore),
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
