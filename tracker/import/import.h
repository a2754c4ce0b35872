#ifndef OPTRAIL_TRACKER_IMPORT_IMPORT_H_
#define OPTRAIL_TRACKER_IMPORT_IMPORT_H_

// Reads the results of other tools as runs. A format is one file that holds an
// Importer (importers.h) and one place in the list of import.cc.
//
//   ImportOptions options;
//   options.hardware_id = "ci-large";
//   OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
//                            ImportFiles({"a.json", "b.json"}, options));
//
// It does not write into a history and does not look at git: commit
// and branch come from the options, or from the file where it names them.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct ImportOptions {
  // "" recognises the format by content.
  std::string format;

  // The stable id of the machine, [a-z0-9-]+. Empty: made from what the file
  // says of cores and caches ("imported-8c-32m"), never from a host name or
  // clock.
  std::string hardware_id;

  // Name of the suite; empty: what the file says of the program that wrote it,
  // else the name of the (first) file without what changes from commit to
  // commit (suite_name.h).
  std::string suite;

  // Put before the name of each benchmark: tells benchmarks of two programs
  // apart that have the same name, which would share a series.
  std::string prefix;

  // Empty: what the file says, if it does.
  proto::Commit commit;

  // The files are processes of one run instead of one run each. Repetitions
  // within a file share a process and are its samples.
  bool files_are_processes = false;

  // When the file does not say.
  int64_t default_started_unix_ns = 0;
};

struct ImportedFile {
  std::string path;
  std::string content;
  std::string prefix = "";  // as that of the options, for this file alone
};

// Reads and parses; run ids and source_digests are set. With
// files_are_processes one run, in which a benchmark has a Measurement for each
// process of each file. InvalidArgument where one file is given twice, where
// two runs have the same content and where two programs name a benchmark alike.
// Processes may have the same content: counts of instructions or bytes agree.
absl::StatusOr<std::vector<proto::Run>> ImportFiles(
    const std::vector<std::string>& paths, const ImportOptions& options);

// Adds the processes of `other`, and the benchmarks that `run` lacks, to `run`.
// A benchmark that failed in either has failed.
void AppendProcesses(const proto::Run& other, proto::Run* run);

// The same as ImportFiles on contents already read.
absl::StatusOr<std::vector<proto::Run>> ImportContents(
    const std::vector<ImportedFile>& files, const ImportOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_IMPORT_H_
