#include "tracker/history/record_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/file/writable_folder.h"
#include "base/status_macros.h"
#include "tracker/history/sql.h"

namespace optrail::tracker {
namespace {

StoreOpener url_store_opener = nullptr;

// Collects the names of temporary files below `dir`; folders that can't be
// listed have been reported by then.
void FindTemporaries(const std::string& dir, FileSystem* fs,
                     std::vector<std::string>* found) {
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return;
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    if (IsTemporaryName(name)) {
      found->push_back(path);
    } else if (fs->LinkStat(path, &info) == 0 && info.is_directory) {
      FindTemporaries(path, fs, found);
    }
  }
}

class FileStore : public RecordStore {
 public:
  FileStore(std::string dir, FileSystem* fs)
      : RecordStore(std::move(dir)), fs_(fs) {}

  absl::StatusOr<RecordFiles> List(absl::string_view folder) const override {
    return ListRecordFiles(dir(), folder, fs_);
  }
  absl::StatusOr<std::string> Read(const std::string& place) const override {
    OPTRAIL_RETURN_IF_ERROR(CheckFoldersOf(dir(), place, fs_));
    return ReadRecordFile(place, fs_);
  }
  absl::StatusOr<bool> Has(const std::string& place) const override {
    FileInfo info;
    return fs_->LinkStat(place, &info) == 0;
  }
  absl::Status Put(const std::string& place,
                   const std::string& bytes) const override {
    OPTRAIL_RETURN_IF_ERROR(PrepareFolderOf(dir(), place, fs_));
    return WriteNewFileAtomically(place, bytes, fs_);
  }
  absl::Status Replace(const std::string& place,
                       const std::string& bytes) const override {
    OPTRAIL_RETURN_IF_ERROR(PrepareFolderOf(dir(), place, fs_));
    return WriteFileAtomically(place, bytes, fs_);
  }
  absl::Status Remove(const std::string& place) const override {
    OPTRAIL_RETURN_IF_ERROR(CheckFoldersOf(dir(), place, fs_));
    return RemoveFile(place, fs_);
  }
  absl::StatusOr<std::string> MoveToQuarantine(
      const std::string& place, absl::string_view reason) const override {
    return tracker::MoveToQuarantine(dir(), place, reason, fs_);
  }
  std::vector<std::string> Leftovers() const override {
    std::vector<std::string> found;
    FindTemporaries(dir(), fs_, &found);
    return found;
  }
  absl::Status CheckIsWritable() const override {
    return CheckFolderIsWritable(dir(), fs_);
  }
  absl::StatusOr<std::shared_ptr<void>> Lock() const override {
    const int folder = open(dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return std::shared_ptr<void>();
    // Where the file system has no locks, imports at once are the caller's.
    while (flock(folder, LOCK_EX) != 0 && errno == EINTR) {
    }
    return std::shared_ptr<void>(nullptr, [folder](void*) { close(folder); });
  }

  std::string index_folder() const override {
    return fs_ == FileSystem::Real() ? dir() : "";
  }

 private:
  FileSystem* fs_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Database>> RecordStore::OpenIndex() const {
  return std::shared_ptr<Database>();
}

absl::Status RecordStore::RebuildIndex() const {
  return absl::UnimplementedError(
      absl::StrCat(dir(), ": it keeps no index of its own"));
}

bool IsStoreUrl(absl::string_view name) {
  return absl::StartsWith(name, "postgresql://") ||
         absl::StartsWith(name, "postgres://");
}

bool RegisterUrlStore(StoreOpener opener) {
  url_store_opener = opener;
  return true;
}

absl::StatusOr<std::shared_ptr<const RecordStore>> OpenRecordStore(
    absl::string_view name, FileSystem* fs) {
  if (IsStoreUrl(name)) {
    if (url_store_opener != nullptr) return url_store_opener(name);
    return absl::UnimplementedError(
        "--history=postgresql://...: this program was built without "
        "PostgreSQL; next: use `optrail`, or a folder");
  }
  const std::string path(name);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "history: expected the path of a folder, found ''");
  }
  FileInfo info;
  if (fs->Stat(path, &info) == 0 && !info.is_directory) {
    return absl::FailedPreconditionError(
        absl::StrCat("history ", path,
                     ": expected a folder, found a file; next: "
                     "name the folder that `optrail bench --record` or "
                     "`optrail import` filled"));
  }
  return std::make_shared<const FileStore>(path, fs);
}

absl::Status CheckHistoryIsWritable(const std::string& name) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto store, OpenRecordStore(name));
  return store->CheckIsWritable();
}

}  // namespace optrail::tracker
