#ifndef OPTRAIL_TRACKER_IMPORT_IMPORT_H_
#define OPTRAIL_TRACKER_IMPORT_IMPORT_H_

// Importers read the results of other tools as runs. A format is one file that
// implements Importer and one line in Importers().
//
//   ImportOptions options;
//   options.hardware_id = "ci-large";
//   OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> runs,
//                            ImportFiles({"a.json", "b.json"}, options));
//
// An importer does not write into a history and does not look at git: commit
// and branch come from the options.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct ImportOptions {
  // "" recognises the format by content.
  std::string format;

  // The stable id of the machine, [a-z0-9-]+. Empty: made from what the file
  // says of cores and caches ("imported-8c-32m"), never from a host name or
  // clock.
  std::string hardware_id;

  // Name of the suite; empty: the name of the (first) file.
  std::string suite;

  // Put before the name of each benchmark: tells benchmarks of two programs
  // apart that have the same name, which would share a series.
  std::string prefix;

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
};

class Importer {
 public:
  virtual ~Importer() = default;

  virtual absl::string_view format() const = 0;

  // Whether `content` looks like this format; cheap.
  virtual bool Recognises(absl::string_view content) const = 0;

  // One run with one Measurement (one process) per benchmark, without run_id.
  // InvalidArgument names file, benchmark and field, what was found and what
  // was expected.
  virtual absl::StatusOr<proto::Run> Parse(
      const ImportedFile& file, const ImportOptions& options) const = 0;
};

// Every importer there is.
const std::vector<const Importer*>& Importers();

// Reads and parses; run ids are set. With files_are_processes one run, in which
// a benchmark has one Measurement per file.
absl::StatusOr<std::vector<proto::Run>> ImportFiles(
    const std::vector<std::string>& paths, const ImportOptions& options);

// The same on contents already read.
absl::StatusOr<std::vector<proto::Run>> ImportContents(
    const std::vector<ImportedFile>& files, const ImportOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_IMPORT_H_
