#include "tracker/import/import.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "tracker/history/history.h"
#include "tracker/import/importers.h"
#include "tracker/import/suite_name.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// In the order in which they are asked whether they recognise a file.
constexpr const Importer* kImporters[] = {
    &kPytestBenchmark, &kNvbench,     &kBenchmarkDotNet, &kAsv, &kHyperfine,
    &kCriterion,       &kBencher,     &kGoogleBenchmark, &kJmh, &kCatch2,
    &kGoBench,         &kNameValueCsv};

std::string FormatNames() {
  return absl::StrJoin(kImporters, ", ",
                       [](std::string* out, const Importer* importer) {
                         absl::StrAppend(out, importer->format);
                       });
}

absl::StatusOr<const Importer*> ImporterFor(const ImportedFile& file,
                                            const ImportOptions& options) {
  for (const Importer* importer : kImporters) {
    if (options.format.empty() ? importer->recognises(file.content)
                               : importer->format == options.format) {
      return importer;
    }
  }
  if (!options.format.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "format '", options.format, "': expected one of ", FormatNames()));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.path, file.content.empty() ? ": the file is empty" : "",
      ": the format is not recognised, expected one of ", FormatNames(),
      "; next: optrail help import, which names a CSV that any program can "
      "write"));
}

// One run, without run_id. The suite is that of the program that the file
// names, or empty; so is the commit.
absl::StatusOr<proto::Run> Read(const ImportedFile& file,
                                const ImportOptions& options) {
  OPTRAIL_ASSIGN_OR_RETURN(const Importer* importer,
                           ImporterFor(file, options));
  proto::Run run;
  run.set_source(importer->format);
  run.set_started_unix_ns(options.default_started_unix_ns);
  run.mutable_hardware()->set_device_kind(proto::CPU);
  run.mutable_hardware()->set_id("imported");
  CollectedResults results;
  OPTRAIL_RETURN_IF_ERROR(importer->read(file, results, run));
  OPTRAIL_RETURN_IF_ERROR(results.CheckTimes(file.path));
  if (!options.hardware_id.empty()) {
    run.mutable_hardware()->set_id(options.hardware_id);
  }
  results.MoveTo(&run);
  return run;
}

absl::Status CheckHardwareId(const std::string& id) {
  for (const char c : id) {
    if (absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-') continue;
    return absl::InvalidArgumentError(
        absl::StrCat("hardware id '", id, "': expected only a-z, 0-9 and -"));
  }
  return absl::OkStatus();
}

// Adds the processes of `other` to `run`; `programs` says from which program a
// benchmark was read before.
absl::Status AddProcesses(const proto::Run& other, const std::string& path,
                          std::map<std::string, std::string>* programs,
                          proto::Run* run) {
  if (other.hardware().id() != run->hardware().id()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is from hardware '", other.hardware().id(),
                     "', the files before from '", run->hardware().id(),
                     "'; give one id if it is the same machine"));
  }
  for (const proto::BenchmarkResult& result : other.results()) {
    const auto [program, is_new] =
        programs->emplace(result.key().operator_name(), other.suite());
    if (is_new || program->second == other.suite()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": benchmark '", result.key().operator_name(), "' of program '",
        other.suite(), "' has the name of one of '", program->second,
        "': expected names that differ; --prefix tells imports apart, a "
        "folder for each program below {out_dir} does for --run"));
  }
  AppendProcesses(other, run);
  return absl::OkStatus();
}

std::string SuiteOf(const proto::Run& run, const std::string& path,
                    const ImportOptions& options) {
  if (!options.suite.empty()) return options.suite;
  if (!run.suite().empty()) return run.suite();
  const std::string name = StableSuiteName(path);
  return name.empty() ? "imported" : name;
}

// Removes the mark that some editors and shells put before UTF-8.
// InvalidArgument, with the line, for other encodings.
absl::Status MakeUtf8(const std::string& path, std::string* content) {
  constexpr absl::string_view kMark = "\xef\xbb\xbf";
  if (absl::StartsWith(*content, kMark)) content->erase(0, kMark.size());
  if (IsValidUtf8(*content)) return absl::OkStatus();
  const bool is_utf16 = absl::StartsWith(*content, "\xff\xfe") ||
                        absl::StartsWith(*content, "\xfe\xff");
  size_t place = 0;
  while (true) {
    const CodePoint next =
        FirstCodePoint(absl::string_view(*content).substr(place));
    if (!next.valid) break;
    place += next.size_bytes;
  }
  const auto line =
      1 + std::count(content->begin(), content->begin() + place, '\n');
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", line, ": ",
      is_utf16 ? "is UTF-16" : "has a byte that is no UTF-8",
      ", expected UTF-8; next: iconv -f ", is_utf16 ? "UTF-16" : "ISO-8859-1",
      " -t UTF-8 ", QuoteForShell(path), " > utf8-",
      path.substr(path.rfind('/') + 1)));
}

// One file under two names is one process.
absl::Status CheckEachIsGivenOnce(const std::vector<std::string>& paths) {
  std::map<std::pair<dev_t, ino_t>, std::string> given;
  for (const std::string& path : paths) {
    struct stat file;
    if (stat(path.c_str(), &file) != 0) continue;  // reading it says why
    const auto [found, is_new] =
        given.emplace(std::make_pair(file.st_dev, file.st_ino), path);
    if (is_new || S_ISFIFO(file.st_mode)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is the same file as ", found->second,
                     ": expected each process once"));
  }
  return absl::OkStatus();
}

}  // namespace

void AppendProcesses(const proto::Run& other, proto::Run* run) {
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
}

absl::StatusOr<std::vector<proto::Run>> ImportContents(
    const std::vector<ImportedFile>& files, const ImportOptions& options) {
  if (files.empty()) {
    return absl::InvalidArgumentError("import: expected at least one file");
  }
  OPTRAIL_RETURN_IF_ERROR(CheckHardwareId(options.hardware_id));
  std::vector<proto::Run> runs;
  std::map<std::string, std::string> programs;  // by benchmark
  std::map<std::string, std::string> digests;   // path by content
  for (const ImportedFile& file : files) {
    const auto [same, is_new] =
        digests.emplace(Fingerprint(file.content), file.path);
    if (!is_new && !options.files_are_processes) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path, ": holds the same as ", same->second,
          ": expected each run once; --files_are_processes takes the files for "
          "processes of one run, which may agree"));
    }
    OPTRAIL_ASSIGN_OR_RETURN(proto::Run run, Read(file, options));
    if (!options.prefix.empty() || !file.prefix.empty()) {
      for (proto::BenchmarkResult& result : *run.mutable_results()) {
        result.mutable_key()->set_operator_name(absl::StrCat(
            options.prefix, file.prefix, result.key().operator_name()));
      }
    }
    if (options.files_are_processes && !runs.empty()) {
      OPTRAIL_RETURN_IF_ERROR(
          AddProcesses(run, file.path, &programs, &runs[0]));
      runs[0].add_source_digests(Fingerprint(file.content));
      continue;
    }
    for (const proto::BenchmarkResult& result : run.results()) {
      programs[result.key().operator_name()] = run.suite();
    }
    run.add_source_digests(Fingerprint(file.content));
    if (!options.commit.id().empty() || !options.commit.branch().empty()) {
      *run.mutable_commit() = options.commit;
    }
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    runs.push_back(std::move(run));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].results_size() > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        files[i].path,
        ": holds no benchmark, expected at least one; next: "
        "look whether a filter of the program that wrote it left none"));
  }
  // Dates in files go by seconds: what ties keeps the order of the files.
  std::set<int64_t> started;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].set_suite(SuiteOf(runs[i], files[i].path, options));
    while (!started.insert(runs[i].started_unix_ns()).second) {
      runs[i].set_started_unix_ns(runs[i].started_unix_ns() + 1);
    }
  }
  return runs;
}

absl::StatusOr<std::vector<proto::Run>> ImportFiles(
    const std::vector<std::string>& paths, const ImportOptions& options) {
  OPTRAIL_RETURN_IF_ERROR(CheckEachIsGivenOnce(paths));
  std::vector<ImportedFile> files;
  for (const std::string& path : paths) {
    OPTRAIL_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
    OPTRAIL_RETURN_IF_ERROR(MakeUtf8(path, &content));
    files.push_back({path, std::move(content)});
  }
  return ImportContents(files, options);
}

}  // namespace optrail::tracker
