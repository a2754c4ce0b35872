#include "suites/bench/bench_journal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"

namespace optrail::suites {
namespace {

constexpr char kSuffix[] = ".journal";
// An interrupted bench that nobody goes on with is forgotten after a month.
constexpr int64_t kForgottenAfterNs = int64_t{30} * 24 * 3600 * 1'000'000'000;

std::vector<int> BenchmarksOf(
    const proto::BenchJournalRecord::Readings& readings) {
  std::vector<int> benchmarks;
  for (const auto& reading : readings.readings()) {
    benchmarks.push_back(reading.benchmark());
  }
  return benchmarks;
}

// Those that cannot be read stay: what they are is not known.
void RemoveForgotten(const std::string& folder, int64_t now_unix_ns) {
  const auto paths = ListRecursively(folder, kSuffix);
  if (!paths.ok()) return;
  for (const std::string& path : *paths) {
    FileInfo info;
    if (FileSystem::Real()->Stat(path, &info) != 0 || !info.is_regular) {
      continue;  // a pipe would have to be waited for
    }
    const auto contents = ReadJournal(path);
    proto::BenchJournalRecord first;
    if (contents.ok() && !contents->records.empty() &&
        first.ParseFromString(contents->records[0]) && first.has_header() &&
        now_unix_ns - first.header().started_unix_ns() > kForgottenAfterNs) {
      RemoveFile(path).IgnoreError();
    }
  }
}

}  // namespace

absl::Status BenchJournal::Read(const std::string& record) {
  proto::BenchJournalRecord parsed;
  if (!parsed.ParseFromString(record)) {
    return absl::DataLossError(
        absl::StrCat(journal_->path(), ": a record is no BenchJournalRecord"));
  }
  if (parsed.has_header()) header_ = parsed.header();
  if (!parsed.has_readings()) return absl::OkStatus();
  const auto& readings = parsed.readings();
  found_ += readings.readings_size();
  elapsed_ns_ = std::max(elapsed_ns_, readings.elapsed_ns());
  kept_[{readings.round(), BenchmarksOf(readings)}] = readings;
  return absl::OkStatus();
}

absl::Status BenchJournal::Load(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(journal_, Journal::Open(path));
  for (const std::string& record : journal_->records()) {
    OPTRAIL_RETURN_IF_ERROR(Read(record));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BenchJournal>> BenchJournal::Open(
    const std::string& folder, const std::string& identity,
    const proto::BenchJournalRecord::Header& header, bool resume) {
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  RemoveForgotten(folder, header.started_unix_ns());
  const std::string path =
      JoinPath(folder, absl::StrCat(Fingerprint(identity), kSuffix));
  std::unique_ptr<BenchJournal> bench(new BenchJournal);
  const absl::Status opened = bench->Load(path);
  if (opened.ok() && resume && bench->found_ > 0) return bench;
  const bool damaged =
      absl::IsDataLoss(opened) || absl::IsInvalidArgument(opened);
  if (!opened.ok() && (resume || !damaged)) return opened;
  // Nobody goes on from it, damaged or not.
  if (damaged || !bench->journal_->records().empty()) {
    OPTRAIL_RETURN_IF_ERROR(RemoveFile(path));
    OPTRAIL_ASSIGN_OR_RETURN(bench->journal_, Journal::Open(path));
    bench->kept_.clear();
    bench->elapsed_ns_ = 0;
  }
  bench->header_ = header;
  proto::BenchJournalRecord first;
  *first.mutable_header() = header;
  OPTRAIL_RETURN_IF_ERROR(
      bench->journal_->AppendAndSync(first.SerializeAsString()));
  return bench;
}

const proto::BenchJournalRecord::Readings* BenchJournal::Find(
    int round, const std::vector<int>& benchmarks) const {
  const auto found = kept_.find({round, benchmarks});
  return found == kept_.end() ? nullptr : &found->second;
}

absl::Status BenchJournal::Keep(
    const proto::BenchJournalRecord::Readings& readings) {
  proto::BenchJournalRecord record;
  *record.mutable_readings() = readings;
  return journal_->AppendAndSync(record.SerializeAsString());
}

absl::Status BenchJournal::Remove() {
  const std::string path = journal_->path();
  journal_.reset();
  return RemoveFile(path);
}

}  // namespace optrail::suites
