// How the index takes in what has changed among the files.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "tracker/history/history_files.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/index_writer.h"

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

// One look at each file: that is most of what opening an index costs.
absl::StatusOr<std::vector<HistoryIndex::FileState>> HistoryIndex::FilesNow()
    const {
  OPTRAIL_ASSIGN_OR_RETURN(const RecordFiles found,
                           history_.store().List("runs"));
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
  if (kept_by_store_) return IndexUpdate();
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
    OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_writing()));
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
    OPTRAIL_ASSIGN_OR_RETURN(
        IndexWriter writer,
        IndexWriter::Create(
            *db_, "UPDATE series SET runs = runs + ? WHERE series = ?"));
    OPTRAIL_ASSIGN_OR_RETURN(
        Statement add_file,
        db_->Prepare("INSERT INTO files VALUES (?, ?, ?, ?, ?)"));
    if (add.size() > kFilesPerTransaction) add.resize(kFilesPerTransaction);
    for (const FileState* file : add) {
      absl::StatusOr<proto::Run> run =
          file->reason.empty()
              ? history_.ReadRunFile(JoinPath(history_.dir(), file->path))
              : absl::DataLossError(file->reason);
      add_file.With(file->path, file->size_bytes, file->inode,
                    file->modified_unix_ns, nullptr);
      if (!run.ok()) {
        add_file.With(file->path, file->size_bytes, file->inode,
                      file->modified_unix_ns, run.status().message());
      }
      OPTRAIL_RETURN_IF_ERROR(add_file.Run());
      if (run.ok()) {
        OPTRAIL_RETURN_IF_ERROR(writer.AddRun(file->path, *std::move(run)));
      }
      ++update.added;
    }
    OPTRAIL_RETURN_IF_ERROR(writer.Finish());
    OPTRAIL_RETURN_IF_ERROR(transaction.Commit());
  }
}

}  // namespace optrail::tracker
