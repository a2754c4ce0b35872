#include "tracker/import/import_command.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tracker/command/command_support.h"
#include "tracker/history/record.h"
#include "tracker/import/import.h"
#include "tracker/series/commit.h"

namespace optrail::tracker {
namespace {

absl::StatusOr<proto::Commit> CommitOf(const ImportCommand& options) {
  proto::Commit commit;
  if (options.commit.empty()) {
    std::string note;
    commit = HeadCommit(options.common.workspace, &note);
    if (!note.empty()) std::cerr << "note: " << note << "\n";
    // The changes of this work tree need not be what was measured.
    commit.set_dirty(false);
  } else {
    OPTRAIL_ASSIGN_OR_RETURN(
        commit, CommitNamed(options.common.workspace, options.commit));
  }
  if (!options.branch.empty()) commit.set_branch(options.branch);
  return commit;
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
  OPTRAIL_ASSIGN_OR_RETURN(import.commit, CommitOf(options));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Run> runs,
                           ImportFiles(options.files, import));
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
               {"processes", Align::kRight}});
  OPTRAIL_ASSIGN_OR_RETURN(const History history,
                           History::Open(options.common.history));
  for (const proto::Run& run : runs) {
    int processes = 0;
    for (const proto::BenchmarkResult& result : run.results()) {
      processes = std::max(processes, result.measurements_size());
    }
    if (!options.dry_run) OPTRAIL_RETURN_IF_ERROR(history.AppendRun(run));
    table.AddRow({run.run_id(), run.suite(), CommitText(run.commit()),
                  run.hardware().id(), Cell::Integer(run.results_size()),
                  Cell::Integer(processes)});
  }
  PrintTable(table, options.common.format, out);
  std::cerr << (options.dry_run ? "dry run: nothing was recorded in "
                                : "recorded in ")
            << history.dir() << "\n";
  return 0;
}

}  // namespace optrail::tracker
