#include "tracker/index/history_index.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tracker/index/index.pb.h"
#include "tracker/index/index_rows.h"
#include "tracker/record.h"
#include "tracker/series_key.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kFileName = "index.sqlite";
constexpr absl::string_view kLockName = "index.lock";

// Raised when the tables or what is in them change their meaning.
constexpr int kSchemaVersion = 2;

// Fewer files are read as quickly as an index of them is made.
constexpr int kWorthAnIndex = 100;

// Files per transaction. More make a build faster, since each transaction
// touches the pages of all series; fewer leave more to one that is interrupted.
constexpr int kFilesPerTransaction = 512;

constexpr char kCreate[] = R"sql(
  CREATE TABLE files (
    path TEXT PRIMARY KEY,      -- below the history
    size_bytes INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    modified_unix_ns INTEGER NOT NULL,
    reason TEXT                 -- why it is no intact run; NULL if it is one
  ) WITHOUT ROWID;
  CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    result_count INTEGER NOT NULL,
    header BLOB NOT NULL        -- proto.Run without results
  );
  CREATE TABLE series (
    series INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE,
    benchmark BLOB NOT NULL,    -- proto.BenchmarkKey
    metric TEXT NOT NULL,
    unit TEXT NOT NULL,
    hardware_id TEXT NOT NULL,
    branch TEXT NOT NULL,
    runs INTEGER NOT NULL
  );
  CREATE TABLE attributes (
    attributes INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL UNIQUE  -- proto.IndexedAttributes
  );
  -- Clustered, so that one series lies in a few pages.
  CREATE TABLE observations (
    series INTEGER NOT NULL,
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,   -- of a benchmark that a run has twice
    attributes INTEGER NOT NULL,
    bytes BLOB NOT NULL,        -- proto.IndexedObservation
    PRIMARY KEY (series, run, ordinal)
  ) WITHOUT ROWID;
)sql";

// An error where it is not.
absl::Status WorthAnIndex(const History& history) {
  if (FileExists(JoinPath(history.dir(), kFileName))) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      ListRecursively(JoinPath(history.dir(), "runs"), ".pb"));
  if (paths.size() >= kWorthAnIndex) return absl::OkStatus();
  return absl::FailedPreconditionError("index: too few files to be worth one");
}

// Ends a transaction that was not committed.
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db) {}
  ~Transaction() {
    if (open_) (void)db_.Execute("ROLLBACK");
  }
  absl::Status Begin(const char* sql) {
    OPTRAIL_RETURN_IF_ERROR(db_.Execute(sql));
    open_ = true;
    return absl::OkStatus();
  }
  absl::Status Commit() {
    OPTRAIL_RETURN_IF_ERROR(db_.Execute("COMMIT"));
    open_ = false;
    return absl::OkStatus();
  }

 private:
  Database& db_;
  bool open_ = false;
};

}  // namespace

struct HistoryIndex::FileState {
  std::string path;  // below the history
  int64_t size_bytes = 0;
  int64_t inode = 0;
  int64_t modified_unix_ns = 0;

  bool operator==(const FileState& other) const {
    return path == other.path && size_bytes == other.size_bytes &&
           inode == other.inode && modified_unix_ns == other.modified_unix_ns;
  }
};

// Fills the tables; lives within one transaction.
class HistoryIndex::Writer {
 public:
  static absl::StatusOr<Writer> Create(Database& db) {
    Writer writer(db);
    const std::pair<absl::optional<Statement>*, const char*> statements[] = {
        {&writer.add_file_, "INSERT INTO files VALUES (?, ?, ?, ?, ?)"},
        {&writer.add_run_,
         "INSERT INTO runs (path, result_count, header) VALUES (?, ?, ?)"},
        {&writer.find_series_, "SELECT series FROM series WHERE text = ?"},
        {&writer.add_series_,
         "INSERT INTO series (text, benchmark, metric, unit, hardware_id, "
         "branch,"
         " runs) VALUES (?, ?, ?, ?, ?, ?, 0)"},
        {&writer.count_run_,
         "UPDATE series SET runs = runs + 1 WHERE series = ?"},
        {&writer.find_attributes_,
         "SELECT attributes FROM attributes WHERE bytes = ?"},
        {&writer.add_attributes_, "INSERT INTO attributes (bytes) VALUES (?)"},
        {&writer.add_observation_,
         "INSERT INTO observations VALUES (?, ?, ?, ?, ?)"},
    };
    for (const auto& [statement, sql] : statements) {
      OPTRAIL_ASSIGN_OR_RETURN(*statement, db.Prepare(sql));
    }
    return writer;
  }

  absl::Status AddBadFile(const FileState& file, absl::string_view reason) {
    return AddFile(file, &reason);
  }

  // `run` loses its results.
  absl::Status AddRun(const FileState& file, proto::Run run) {
    OPTRAIL_RETURN_IF_ERROR(AddFile(file, nullptr));
    google::protobuf::RepeatedPtrField<proto::BenchmarkResult> results;
    results.Swap(run.mutable_results());
    run.clear_checksum();
    const std::string header = EncodeRecord(run);
    add_run_->BindText(1, file.path);
    add_run_->Bind(2, results.size());
    add_run_->BindBlob(3, header);
    OPTRAIL_RETURN_IF_ERROR(add_run_->Run());
    const int64_t row = db_.last_insert_rowid();
    std::set<int64_t> seen;
    for (int i = 0; i < results.size(); ++i) {
      for (const MetricInfo& metric : MetricsOf(results[i])) {
        const SeriesKey key = {results[i].key(), metric.metric, metric.unit,
                               run.hardware().id(), run.commit().branch()};
        OPTRAIL_ASSIGN_OR_RETURN(const int64_t series, SeriesRow(key));
        OPTRAIL_RETURN_IF_ERROR(
            AddObservation(series, row, i, Observe(results[i], metric)));
        if (!seen.insert(series).second) continue;
        count_run_->Bind(1, series);
        OPTRAIL_RETURN_IF_ERROR(count_run_->Run());
      }
    }
    return absl::OkStatus();
  }

 private:
  explicit Writer(Database& db) : db_(db) {}

  absl::Status AddFile(const FileState& file, const absl::string_view* reason) {
    add_file_->BindText(1, file.path);
    add_file_->Bind(2, file.size_bytes);
    add_file_->Bind(3, file.inode);
    add_file_->Bind(4, file.modified_unix_ns);
    if (reason == nullptr) {
      add_file_->BindNull(5);
    } else {
      add_file_->BindText(5, *reason);
    }
    return add_file_->Run();
  }

  absl::StatusOr<int64_t> SeriesRow(const SeriesKey& key) {
    const std::string text = CanonicalText(key);
    const auto known = series_.find(text);
    if (known != series_.end()) return known->second;
    find_series_->BindText(1, text);
    OPTRAIL_ASSIGN_OR_RETURN(const bool found, find_series_->Step());
    int64_t row = found ? find_series_->Int(0) : 0;
    find_series_->Reset();
    if (!found) {
      add_series_->BindText(1, text);
      const std::string benchmark = key.benchmark.SerializeAsString();
      add_series_->BindBlob(2, benchmark);
      add_series_->BindText(3, key.metric);
      add_series_->BindText(4, key.unit);
      add_series_->BindText(5, key.hardware_id);
      add_series_->BindText(6, key.branch);
      OPTRAIL_RETURN_IF_ERROR(add_series_->Run());
      row = db_.last_insert_rowid();
    }
    series_[text] = row;
    return row;
  }

  absl::StatusOr<int64_t> AttributesRow(const Observation& observation) {
    const std::string bytes = EncodeAttributes(observation);
    const auto known = attributes_.find(bytes);
    if (known != attributes_.end()) return known->second;
    find_attributes_->BindBlob(1, bytes);
    OPTRAIL_ASSIGN_OR_RETURN(const bool found, find_attributes_->Step());
    int64_t row = found ? find_attributes_->Int(0) : 0;
    find_attributes_->Reset();
    if (!found) {
      add_attributes_->BindBlob(1, bytes);
      OPTRAIL_RETURN_IF_ERROR(add_attributes_->Run());
      row = db_.last_insert_rowid();
    }
    attributes_[bytes] = row;
    return row;
  }

  absl::Status AddObservation(int64_t series, int64_t run, int ordinal,
                              const Observation& observation) {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t attributes,
                             AttributesRow(observation));
    const std::string bytes = EncodeObservation(observation);
    add_observation_->Bind(1, series);
    add_observation_->Bind(2, run);
    add_observation_->Bind(3, ordinal);
    add_observation_->Bind(4, attributes);
    add_observation_->BindBlob(5, bytes);
    return add_observation_->Run();
  }

  Database& db_;
  absl::optional<Statement> add_file_, add_run_, find_series_, add_series_,
      count_run_, find_attributes_, add_attributes_, add_observation_;
  std::unordered_map<std::string, int64_t> series_, attributes_;
};

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
  // Only a real folder can hold a database, and a history that is not there
  // is not created by asking it.
  if (history_.file_system() != FileSystem::Real() ||
      !FileExists(history_.dir())) {
    return OpenInMemory();
  }
  absl::Status status = OpenForWriting();
  if (absl::IsDataLoss(status)) {
    notices_.push_back(absl::StrCat(path_, " is no index of this version and ",
                                    "is built again (", status.message(), ")"));
    OPTRAIL_RETURN_IF_ERROR(ThrowAway());
    status = OpenForWriting();
  }
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  if (OpenUnchanging().ok()) return absl::OkStatus();
  notices_.push_back(
      absl::StrCat("the index is held in memory and built for every command: ",
                   status.message()));
  return OpenInMemory();
}

absl::Status HistoryIndex::OpenForWriting() {
  path_ = JoinPath(history_.dir(), kFileName);
  OPTRAIL_ASSIGN_OR_RETURN(const FileLock lock,
                           FileLock::Wait(JoinPath(history_.dir(), kLockName)));
  OPTRAIL_ASSIGN_OR_RETURN(
      db_, Database::Open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                                     SQLITE_OPEN_NOMUTEX));
  // A power loss may cost the last transactions, never the whole.
  OPTRAIL_RETURN_IF_ERROR(
      db_->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
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
      db_, Database::Open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
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
      db_,
      Database::Open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
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
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin("BEGIN IMMEDIATE"));
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
  if (db_.has_value()) {
    auto answer = query();
    if (!absl::IsDataLoss(answer.status())) return answer;
    notices_.push_back(absl::StrCat("the index was damaged and is built again",
                                    " (", answer.status().message(), ")"));
  }
  const absl::Status rebuilt = Rebuild().status();
  if (!rebuilt.ok()) return rebuilt;
  return query();
}

absl::StatusOr<IndexUpdate> HistoryIndex::Rebuild() {
  if (read_only_) {
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

// One look at each file: that is most of what opening an index costs.
absl::Status HistoryIndex::ListInto(const std::string& folder,
                                    std::vector<FileState>* files) const {
  FileSystem* fs = history_.file_system();
  const std::string dir = JoinPath(history_.dir(), folder);
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return FileError("listing", dir, errno);
  for (const std::string& name : names) {
    if (IsTemporaryName(name)) continue;
    FileInfo info;
    if (fs->Stat(JoinPath(dir, name), &info) != 0) continue;  // vanished since
    std::string path = absl::StrCat(folder, "/", name);
    if (info.is_directory) {
      OPTRAIL_RETURN_IF_ERROR(ListInto(path, files));
    } else if (absl::EndsWith(name, ".pb")) {
      files->push_back({std::move(path), info.size_bytes,
                        static_cast<int64_t>(info.inode),
                        info.modified_unix_ns});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HistoryIndex::FileState>> HistoryIndex::FilesNow()
    const {
  std::vector<FileState> files;
  if (FileExists(JoinPath(history_.dir(), "runs"), history_.file_system())) {
    OPTRAIL_RETURN_IF_ERROR(ListInto("runs", &files));
  }
  std::sort(
      files.begin(), files.end(),
      [](const FileState& a, const FileState& b) { return a.path < b.path; });
  return files;
}

absl::StatusOr<std::map<std::string, HistoryIndex::FileState>>
HistoryIndex::FilesIndexed() {
  std::map<std::string, FileState> files;
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT path, size_bytes, inode, modified_unix_ns "
                   "FROM files"));
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
    if (!row) return files;
    FileState file = {std::string(get.Bytes(0)), get.Int(1), get.Int(2),
                      get.Int(3)};
    std::string path = file.path;
    files.emplace(std::move(path), std::move(file));
  }
}

absl::StatusOr<bool> HistoryIndex::IsCurrent(
    const std::vector<FileState>& now) {
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT path, size_bytes, inode, modified_unix_ns "
                   "FROM files ORDER BY path"));
  for (const FileState& file : now) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool row, get.Step());
    if (!row || get.Bytes(0) != file.path || get.Int(1) != file.size_bytes ||
        get.Int(2) != file.inode || get.Int(3) != file.modified_unix_ns) {
      return false;
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
  return !more;
}

absl::StatusOr<IndexUpdate> HistoryIndex::UpdateOnce() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<FileState> now, FilesNow());
  IndexUpdate update;
  update.files = static_cast<int64_t>(now.size());
  OPTRAIL_ASSIGN_OR_RETURN(const bool current, IsCurrent(now));
  if (current) return update;
  std::set<std::string> paths;
  for (const FileState& file : now) paths.insert(file.path);
  const auto compare = [&](const std::map<std::string, FileState>& indexed,
                           std::vector<std::string>* drop,
                           std::vector<const FileState*>* add) {
    for (const auto& [path, file] : indexed) {
      if (paths.count(path) == 0) drop->push_back(path);
    }
    for (const FileState& file : now) {
      const auto known = indexed.find(file.path);
      if (known != indexed.end() && known->second == file) continue;
      if (known != indexed.end()) drop->push_back(file.path);
      add->push_back(&file);
    }
  };
  while (true) {
    std::vector<std::string> drop;
    std::vector<const FileState*> add;
    OPTRAIL_ASSIGN_OR_RETURN(const auto indexed, FilesIndexed());
    compare(indexed, &drop, &add);
    if (drop.empty() && add.empty()) return update;
    if (read_only_) {
      notices_.push_back(absl::StrCat(
          path_,
          " is out of date and can't be written: the index is held in "
          "memory and built for every command"));
      OPTRAIL_RETURN_IF_ERROR(OpenInMemory());
      continue;
    }
    Transaction transaction(*db_);
    OPTRAIL_RETURN_IF_ERROR(transaction.Begin("BEGIN IMMEDIATE"));
    // Another process may have been quicker.
    drop.clear();
    add.clear();
    OPTRAIL_ASSIGN_OR_RETURN(const auto settled, FilesIndexed());
    compare(settled, &drop, &add);
    if (!drop.empty()) {
      OPTRAIL_RETURN_IF_ERROR(db_->Execute(
          "CREATE TEMP TABLE IF NOT EXISTS dropped (path TEXT PRIMARY KEY);"
          "DELETE FROM dropped"));
      OPTRAIL_ASSIGN_OR_RETURN(Statement insert,
                               db_->Prepare("INSERT INTO dropped VALUES (?)"));
      for (const std::string& path : drop) {
        insert.BindText(1, path);
        OPTRAIL_RETURN_IF_ERROR(insert.Run());
      }
      // One scan, however many files have gone.
      OPTRAIL_RETURN_IF_ERROR(db_->Execute(R"sql(
        DELETE FROM observations WHERE run IN (
          SELECT run FROM runs WHERE path IN (SELECT path FROM dropped));
        DELETE FROM runs WHERE path IN (SELECT path FROM dropped);
        DELETE FROM files WHERE path IN (SELECT path FROM dropped);
        UPDATE series SET runs = (
          SELECT COUNT(DISTINCT run) FROM observations
          WHERE observations.series = series.series);
      )sql"));
      update.dropped += static_cast<int64_t>(drop.size());
    }
    OPTRAIL_ASSIGN_OR_RETURN(Writer writer, Writer::Create(*db_));
    if (add.size() > kFilesPerTransaction) add.resize(kFilesPerTransaction);
    for (const FileState* file : add) {
      absl::StatusOr<proto::Run> run =
          history_.ReadRunFile(JoinPath(history_.dir(), file->path));
      if (run.ok()) {
        OPTRAIL_RETURN_IF_ERROR(writer.AddRun(*file, *std::move(run)));
      } else {
        OPTRAIL_RETURN_IF_ERROR(
            writer.AddBadFile(*file, run.status().message()));
      }
      ++update.added;
    }
    OPTRAIL_RETURN_IF_ERROR(transaction.Commit());
  }
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
    Header header;
    OPTRAIL_RETURN_IF_ERROR(DecodeRecord(get.Bytes(3), &header.run));
    header.path = JoinPath(history_.dir(), get.Bytes(1));
    header.result_count = static_cast<int>(get.Int(2));
    all_runs_.reset();
    headers_.emplace_hint(known, row, std::move(header));
  }
  forget_before(std::numeric_limits<int64_t>::max());
  return absl::OkStatus();
}

HistoryIndex::PlacedRuns HistoryIndex::Place(const RunFilter& filter) const {
  std::vector<const proto::Run*> runs;
  std::unordered_map<const proto::Run*, int64_t> rows;
  PlacedRuns placed = {OrderedRuns({}), {}};
  for (const auto& [row, header] : headers_) {
    placed.places[row] = kNoPlace;
    if (!Matches(filter, header.run)) continue;
    runs.push_back(&header.run);
    rows[&header.run] = row;
  }
  placed.runs = OrderedRuns(std::move(runs));
  for (int i = 0; i < placed.runs.size(); ++i) {
    placed.places[rows[&placed.runs.run(i)]] = i;
  }
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
      db_->Prepare("SELECT text, runs FROM series WHERE runs > 0 "
                   "AND (?1 = '' OR metric = ?1) "
                   "AND (?2 = '' OR hardware_id = ?2) "
                   "AND (?3 = '' OR branch = ?3) ORDER BY text"));
  get.BindText(1, filter.metric);
  get.BindText(2, filter.hardware_id);
  get.BindText(3, filter.branch);
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

// Reads series one after another; lives within one transaction, so that all
// are of one state of the index.
class HistoryIndex::SeriesReader {
 public:
  static absl::StatusOr<SeriesReader> Create(Database& db) {
    SeriesReader reader;
    OPTRAIL_ASSIGN_OR_RETURN(
        reader.get_observations_,
        db.Prepare("SELECT run, attributes, bytes FROM observations "
                   "WHERE series = ? ORDER BY run, ordinal"));
    OPTRAIL_ASSIGN_OR_RETURN(
        reader.get_attributes_,
        db.Prepare("SELECT bytes FROM attributes WHERE attributes = ?"));
    return reader;
  }

  // The series of that row, of the runs that have a place; without points if
  // there are none.
  absl::StatusOr<Series> Read(int64_t row, SeriesKey key, std::string text,
                              const PlacedRuns& placed) {
    OPTRAIL_RETURN_IF_ERROR(ReadRows(row, placed.places));
    std::vector<int> order(count_);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
      return rows_[a].place < rows_[b].place;
    });
    SeriesBuilder builder(std::move(key), std::move(text));
    Observation observation;
    int64_t attributes = kNoAttributes;
    for (const int i : order) {
      if (rows_[i].attributes != attributes) {
        attributes = rows_[i].attributes;
        OPTRAIL_ASSIGN_OR_RETURN(const Observation* const known,
                                 Attributes(attributes));
        observation = *known;
      }
      OPTRAIL_RETURN_IF_ERROR(SetObservation(rows_[i].stored, &observation));
      builder.Add(placed.runs, rows_[i].place, observation);
    }
    return builder.Take();
  }

 private:
  static constexpr int64_t kNoAttributes = -1;

  struct Row {
    int place = 0;
    int64_t attributes = 0;
    proto::IndexedObservation stored;
  };

  // The first `count_` of `rows_`, whose memory is used again and again.
  absl::Status ReadRows(int64_t series,
                        const std::unordered_map<int64_t, int>& places) {
    get_observations_->Reset();
    get_observations_->Bind(1, series);
    for (count_ = 0;;) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool more, get_observations_->Step());
      if (!more) break;
      const auto place = places.find(get_observations_->Int(0));
      if (place == places.end()) {
        return absl::DataLossError("index: a run is missing");
      }
      if (place->second == kNoPlace) continue;
      if (count_ == rows_.size()) rows_.emplace_back();
      Row& row = rows_[count_++];
      row.place = place->second;
      row.attributes = get_observations_->Int(1);
      OPTRAIL_RETURN_IF_ERROR(
          DecodeRecord(get_observations_->Bytes(2), &row.stored));
    }
    get_observations_->Reset();
    return absl::OkStatus();
  }

  absl::StatusOr<const Observation*> Attributes(int64_t row) {
    const auto [known, is_new] = attributes_.try_emplace(row);
    if (is_new) {
      get_attributes_->Bind(1, row);
      OPTRAIL_ASSIGN_OR_RETURN(const bool found, get_attributes_->Step());
      if (!found) return absl::DataLossError("index: attributes are missing");
      OPTRAIL_RETURN_IF_ERROR(
          DecodeAttributes(get_attributes_->Bytes(0), &known->second));
      get_attributes_->Reset();
    }
    return &known->second;
  }

  absl::optional<Statement> get_observations_, get_attributes_;
  std::deque<Row> rows_;
  size_t count_ = 0;
  std::unordered_map<int64_t, Observation> attributes_;
};

namespace {

constexpr char kSeriesColumns[] =
    "SELECT series, text, benchmark, metric, unit, hardware_id, branch ";

// From a row of kSeriesColumns. The text tells whether the rest is as it was.
absl::StatusOr<SeriesKey> KeyOf(const Statement& get) {
  SeriesKey key;
  const absl::string_view benchmark = get.Bytes(2);
  const bool parsed = key.benchmark.ParseFromArray(
      benchmark.data(), static_cast<int>(benchmark.size()));
  key.metric = std::string(get.Bytes(3));
  key.unit = std::string(get.Bytes(4));
  key.hardware_id = std::string(get.Bytes(5));
  key.branch = std::string(get.Bytes(6));
  if (!parsed || CanonicalText(key) != get.Bytes(1)) {
    return absl::DataLossError("index: a series' key is not whole");
  }
  return key;
}

}  // namespace

absl::StatusOr<Series> HistoryIndex::ReadSeriesOnce(absl::string_view text) {
  // One state of the index from here on.
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin("BEGIN"));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series WHERE text = ? ",
                                "AND runs > 0")));
  get.BindText(1, text);
  OPTRAIL_ASSIGN_OR_RETURN(const bool found, get.Step());
  if (!found) {
    OPTRAIL_RETURN_IF_ERROR(ParseSeriesKey(text).status());
    return absl::NotFoundError(absl::StrCat("no series '", text, "' in ",
                                            history_.dir(),
                                            "; `optrail log series` lists "
                                            "them"));
  }
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  if (!all_runs_.has_value()) all_runs_ = Place({});
  OPTRAIL_ASSIGN_OR_RETURN(SeriesKey key, KeyOf(get));
  OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader, SeriesReader::Create(*db_));
  return reader.Read(get.Int(0), std::move(key), std::string(text), *all_runs_);
}

absl::StatusOr<LoadedSeries> HistoryIndex::LoadSeriesOnce(
    const SeriesQuery& query) {
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin("BEGIN"));
  LoadedSeries loaded;
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  const PlacedRuns placed = Place(query.runs);
  for (int i = 0; i < placed.runs.size(); ++i) {
    loaded.runs.push_back(placed.runs.run(i));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series WHERE runs > 0 ",
                                "AND (?1 = '' OR hardware_id = ?1) ",
                                "AND (?2 = '' OR branch = ?2) "
                                "ORDER BY text")));
  get.BindText(1, query.runs.hardware_id);
  get.BindText(2, query.runs.branch);
  OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader, SeriesReader::Create(*db_));
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    OPTRAIL_ASSIGN_OR_RETURN(SeriesKey key, KeyOf(get));
    if (query.wanted && !query.wanted(key)) continue;
    std::string text(get.Bytes(1));
    OPTRAIL_ASSIGN_OR_RETURN(
        Series series,
        reader.Read(get.Int(0), std::move(key), std::move(text), placed));
    if (!series.points.empty()) loaded.series.push_back(std::move(series));
  }
  OPTRAIL_ASSIGN_OR_RETURN(loaded.bad_files, BadFiles());
  loaded.notices = notices_;
  return loaded;
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

absl::StatusOr<LoadedSeries> LoadSeries(const History& history,
                                        const SeriesQuery& query) {
  if (WorthAnIndex(history).ok()) {
    const auto index = HistoryIndex::Open(history);
    if (index.ok()) {
      absl::StatusOr<LoadedSeries> loaded = (*index)->LoadSeries(query);
      if (loaded.ok()) return loaded;
    }
  }
  return LoadSeriesFromFiles(history, query);
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
