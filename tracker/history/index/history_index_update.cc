// How the index takes in what has changed among the files.

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "tracker/history/history_files.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/index_rows.h"
#include "tracker/history/record.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// Files per transaction. More make a build faster, since each transaction
// touches the pages of all series; fewer leave more to one that is interrupted.
constexpr int kFilesPerTransaction = 512;

}  // namespace

struct HistoryIndex::FileState {
  std::string path;  // below the history
  int64_t size_bytes = 0;
  int64_t inode = 0;
  int64_t modified_unix_ns = 0;
  std::string reason;  // why it can be no record, seen without reading it

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
    OPTRAIL_RETURN_IF_ERROR(
        add_run_->With(file.path, results.size(), Blob{header}).Run());
    const int64_t row = db_.last_insert_rowid();
    std::set<int64_t> seen;
    for (int i = 0; i < results.size(); ++i) {
      for (const Observation& observation : Observe(results[i])) {
        const SeriesKey key = {results[i].key(), observation.metric.metric,
                               observation.metric.unit, run.hardware().id(),
                               run.commit().branch()};
        OPTRAIL_ASSIGN_OR_RETURN(const int64_t series, SeriesRow(key));
        OPTRAIL_RETURN_IF_ERROR(AddObservation(series, row, i, observation));
        if (!seen.insert(series).second) continue;
        OPTRAIL_RETURN_IF_ERROR(count_run_->With(series).Run());
      }
    }
    return absl::OkStatus();
  }

 private:
  explicit Writer(Database& db) : db_(db) {}

  // Null where the file is an intact run, else why it is none.
  absl::Status AddFile(const FileState& file, const absl::string_view* reason) {
    const auto add = [&](const auto& why) {
      return add_file_
          ->With(file.path, file.size_bytes, file.inode, file.modified_unix_ns,
                 why)
          .Run();
    };
    return reason == nullptr ? add(nullptr) : add(*reason);
  }

  // The row of what `find` looks for by `key`, or `add` puts there.
  template <typename Key, typename Add>
  absl::StatusOr<int64_t> RowOf(std::unordered_map<std::string, int64_t>& rows,
                                const std::string& text, const Key& key,
                                Statement& find, const Add& add) {
    const auto [known, is_new] = rows.try_emplace(text, 0);
    if (!is_new) return known->second;
    OPTRAIL_ASSIGN_OR_RETURN(const bool found, find.With(key).Step());
    if (found) known->second = find.Int(0);
    find.Reset();
    if (!found) {
      OPTRAIL_RETURN_IF_ERROR(add());
      known->second = db_.last_insert_rowid();
    }
    return known->second;
  }

  absl::StatusOr<int64_t> SeriesRow(const SeriesKey& key) {
    const std::string text = CanonicalText(key);
    return RowOf(series_, text, text, *find_series_, [&] {
      const std::string benchmark = key.benchmark.SerializeAsString();
      return add_series_
          ->With(text, Blob{benchmark}, key.metric, key.unit, key.hardware_id,
                 key.branch)
          .Run();
    });
  }

  absl::StatusOr<int64_t> AttributesRow(const Observation& observation) {
    const std::string bytes = EncodeAttributes(observation);
    const Blob blob = {bytes};
    return RowOf(attributes_, bytes, blob, *find_attributes_,
                 [&] { return add_attributes_->With(blob).Run(); });
  }

  absl::Status AddObservation(int64_t series, int64_t run, int ordinal,
                              const Observation& observation) {
    OPTRAIL_ASSIGN_OR_RETURN(const int64_t attributes,
                             AttributesRow(observation));
    const std::string bytes = EncodeObservation(observation);
    return add_observation_->With(series, run, ordinal, attributes, Blob{bytes})
        .Run();
  }

  Database& db_;
  absl::optional<Statement> add_file_, add_run_, find_series_, add_series_,
      count_run_, find_attributes_, add_attributes_, add_observation_;
  std::unordered_map<std::string, int64_t> series_, attributes_;
};

// One look at each file: that is most of what opening an index costs.
absl::StatusOr<std::vector<HistoryIndex::FileState>> HistoryIndex::FilesNow()
    const {
  OPTRAIL_ASSIGN_OR_RETURN(
      const RecordFiles found,
      ListRecordFiles(history_.dir(), "runs", history_.file_system()));
  const size_t prefix = JoinPath(history_.dir(), "x").size() - 1;
  std::vector<FileState> files;
  for (const RecordFile& file : found.files) {
    files.push_back({file.path.substr(prefix), file.info.size_bytes,
                     static_cast<int64_t>(file.info.inode),
                     file.info.modified_unix_ns, ""});
  }
  for (const BadFile& bad : found.bad_files) {
    files.push_back({bad.path.substr(prefix), 0, 0, 0, bad.reason});
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
                      get.Int(3), ""};
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
        OPTRAIL_RETURN_IF_ERROR(insert.With(path).Run());
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
          file->reason.empty()
              ? history_.ReadRunFile(JoinPath(history_.dir(), file->path))
              : absl::DataLossError(file->reason);
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

}  // namespace optrail::tracker
