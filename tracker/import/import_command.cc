#include "tracker/import/import_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/import/import.h"
#include "tracker/import/machine_ids.h"
#include "tracker/series/commit.h"

namespace optrail::tracker {
namespace {

void SayOnce(const std::string& note, std::set<std::string>* said) {
  if (!note.empty() && said->insert(note).second) {
    std::cerr << "note: " << EscapeForTerminal(note) << "\n";
  }
}

// The commit of a run: the one that was named, else what its file says, else
// the one that is checked out.
absl::Status SetCommit(const ImportCommand& options,
                       std::set<std::string>* said, proto::Run* run) {
  proto::Commit& commit = *run->mutable_commit();
  std::string note;
  const proto::Commit of_file = commit;
  const std::string name =
      options.commit.empty() ? of_file.id() : options.commit;
  if (name.empty()) {
    commit = HeadCommit(options.common.workspace, &note);
    // The changes of this work tree need not be what was measured.
    commit.set_dirty(false);
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(
        commit, CommitNamed(options.common.workspace, name, &note));
    if (options.commit.empty()) {
      commit.set_dirty(of_file.dirty());
      if (commit.branch().empty() && !of_file.branch().empty()) {
        commit.set_branch(of_file.branch());
        note.clear();
      }
    }
  }
  if (!options.branch.empty()) {
    commit.set_branch(options.branch);
  } else {
    SayOnce(note, said);
  }
  return absl::OkStatus();
}

// What the history holds of the files, so that the same evidence is not counted
// twice.
class ImportedBefore {
 public:
  static absl::StatusOr<ImportedBefore> In(const History& history) {
    ImportedBefore before;
    OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns({}));
    for (const RunInfo& run : list.runs) {
      for (const std::string& digest : run.header.source_digests()) {
        before.runs_.emplace(digest, run);
      }
    }
    return before;
  }

  // The run that holds all of what `run` was made from; null if none of it is
  // there. A file that says when it was measured is the same evidence wherever
  // it is imported; of two others that are equal, such as counts of
  // instructions, only those of one commit and hardware are. Some of the
  // files, or all of them at another commit than the one that was named, is an
  // error.
  absl::StatusOr<const RunInfo*> Twin(const ImportCommand& options,
                                      const proto::Run& run,
                                      bool is_dated) const {
    const RunInfo* twin = nullptr;
    int known = 0;
    for (const std::string& digest : run.source_digests()) {
      const RunInfo* found = Find(options, digest, run, is_dated);
      if (found == nullptr) continue;
      ++known;
      twin = found;
    }
    if (twin == nullptr) return nullptr;
    constexpr absl::string_view kNext =
        "; the same processes twice would count as twice the evidence; --again "
        "imports them all the same";
    if (known < run.source_digests_size()) {
      return absl::AlreadyExistsError(
          absl::StrCat(known, " of the ", run.source_digests_size(),
                       " files are in run ", twin->id(), kNext));
    }
    const proto::Run& there = twin->header;
    for (const auto& [given, is, asked] :
         {std::make_tuple(options.commit, CommitText(there.commit()),
                          CommitText(run.commit())),
          {options.hardware_id, there.hardware().id(), run.hardware().id()},
          {options.suite, there.suite(), run.suite()}}) {
      if (given.empty() || is == asked) continue;
      return absl::AlreadyExistsError(absl::StrCat("already imported as run ",
                                                   twin->id(), " of ", is,
                                                   ", not of ", asked, kNext));
    }
    return twin;
  }

 private:
  const RunInfo* Find(const ImportCommand& options, const std::string& digest,
                      const proto::Run& run, bool is_dated) const {
    const RunInfo* found = nullptr;
    const auto [begin, end] = runs_.equal_range(digest);
    for (auto place = begin; place != end; ++place) {
      const proto::Run& there = place->second.header;
      if (there.commit().id() == run.commit().id() &&
          there.hardware().id() == run.hardware().id() &&
          (options.suite.empty() || there.suite() == run.suite())) {
        return &place->second;
      }
      if (is_dated) found = &place->second;
    }
    return found;
  }

  std::multimap<std::string, RunInfo> runs_;  // by digest of a file
};

// The runs of the files, complete and checked before the first is recorded.
absl::StatusOr<std::vector<proto::Run>> ReadRuns(const ImportCommand& options,
                                                 const History& history,
                                                 int64_t now_unix_ns) {
  ImportOptions import;
  import.format = options.file_format;
  import.hardware_id = options.hardware_id;
  import.suite = options.suite;
  import.prefix = options.prefix;
  import.files_are_processes = options.files_are_processes;
  import.default_started_unix_ns = now_unix_ns;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
                           ImportFiles(options.files, import));
  OPTRAIL_ASSIGN_OR_RETURN(
      const MachineIds machine,
      MachineIds::Of(history, options.hardware_id.empty() ? options.machine
                                                          : proto::Hardware()));
  std::set<std::string> said;
  for (size_t i = 0; i < runs.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(SetCommit(options, &said, &runs[i]));
    SayOnce(machine.Use(&runs[i]), &said);
    if (IsInTheFuture(runs[i].started_unix_ns(), now_unix_ns)) {
      SayOnce(absl::StrCat(options.files[i], ": is dated ",
                           TimeText(runs[i].started_unix_ns()),
                           " UTC, in the future: was a clock wrong? Without a "
                           "commit's position it is never the latest run"),
              &said);
    }
    absl::Status valid = ValidateRun(runs[i]);
    if (valid.ok()) valid = CheckRunNames(runs[i]);
    if (!valid.ok()) {
      return absl::Status(
          valid.code(), absl::StrCat(options.files[i], ": ", valid.message()));
    }
    const auto& digests = runs[i].source_digests();
    const std::set<std::string> distinct(digests.begin(), digests.end());
    if (static_cast<int>(distinct.size()) < digests.size()) {
      SayOnce(absl::StrCat(digests.size(), " files hold ", distinct.size(),
                           " different contents: each file counts as a process "
                           "of its own"),
              &said);
    }
  }
  return runs;
}

int ProcessesOf(const proto::Run& run) {
  int processes = 0;
  for (const proto::BenchmarkResult& result : run.results()) {
    processes = std::max(processes, result.measurements_size());
  }
  return processes;
}

// Importers take the time of the import where a file says none.
bool SaysWhen(const proto::Run& run, int64_t now_unix_ns, size_t runs) {
  return run.started_unix_ns() < now_unix_ns ||
         run.started_unix_ns() >= now_unix_ns + static_cast<int64_t>(runs);
}

}  // namespace

absl::StatusOr<int> RunImport(const ImportCommand& options, std::ostream& out) {
  for (const auto& [flag, name] : {std::make_pair("suite", options.suite),
                                   {"hardware", options.hardware_id},
                                   {"branch", options.branch},
                                   {"prefix", options.prefix}}) {
    OPTRAIL_RETURN_IF_ERROR(CheckName(flag, name));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  const int64_t now_unix_ns = NowUnixNs(options.common);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Run> runs,
                           ReadRuns(options, history, now_unix_ns));
  if (!options.dry_run) {
    OPTRAIL_RETURN_IF_ERROR(history.store().CheckIsWritable());
  }
  // Two imports of one file at once must not both find it new.
  OPTRAIL_ASSIGN_OR_RETURN(const auto lock, history.store().Lock());
  ImportedBefore before;
  if (!options.again) {
    OPTRAIL_ASSIGN_OR_RETURN(before, ImportedBefore::In(history));
  }
  std::vector<const RunInfo*> twins;
  for (const proto::Run& run : runs) {
    OPTRAIL_ASSIGN_OR_RETURN(
        const RunInfo* twin,
        before.Twin(options, run, SaysWhen(run, now_unix_ns, runs.size())));
    twins.push_back(twin);
  }
  Table table({{"run", Align::kLeft, "run_id", Clip::kNever},
               {"suite", Align::kLeft, "", Clip::kNever},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"benchmarks", Align::kRight},
               {"processes", Align::kRight},
               {"imported"}});
  std::set<std::string> said;
  int added = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_new = twins[i] == nullptr;
    if (is_new) {
      if (!options.dry_run) OPTRAIL_RETURN_IF_ERROR(history.AppendRun(runs[i]));
      ++added;
    }
    proto::Run shown = runs[i];
    if (!is_new) {
      OPTRAIL_ASSIGN_OR_RETURN(shown, history.ReadRun(twins[i]->id()));
    }
    if (shown.commit().id() != runs[i].commit().id()) {
      SayOnce(
          absl::StrCat("run ", shown.run_id(),
                       " holds these files at "
                       "commit ",
                       CommitText(shown.commit()), "; commit ",
                       CommitText(runs[i].commit()), " gets no run from them"),
          &said);
    }
    table.AddRow({shown.run_id(), shown.suite(), CommitText(shown.commit()),
                  shown.hardware().id(), Cell::Integer(shown.results_size()),
                  Cell::Integer(ProcessesOf(shown)),
                  is_new ? "now" : "already"});
  }
  PrintTable(table, options.common.format, out);
  if (added < static_cast<int>(runs.size())) {
    std::cerr << runs.size() - added
              << " already imported: the history holds the same files\n";
  }
  if (added > 0) {
    std::cerr << (options.dry_run ? "dry run: nothing was recorded in "
                                  : "recorded in ")
              << history.dir() << "\n";
  }
  return 0;
}

}  // namespace optrail::tracker
