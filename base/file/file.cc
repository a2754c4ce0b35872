#include "base/file/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

constexpr absl::string_view kTemporaryMark = ".tmp-";

// Closes a descriptor at the end of a scope.
class ScopedDescriptor {
 public:
  ScopedDescriptor(int fd, FileSystem* fs) : fd_(fd), fs_(fs) {}
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  ~ScopedDescriptor() {
    if (fd_ >= 0) fs_->Close(fd_);
  }
  int get() const { return fd_; }
  int Close() { return fs_->Close(std::exchange(fd_, -1)); }

 private:
  int fd_;
  FileSystem* const fs_;
};

// Repeats a call that a signal interrupted.
template <typename Call>
auto Retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// No two writes of this or any living process share a name.
std::string TemporaryNameFor(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const uint64_t nonce =
      static_cast<uint64_t>(absl::GetCurrentTimeNanos()) + ++counter;
  return JoinPath(DirectoryOf(path),
                  absl::StrFormat(".%s%s%d-%x", FileNameOf(path),
                                  kTemporaryMark, getpid(), nonce));
}

absl::Status WriteAll(int fd, const std::string& path,
                      absl::string_view contents, FileSystem* fs) {
  while (!contents.empty()) {
    const ssize_t written =
        Retry([&] { return fs->Write(fd, contents.data(), contents.size()); });
    if (written < 0) return FileError("writing", path, errno);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Creates `temporary` with `contents` and makes the contents durable. Errors
// name `path`, the file that it is for.
absl::Status WriteTemporary(const std::string& temporary,
                            const std::string& path, absl::string_view contents,
                            FileSystem* fs) {
  ScopedDescriptor fd(Retry([&] {
                        return fs->Open(temporary, O_WRONLY | O_CREAT | O_EXCL,
                                        0666);
                      }),
                      fs);
  if (fd.get() < 0 && errno == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", DirectoryOf(path),
                     " to write to; next: create it, or choose another one"));
  }
  if (fd.get() < 0) return FileError("creating", path, errno);
  OPTRAIL_RETURN_IF_ERROR(WriteAll(fd.get(), path, contents, fs));
  if (Retry([&] { return fs->Sync(fd.get()); }) != 0) {
    return FileError("syncing", path, errno);
  }
  if (fd.Close() != 0) return FileError("closing", path, errno);
  return absl::OkStatus();
}

// Makes `temporary` the file `path` that must be new. Unlike rename, link fails
// where the name is taken; where the file system has no hard links (FAT, some
// network and FUSE file systems), writers take turns by a lock in the folder,
// look, and rename.
absl::Status PublishNew(const std::string& temporary, const std::string& path,
                        FileSystem* fs) {
  const auto already_exists = [&path] {
    return absl::AlreadyExistsError(
        absl::StrCat("writing ", path, ": there is such a file already"));
  };
  if (fs->Link(temporary, path) == 0) return absl::OkStatus();
  if (errno == EEXIST) return already_exists();
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS &&
      errno != EMLINK) {
    return FileError("creating", path, errno);
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const FileLock turn,
      FileLock::Wait(JoinPath(DirectoryOf(path),
                              absl::StrCat(".new", kTemporaryMark, "lock")),
                     fs));
  FileInfo info;
  if (fs->Stat(path, &info) == 0) return already_exists();
  if (errno != ENOENT) return FileError("looking at", path, errno);
  if (fs->Rename(temporary, path) != 0) {
    return FileError("replacing", path, errno);
  }
  return absl::OkStatus();
}

// The entry of a folder that is there may not be durable yet: who made it died
// before the sync, or has not come to it. A parent that this process may not
// open is one that it put nothing into.
absl::Status SyncEntryOf(const std::string& dir, FileSystem* fs) {
  const ScopedDescriptor fd(Retry([&] {
                              return fs->Open(DirectoryOf(dir),
                                              O_RDONLY | O_DIRECTORY, 0);
                            }),
                            fs);
  const bool failed =
      fd.get() < 0 || Retry([&] { return fs->Sync(fd.get()); }) != 0;
  if (!failed || errno == EACCES || errno == EPERM || errno == EROFS ||
      errno == EINVAL) {
    return absl::OkStatus();
  }
  return FileError("syncing the folder of", dir, errno);
}

absl::Status CheckFileName(const std::string& path) {
  const absl::string_view name = FileNameOf(path);
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat("writing ", path, ": not a file name"));
  }
  return absl::OkStatus();
}

// Up to the end; files grow and devices have none.
absl::StatusOr<std::string> ReadDescriptor(int fd, const std::string& path,
                                           int64_t most_bytes, FileSystem* fs) {
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(absl::StrCat(
        "reading ", path, ": it has more than ", most_bytes, " bytes"));
  };
  // The size is a hint: /proc says 0.
  FileInfo info;
  size_t hint = 0;
  if (fs->StatDescriptor(fd, &info) == 0 && info.size_bytes > 0) {
    if (info.size_bytes > most_bytes) return too_large();
    hint = static_cast<size_t>(info.size_bytes);
  }
  std::string contents;
  size_t size = 0;
  while (true) {
    // One byte more than expected, so that the end shows without more memory.
    if (size == contents.size()) {
      contents.resize(std::max(size + 4096, hint + 1));
    }
    const ssize_t n = Retry(
        [&] { return fs->Read(fd, &contents[size], contents.size() - size); });
    if (n < 0) return FileError("reading", path, errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
    if (static_cast<int64_t>(size) > most_bytes) return too_large();
  }
  contents.resize(size);
  return contents;
}

bool IsAbsence(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR ||
         error_number == ELOOP;
}

absl::Status ListInto(const std::string& dir, absl::string_view suffix,
                      FileSystem* fs, std::set<uint64_t>* visited,
                      std::vector<std::string>* paths) {
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return FileError("listing", dir, errno);
  for (const std::string& name : names) {
    if (IsTemporaryName(name)) continue;
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    if (fs->Stat(path, &info) != 0) {
      // What vanished since it was listed, or leads nowhere, is not there; what
      // cannot be looked at is.
      if (IsAbsence(errno)) continue;
      return FileError("looking at", path, errno);
    }
    if (info.is_directory) {
      // A link may lead back to a folder above it.
      const bool is_new = visited->insert(info.inode).second;
      FileInfo itself;
      if (!is_new && fs->LinkStat(path, &itself) == 0 && itself.is_link) {
        continue;
      }
      OPTRAIL_RETURN_IF_ERROR(ListInto(path, suffix, fs, visited, paths));
    } else if (absl::EndsWith(name, suffix)) {
      paths->push_back(path);
    }
  }
  return absl::OkStatus();
}

}  // namespace

// The payload of errors about a file, for failed_file.cc: "2 no/such/file".
extern const char kFilePayload[];
const char kFilePayload[] = "optrail/file";

absl::Status FileError(absl::string_view action, absl::string_view path,
                       int error_number) {
  absl::Status status =
      absl::ErrnoToStatus(error_number, absl::StrCat(action, " ", path));
  status.SetPayload(kFilePayload,
                    absl::Cord(absl::StrCat(error_number, " ", path)));
  return status;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, FileSystem* fs) {
  const ScopedDescriptor fd(Retry([&] { return fs->Open(path, O_RDONLY, 0); }),
                            fs);
  if (fd.get() < 0) return FileError("opening", path, errno);
  return ReadDescriptor(fd.get(), path, kMostFileBytes, fs);
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path,
                                            int64_t most_bytes,
                                            FileSystem* fs) {
  const auto not_regular = [&] {
    return absl::FailedPreconditionError(
        absl::StrCat("reading ", path, ": it is no regular file"));
  };
  // Without O_NONBLOCK a pipe is only opened once somebody writes into it.
  const ScopedDescriptor fd(
      Retry([&] {
        return fs->Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
      }),
      fs);
  if (fd.get() < 0) {
    // O_NOFOLLOW sets ELOOP for a link, and open sets ENXIO for a socket.
    if (errno == ELOOP || errno == ENXIO) return not_regular();
    return FileError("opening", path, errno);
  }
  FileInfo info;
  if (fs->StatDescriptor(fd.get(), &info) != 0) {
    return FileError("looking at", path, errno);
  }
  if (!info.is_regular) return not_regular();
  return ReadDescriptor(fd.get(), path, most_bytes, fs);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents, FileSystem* fs) {
  OPTRAIL_RETURN_IF_ERROR(CheckFileName(path));
  const std::string temporary = TemporaryNameFor(path);
  absl::Status status = WriteTemporary(temporary, path, contents, fs);
  if (status.ok() && fs->Rename(temporary, path) != 0) {
    status = FileError("replacing", path, errno);
  }
  if (!status.ok()) {
    fs->Unlink(temporary);
    return status;
  }
  return SyncDirectory(DirectoryOf(path), fs);
}

bool IsStream(const std::string& path, FileSystem* fs) {
  // "/dev/stdout" may be a file that is not to be replaced; below /dev/shm are
  // files as anywhere.
  if ((absl::StartsWith(path, "/dev/") &&
       !absl::StartsWith(path, "/dev/shm/")) ||
      absl::StartsWith(path, "/proc/")) {
    return true;
  }
  FileInfo info;
  return fs->Stat(path, &info) == 0 && !info.is_regular && !info.is_directory;
}

absl::Status WriteOutput(const std::string& path, absl::string_view contents,
                         FileSystem* fs) {
  if (!IsStream(path, fs)) return WriteFileAtomically(path, contents, fs);
  ScopedDescriptor fd(Retry([&] { return fs->Open(path, O_WRONLY, 0); }), fs);
  if (fd.get() < 0) return FileError("opening", path, errno);
  OPTRAIL_RETURN_IF_ERROR(WriteAll(fd.get(), path, contents, fs));
  if (fd.Close() != 0) return FileError("closing", path, errno);
  return absl::OkStatus();
}

absl::Status WriteNewFileAtomically(const std::string& path,
                                    absl::string_view contents,
                                    FileSystem* fs) {
  OPTRAIL_RETURN_IF_ERROR(CheckFileName(path));
  const std::string temporary = TemporaryNameFor(path);
  absl::Status status = WriteTemporary(temporary, path, contents, fs);
  if (status.ok()) status = PublishNew(temporary, path, fs);
  fs->Unlink(temporary);
  if (!status.ok()) return status;
  return SyncDirectory(DirectoryOf(path), fs);
}

absl::Status CreateDirectories(const std::string& path, FileSystem* fs) {
  FileInfo info;
  if (fs->Stat(path, &info) == 0) {
    // Its parents are durable: whoever made it synced them before.
    if (info.is_directory) return SyncEntryOf(path, fs);
    return absl::FailedPreconditionError(
        absl::StrCat("creating folder ", path, ": it is a file"));
  }
  if (errno != ENOENT) return FileError("creating folder", path, errno);
  const std::string parent = DirectoryOf(path);
  if (parent != path) OPTRAIL_RETURN_IF_ERROR(CreateDirectories(parent, fs));
  // Somebody else may have been faster.
  if (fs->MakeDirectory(path, 0777) != 0 && errno != EEXIST) {
    return FileError("creating folder", path, errno);
  }
  return SyncDirectory(parent, fs);
}

absl::Status SyncDirectory(const std::string& dir, FileSystem* fs) {
  const ScopedDescriptor fd(
      Retry([&] { return fs->Open(dir, O_RDONLY | O_DIRECTORY, 0); }), fs);
  if (fd.get() < 0) return FileError("opening folder", dir, errno);
  if (Retry([&] { return fs->Sync(fd.get()); }) != 0) {
    return FileError("syncing folder", dir, errno);
  }
  return absl::OkStatus();
}

bool IsTemporaryName(absl::string_view name) {
  name = FileNameOf(name);
  return absl::StartsWith(name, ".") && absl::StrContains(name, kTemporaryMark);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& dir,
                                                       FileSystem* fs) {
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return FileError("listing", dir, errno);
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) {
                               return IsTemporaryName(name);
                             }),
              names.end());
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> ListRecursively(
    const std::string& dir, absl::string_view suffix, FileSystem* fs) {
  std::vector<std::string> paths;
  FileInfo info;
  if (fs->Stat(dir, &info) != 0) {
    if (IsAbsence(errno)) return paths;
    return FileError("looking at", dir, errno);
  }
  std::set<uint64_t> visited = {info.inode};
  OPTRAIL_RETURN_IF_ERROR(ListInto(dir, suffix, fs, &visited, &paths));
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool FileExists(const std::string& path, FileSystem* fs) {
  FileInfo info;
  return fs->Stat(path, &info) == 0;
}

absl::Status RemoveFile(const std::string& path, FileSystem* fs) {
  if (fs->Unlink(path) != 0) return FileError("removing", path, errno);
  return SyncDirectory(DirectoryOf(path), fs);
}

std::string JoinPath(absl::string_view dir, absl::string_view name) {
  if (dir.empty() || absl::StartsWith(name, "/")) return std::string(name);
  if (name.empty()) return std::string(dir);
  return absl::StrCat(dir, absl::EndsWith(dir, "/") ? "" : "/", name);
}

std::string DirectoryOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

absl::string_view FileNameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, bool wait,
                                           FileSystem* fs) {
  const int fd = Retry(
      [&] { return fs->Open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666); });
  if (fd < 0) return FileError("opening", path, errno);
  FileLock lock(fd, fs);
  if (Retry([&] { return fs->Lock(fd, wait); }) == 0) return lock;
  if (errno != EWOULDBLOCK) return FileError("locking", path, errno);
  const int64_t holder = fs->LockHolder(fd);
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is locked by ",
      holder > 0 ? absl::StrCat("process ", holder) : "another process"));
}

absl::StatusOr<FileLock> FileLock::Try(const std::string& path,
                                       FileSystem* fs) {
  return Acquire(path, /*wait=*/false, fs);
}

absl::StatusOr<FileLock> FileLock::Wait(const std::string& path,
                                        FileSystem* fs) {
  return Acquire(path, /*wait=*/true, fs);
}

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), fs_(other.fs_) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(fs_, other.fs_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) fs_->Close(fd_);
}

}  // namespace optrail
