#include "tracker/import/import.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tracker/history/history.h"
#include "tracker/import/import_google_benchmark.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::string FormatNames() {
  return absl::StrJoin(Importers(), ", ",
                       [](std::string* out, const Importer* importer) {
                         absl::StrAppend(out, importer->format());
                       });
}

absl::StatusOr<const Importer*> ImporterFor(const ImportedFile& file,
                                            const ImportOptions& options) {
  for (const Importer* importer : Importers()) {
    if (options.format.empty() ? importer->Recognises(file.content)
                               : importer->format() == options.format) {
      return importer;
    }
  }
  if (!options.format.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "format '", options.format, "': expected one of ", FormatNames()));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, file.content.empty() ? ": the file is empty" : "",
      ": the format is not recognised, expected one of ", FormatNames()));
}

absl::Status CheckHardwareId(const std::string& id) {
  for (const char c : id) {
    if (absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-') continue;
    return absl::InvalidArgumentError(
        absl::StrCat("hardware id '", id, "': expected only a-z, 0-9 and -"));
  }
  return absl::OkStatus();
}

// Adds the processes of `other` to `run`.
absl::Status AddProcesses(const proto::Run& other, const std::string& path,
                          proto::Run* run) {
  if (other.hardware().id() != run->hardware().id()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is from hardware '", other.hardware().id(),
                     "', the files before from '", run->hardware().id(),
                     "'; give one id if it is the same machine"));
  }
  std::map<std::string, int> index;
  for (int i = 0; i < run->results_size(); ++i) {
    index[CanonicalText(run->results(i).key())] = i;
  }
  for (const proto::BenchmarkResult& result : other.results()) {
    const auto found = index.find(CanonicalText(result.key()));
    if (found == index.end()) {
      *run->add_results() = result;
      continue;
    }
    proto::BenchmarkResult* mine = run->mutable_results(found->second);
    mine->mutable_measurements()->MergeFrom(result.measurements());
    if (tuning::Severity(result.outcome()) >
        tuning::Severity(mine->outcome())) {
      mine->set_outcome(result.outcome());
      mine->set_detail(result.detail());
    }
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<const Importer*>& Importers() {
  static const auto* const importers =
      new std::vector<const Importer*>{GoogleBenchmarkImporter()};
  return *importers;
}

absl::StatusOr<std::vector<proto::Run>> ImportContents(
    const std::vector<ImportedFile>& files, const ImportOptions& options) {
  if (files.empty()) {
    return absl::InvalidArgumentError("import: expected at least one file");
  }
  OPTRAIL_RETURN_IF_ERROR(CheckHardwareId(options.hardware_id));
  std::vector<proto::Run> runs;
  for (const ImportedFile& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(const Importer* importer,
                             ImporterFor(file, options));
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, importer->Parse(file, options));
    if (!options.prefix.empty()) {
      for (proto::BenchmarkResult& result : *run.mutable_results()) {
        result.mutable_key()->set_operator_name(
            absl::StrCat(options.prefix, result.key().operator_name()));
      }
    }
    if (options.files_are_processes && !runs.empty()) {
      OPTRAIL_RETURN_IF_ERROR(AddProcesses(run, file.path, &runs[0]));
      continue;
    }
    run.set_suite(options.suite.empty() ? std::string(FileNameOf(file.path))
                                        : options.suite);
    *run.mutable_commit() = options.commit;
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    runs.push_back(std::move(run));
  }
  return runs;
}

absl::StatusOr<std::vector<proto::Run>> ImportFiles(
    const std::vector<std::string>& paths, const ImportOptions& options) {
  std::vector<ImportedFile> files;
  for (const std::string& path : paths) {
    OPTRAIL_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    files.push_back({path, std::move(content)});
  }
  return ImportContents(files, options);
}

}  // namespace optrail::tracker
