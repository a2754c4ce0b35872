#include "tracker/history/index/history_index.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/history/history_files.h"
#include "tracker/history/index/sqlite.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kFileName = "index.sqlite";
constexpr absl::string_view kLockName = "index.lock";

// Raised when the tables or what is in them change their meaning.
constexpr int kSchemaVersion = 9;

// Fewer files are read as quickly as an index of them is made.
constexpr int kWorthAnIndex = 100;

constexpr char kCreate[] =
#include "tracker/history/index/index_tables.inc"
    ;

// An error where it is not.
absl::Status WorthAnIndex(const History& history) {
  if (IsStoreUrl(history.dir())) return absl::OkStatus();
  if (FileExists(JoinPath(history.dir(), kFileName))) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const RecordFiles found,
                           history.store().List("runs"));
  if (found.files.size() >= kWorthAnIndex) return absl::OkStatus();
  return absl::FailedPreconditionError("index: too few files to be worth one");
}

}  // namespace

absl::StatusOr<std::unique_ptr<HistoryIndex>> HistoryIndex::Open(
    const History& history) {
  auto index = std::unique_ptr<HistoryIndex>(new HistoryIndex(history));
  OPTRAIL_RETURN_IF_ERROR(index->OpenDatabase());
  OPTRAIL_RETURN_IF_ERROR(index->Update().status());
  return index;
}

absl::Status HistoryIndex::OpenDatabase() {
  db_.reset();
  headers_.clear();
  all_runs_.reset();
  read_only_ = false;
  OPTRAIL_ASSIGN_OR_RETURN(db_, history_.store().OpenIndex());
  kept_by_store_ = db_ != nullptr;
  if (kept_by_store_) {
    path_ = history_.dir();
    return absl::OkStatus();
  }
  // Only a real folder can hold a database, and a history that is not there
  // is not created by asking it.
  const std::string folder = history_.store().index_folder();
  if (folder.empty() || !FileExists(folder)) return OpenInMemory();
  absl::Status status = OpenForWriting();
  if (absl::IsDataLoss(status)) {
    notices_.push_back(absl::StrCat(path_, " is no index of this version and ",
                                    "is built again (", status.message(), ")"));
    OPTRAIL_RETURN_IF_ERROR(ThrowAway());
    status = OpenForWriting();
  }
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  if (CheckFiles().ok() && OpenUnchanging().ok()) return absl::OkStatus();
  notices_.push_back(
      absl::StrCat("the index is held in memory and built for every command: ",
                   status.message()));
  return OpenInMemory();
}

// SQLite would follow a link, and a history may hold one that leads to somebody
// else's file.
absl::Status HistoryIndex::CheckFiles() const {
  for (const char* ending : {"", "-wal", "-shm", "-journal"}) {
    const std::string path =
        absl::StrCat(JoinPath(history_.dir(), kFileName), ending);
    FileInfo info;
    if (FileSystem::Real()->LinkStat(path, &info) == 0 && !info.is_regular) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": it is no regular file"));
    }
  }
  return absl::OkStatus();
}

absl::Status HistoryIndex::OpenForWriting() {
  path_ = JoinPath(history_.dir(), kFileName);
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock,
                           FileLock::Wait(JoinPath(history_.dir(), kLockName)));
  OPTRAIL_RETURN_IF_ERROR(CheckFiles());
  OPTRAIL_ASSIGN_OR_RETURN(
      db_, OpenSqlite(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                 SQLITE_OPEN_NOMUTEX));
  // A power loss may cost the last transactions, never the whole.
  OPTRAIL_RETURN_IF_ERROR(
      db_->Execute("PRAGMA trusted_schema = OFF;"
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                   "PRAGMA cache_size = -262144;"));
  return UseSchema();
}

// An index in a folder that can't be written: nobody else writes it either, or
// it is found to be out of date.
absl::Status HistoryIndex::OpenUnchanging() {
  path_ = JoinPath(history_.dir(), kFileName);
  std::string uri = "file:";
  for (const char c : path_) {
    if (c == '?' || c == '#' || c == '%') {
      absl::StrAppend(&uri, "%", absl::BytesToHexString({&c, 1}));
    } else {
      uri.push_back(c);
    }
  }
  uri += "?immutable=1";
  OPTRAIL_ASSIGN_OR_RETURN(
      db_, OpenSqlite(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
                               SQLITE_OPEN_NOMUTEX));
  OPTRAIL_ASSIGN_OR_RETURN(Statement version,
                           db_->Prepare("PRAGMA user_version"));
  OPTRAIL_RETURN_IF_ERROR(version.Step().status());
  if (version.Int(0) != kSchemaVersion) {
    return absl::FailedPreconditionError("index: of another version");
  }
  read_only_ = true;
  return absl::OkStatus();
}

absl::Status HistoryIndex::OpenInMemory() {
  path_.clear();
  headers_.clear();
  all_runs_.reset();
  read_only_ = false;
  OPTRAIL_ASSIGN_OR_RETURN(
      db_, OpenSqlite(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                      SQLITE_OPEN_NOMUTEX));
  return UseSchema();
}

absl::Status HistoryIndex::UseSchema() {
  int64_t version = 0;
  {
    OPTRAIL_ASSIGN_OR_RETURN(Statement get,
                             db_->Prepare("PRAGMA user_version"));
    OPTRAIL_RETURN_IF_ERROR(get.Step().status());
    version = get.Int(0);
  }
  if (version == kSchemaVersion) return absl::OkStatus();
  if (version != 0) {
    return absl::DataLossError(absl::StrCat("its layout is version ", version,
                                            ", expected ", kSchemaVersion));
  }
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_writing()));
  OPTRAIL_RETURN_IF_ERROR(db_->Execute(kCreate));
  OPTRAIL_RETURN_IF_ERROR(db_->Execute(
      absl::StrCat("PRAGMA user_version = ", kSchemaVersion).c_str()));
  return transaction.Commit();
}

// Under the lock, so that no other process opens a part of it. Those that have
// it open go on with what they have.
absl::Status HistoryIndex::ThrowAway() {
  db_.reset();
  headers_.clear();
  all_runs_.reset();
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock,
                           FileLock::Wait(JoinPath(history_.dir(), kLockName)));
  for (const char* ending : {"", "-wal", "-shm"}) {
    const absl::Status removed =
        RemoveFile(absl::StrCat(JoinPath(history_.dir(), kFileName), ending));
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

template <typename Query>
auto HistoryIndex::OrRebuild(const Query& query) -> decltype(query()) {
  if (db_ != nullptr) {
    auto answer = query();
    if (kept_by_store_ || !absl::IsDataLoss(answer.status())) return answer;
    notices_.push_back(absl::StrCat("the index was damaged and is built again",
                                    " (", answer.status().message(), ")"));
  }
  const absl::Status rebuilt = Rebuild().status();
  if (!rebuilt.ok()) return rebuilt;
  return query();
}

absl::StatusOr<IndexUpdate> HistoryIndex::Rebuild() {
  if (kept_by_store_) {
    OPTRAIL_RETURN_IF_ERROR(history_.store().RebuildIndex());
    OPTRAIL_RETURN_IF_ERROR(OpenDatabase());
  } else if (read_only_) {
    OPTRAIL_RETURN_IF_ERROR(OpenInMemory());
  } else {
    if (!path_.empty()) OPTRAIL_RETURN_IF_ERROR(ThrowAway());
    OPTRAIL_RETURN_IF_ERROR(OpenDatabase());
  }
  return UpdateOnce();
}

absl::StatusOr<IndexUpdate> HistoryIndex::Update() {
  return OrRebuild([&] { return UpdateOnce(); });
}

// Takes the headers that are not known yet and forgets those that are gone.
absl::Status HistoryIndex::LoadHeaders() {
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT run, path, result_count, header FROM runs "
                   "ORDER BY run"));
  auto known = headers_.begin();
  const auto forget_before = [&](int64_t row) {
    while (known != headers_.end() && known->first < row) {
      all_runs_.reset();
      known = headers_.erase(known);
    }
  };
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    const int64_t row = get.Int(0);
    forget_before(row);
    if (known != headers_.end() && known->first == row) {
      ++known;
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(TakeHeader(get));
  }
  forget_before(std::numeric_limits<int64_t>::max());
  return absl::OkStatus();
}

// The row holds run, path, result_count and header.
absl::Status HistoryIndex::TakeHeader(const Statement& get) {
  Header header;
  OPTRAIL_RETURN_IF_ERROR(DecodeRecord(get.Bytes(3), &header.run));
  header.path = JoinPath(history_.dir(), get.Bytes(1));
  header.result_count = static_cast<int>(get.Int(2));
  all_runs_.reset();
  headers_.emplace(get.Int(0), std::move(header));
  return absl::OkStatus();
}

HistoryIndex::PlacedRuns HistoryIndex::Place(const RunFilter& filter) const {
  std::vector<int64_t> rows;
  PlacedRuns placed = {OrderedRuns({}), {}};
  for (const auto& [row, header] : headers_) {
    placed.places[row] = kNoPlace;
    if (Matches(filter, header.run)) rows.push_back(row);
  }
  PlaceRows(rows, &placed);
  return placed;
}

void HistoryIndex::PlaceRows(const std::vector<int64_t>& rows,
                             PlacedRuns* placed) const {
  std::vector<const proto::Run*> runs;
  std::unordered_map<const proto::Run*, int64_t> row_of;
  for (const int64_t row : rows) {
    runs.push_back(&headers_.at(row).run);
    row_of[runs.back()] = row;
  }
  placed->runs = OrderedRuns(std::move(runs));
  for (int i = 0; i < placed->runs.size(); ++i) {
    placed->places[row_of[&placed->runs.run(i)]] = i;
  }
}

// The runs of one series alone, where that is enough to order them: others of
// the history say only where runs without a position belong.
absl::StatusOr<HistoryIndex::PlacedRuns> HistoryIndex::PlaceRunsOf(
    int64_t series) {
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT run, path, result_count, header, position IS NULL "
                   "FROM runs WHERE run IN "
                   "(SELECT run FROM observations WHERE series = ?)"));
  get.With(series);
  std::vector<int64_t> rows;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    if (get.Int(4) != 0) {
      get.Reset();
      OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
      return Place({});
    }
    rows.push_back(get.Int(0));
    if (headers_.count(rows.back()) > 0) continue;
    OPTRAIL_RETURN_IF_ERROR(TakeHeader(get));
  }
  PlacedRuns placed = {OrderedRuns({}), {}};
  PlaceRows(rows, &placed);
  return placed;
}

absl::StatusOr<RunList> HistoryIndex::ListRunsOnce(const RunFilter& filter) {
  RunList list;
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  for (const auto& [row, header] : headers_) {
    if (!Matches(filter, header.run)) continue;
    list.runs.push_back({header.path, header.run, header.result_count});
  }
  SortInSeriesOrder(list.runs);
  OPTRAIL_ASSIGN_OR_RETURN(list.bad_files, BadFiles());
  return list;
}

absl::StatusOr<RunList> HistoryIndex::ListRuns(const RunFilter& filter) {
  return OrRebuild([&] { return ListRunsOnce(filter); });
}

absl::StatusOr<std::vector<BadFile>> HistoryIndex::BadFiles() {
  // `optrail history verify` finds what was damaged within a database.
  if (kept_by_store_) return std::vector<BadFile>();
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT path, reason FROM files WHERE reason IS NOT NULL "
                   "ORDER BY path"));
  std::vector<BadFile> bad;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
    if (!row) return bad;
    bad.push_back(
        {JoinPath(history_.dir(), get.Bytes(0)), std::string(get.Bytes(1))});
  }
}

absl::StatusOr<std::vector<SeriesInfo>> HistoryIndex::ListSeriesOnce(
    const SeriesFilter& filter) {
  const RE2 pattern(filter.pattern, RE2::Quiet);
  if (!pattern.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--filter='", filter.pattern,
                     "' is no regular expression (RE2): ", pattern.error()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT text, series.runs FROM series WHERE series.runs > 0 "
                   "AND (?1 = '' OR metric = ?1) "
                   "AND (?2 = '' OR hardware_id = ?2) "
                   "AND (?3 = '' OR branch = ?3) ORDER BY text"));
  get.With(filter.metric, filter.hardware_id, filter.branch);
  std::vector<SeriesInfo> list;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
    if (!row) return list;
    const absl::string_view text = get.Bytes(0);
    if (RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                          pattern)) {
      list.push_back({std::string(text), get.Int(1)});
    }
  }
}

absl::StatusOr<std::vector<SeriesInfo>> HistoryIndex::ListSeries(
    const SeriesFilter& filter) {
  return OrRebuild([&] { return ListSeriesOnce(filter); });
}

absl::StatusOr<LoadedSeries> HistoryIndex::LoadSeries(
    const SeriesQuery& query) {
  return OrRebuild([&] { return LoadSeriesOnce(query); });
}

absl::StatusOr<Series> HistoryIndex::ReadSeries(absl::string_view text) {
  return OrRebuild([&] { return ReadSeriesOnce(text); });
}

absl::StatusOr<LoadedSeries> LoadSeriesFromFiles(const History& history,
                                                 const SeriesQuery& query) {
  OPTRAIL_ASSIGN_OR_RETURN(LoadedRuns files, history.LoadRuns(query.runs));
  LoadedSeries loaded;
  loaded.series = BuildSeries(files.runs);
  if (query.wanted) {
    const auto unwanted = [&](const Series& series) {
      return !query.wanted(series.key);
    };
    loaded.series.erase(
        std::remove_if(loaded.series.begin(), loaded.series.end(), unwanted),
        loaded.series.end());
  }
  for (proto::Run& run : files.runs) {
    run.clear_results();
    run.clear_checksum();
  }
  loaded.runs = std::move(files.runs);
  loaded.bad_files = std::move(files.bad_files);
  return loaded;
}

absl::StatusOr<std::unique_ptr<HistoryIndex>> OpenWorthyIndex(
    const History& history) {
  OPTRAIL_RETURN_IF_ERROR(WorthAnIndex(history));
  return HistoryIndex::Open(history);
}

absl::StatusOr<LoadedSeries> LoadSeries(const History& history,
                                        const SeriesQuery& query) {
  const auto index = OpenWorthyIndex(history);
  if (index.ok()) {
    absl::StatusOr<LoadedSeries> loaded = (*index)->LoadSeries(query);
    if (loaded.ok()) return loaded;
  }
  return LoadSeriesFromFiles(history, query);
}

void KeepFolds(const History& history,
               const std::map<std::string, std::string>& folds) {
  if (folds.empty()) return;
  const auto index = OpenWorthyIndex(history);
  if (index.ok()) (void)(*index)->KeepFolds(folds);
}

void KeepJudgements(const History& history,
                    const std::map<std::string, KeptJudgement>& judgements) {
  const auto index = HistoryIndex::Open(history);
  if (index.ok()) (void)(*index)->KeepJudgements(judgements);
}

absl::StatusOr<History> OpenIndexedHistory(absl::string_view dir) {
  OPTRAIL_ASSIGN_OR_RETURN(History history, History::Open(dir));
  struct Shared {
    std::mutex mutex;
    std::unique_ptr<HistoryIndex> index;
  };
  auto shared = std::make_shared<Shared>();
  history.set_run_lister(
      [shared,
       plain = history](const RunFilter& filter) -> absl::StatusOr<RunList> {
        const std::lock_guard<std::mutex> lock(shared->mutex);
        if (shared->index == nullptr) {
          OPTRAIL_RETURN_IF_ERROR(WorthAnIndex(plain));
          OPTRAIL_ASSIGN_OR_RETURN(shared->index, HistoryIndex::Open(plain));
        } else {
          OPTRAIL_RETURN_IF_ERROR(shared->index->Update().status());
        }
        return shared->index->ListRuns(filter);
      });
  return history;
}

}  // namespace optrail::tracker
