#include "tracker/import/import_command.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "tracker/command/command_support.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/import/import.h"
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

// Digest of a file -> the run that holds it.
absl::StatusOr<std::map<std::string, RunInfo>> ImportedBefore(
    const History& history) {
  std::map<std::string, RunInfo> imported;
  OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns({}));
  for (const RunInfo& run : list.runs) {
    for (const std::string& digest : run.header.source_digests()) {
      imported.emplace(digest, run);
    }
  }
  return imported;
}

// The run that holds all of what `run` was made from; null if none of it is
// there. Some of it, or all of it at another commit than the one that was
// named, is an error.
absl::StatusOr<const RunInfo*> Twin(
    const ImportCommand& options, const proto::Run& run,
    const std::map<std::string, RunInfo>& imported) {
  const RunInfo* twin = nullptr;
  int known = 0;
  for (const std::string& digest : run.source_digests()) {
    const auto found = imported.find(digest);
    if (found == imported.end()) continue;
    ++known;
    twin = &found->second;
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
  if (!options.commit.empty() &&
      twin->header.commit().id() != run.commit().id()) {
    return absl::AlreadyExistsError(
        absl::StrCat("already imported as run ", twin->id(), " at commit ",
                     CommitText(twin->header.commit()), ", not at ",
                     CommitText(run.commit()), kNext));
  }
  return twin;
}

}  // namespace

absl::StatusOr<int> RunImport(const ImportCommand& options, std::ostream& out) {
  ImportOptions import;
  import.format = options.file_format;
  import.hardware_id = options.hardware_id;
  import.suite = options.suite;
  import.prefix = options.prefix;
  import.files_are_processes = options.files_are_processes;
  import.default_started_unix_ns = NowUnixNs(options.common);
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
                           ImportFiles(options.files, import));
  std::set<std::string> said;
  for (proto::Run& run : runs) {
    OPTRAIL_RETURN_IF_ERROR(SetCommit(options, &said, &run));
  }
  // All are checked before the first is recorded.
  for (size_t i = 0; i < runs.size(); ++i) {
    const absl::Status valid = ValidateRun(runs[i]);
    if (!valid.ok()) {
      return absl::Status(
          valid.code(), absl::StrCat(options.files[i], ": ", valid.message()));
    }
  }
  Table table({{"run", Align::kLeft, "run_id", Clip::kNever},
               {"suite", Align::kLeft, "", Clip::kNever},
               {"commit", Align::kLeft, "", Clip::kNever},
               {"hardware", Align::kLeft, "", Clip::kNever},
               {"benchmarks", Align::kRight},
               {"processes", Align::kRight},
               {"imported"}});
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  std::map<std::string, RunInfo> imported;
  if (!options.again) {
    OPTRAIL_ASSIGN_OR_RETURN(imported, ImportedBefore(history));
  }
  std::vector<const RunInfo*> twins;
  for (const proto::Run& run : runs) {
    OPTRAIL_ASSIGN_OR_RETURN(const RunInfo* twin, Twin(options, run, imported));
    twins.push_back(twin);
  }
  int added = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const proto::Run& run = runs[i];
    int processes = 0;
    for (const proto::BenchmarkResult& result : run.results()) {
      processes = std::max(processes, result.measurements_size());
    }
    const RunInfo* twin = twins[i];
    if (twin == nullptr) {
      if (!options.dry_run) OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
      ++added;
    }
    table.AddRow(
        {twin == nullptr ? run.run_id() : twin->id(),
         twin == nullptr ? run.suite() : twin->header.suite(),
         CommitText(twin == nullptr ? run.commit() : twin->header.commit()),
         run.hardware().id(), Cell::Integer(run.results_size()),
         Cell::Integer(processes), twin == nullptr ? "now" : "already"});
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
