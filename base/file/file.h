#ifndef OPTRAIL_BASE_FILE_FILE_H_
#define OPTRAIL_BASE_FILE_FILE_H_

// Whole files that survive a crash: readers see the old contents or the new
// ones, never half, and what was written successfully is on the disk.
//
//   OPTRAIL_RETURN_IF_ERROR(CreateDirectories(dir));
//   OPTRAIL_RETURN_IF_ERROR(
//       WriteFileAtomically(JoinPath(dir, "best.textproto"), text));
//
// All errors name the path, what failed and the system's reason. Files that
// grow record by record are journals (base/file/journal.h).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file/file_system.h"

namespace optrail {

// The whole contents, of a pipe too: it waits for its writers. NotFound where
// there is no such file, ResourceExhausted where there are more than
// kMostFileBytes: a device without an end must not fill the memory.
inline constexpr int64_t kMostFileBytes = 1LL << 30;
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     FileSystem* fs = FileSystem::Real());

// The same for files that others may have put there. `path` must name a regular
// file, not a link to one: FailedPrecondition, at once, for links, pipes,
// devices, sockets and folders.
absl::StatusOr<std::string> ReadRegularFile(
    const std::string& path, int64_t most_bytes = kMostFileBytes,
    FileSystem* fs = FileSystem::Real());

// Creates or replaces `path`: writes a temporary file in the same folder, syncs
// it, renames it and syncs the folder. On error the old contents remain (or, if
// only the last sync failed, the new ones may have come) and the temporary is
// removed.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view contents,
                                 FileSystem* fs = FileSystem::Real());

// Writes what somebody asked for at `path`: into a stream as it is, else as
// WriteFileAtomically, which would put a file where /dev/stdout was.
absl::Status WriteOutput(const std::string& path, absl::string_view contents,
                         FileSystem* fs = FileSystem::Real());
// Whether `path` names something of the system (/dev, /proc) or a pipe or
// device: what is written there can't be renamed into place.
bool IsStream(const std::string& path, FileSystem* fs = FileSystem::Real());

// As WriteFileAtomically, for a file that must be new: AlreadyExists, and
// nothing changes, where `path` exists; of two writers at once exactly one
// succeeds.
absl::Status WriteNewFileAtomically(const std::string& path,
                                    absl::string_view contents,
                                    FileSystem* fs = FileSystem::Real());

// Creates `path` and its missing parents and syncs what it created. OK where it
// exists already.
absl::Status CreateDirectories(const std::string& path,
                               FileSystem* fs = FileSystem::Real());

// Makes the names in `dir` durable.
absl::Status SyncDirectory(const std::string& dir,
                           FileSystem* fs = FileSystem::Real());

// Whether `name` (a file name or a path) is one that an atomic write uses
// before its contents are complete: ".NAME.tmp-PID-RANDOM". Such files are left
// behind by crashes and are never data.
bool IsTemporaryName(absl::string_view name);

// Names of the files and folders in `dir`, sorted, without temporaries.
absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::string& dir, FileSystem* fs = FileSystem::Real());

// Paths of the files below `dir` (each begins with `dir`) whose names end in
// `suffix`, sorted, without temporaries. Empty where `dir` does not exist. A
// folder that links lead back to is listed once.
absl::StatusOr<std::vector<std::string>> ListRecursively(
    const std::string& dir, absl::string_view suffix,
    FileSystem* fs = FileSystem::Real());

// Whether there is a file or folder of that name.
bool FileExists(const std::string& path, FileSystem* fs = FileSystem::Real());

// Removes a file durably. NotFound where there is none.
absl::Status RemoveFile(const std::string& path,
                        FileSystem* fs = FileSystem::Real());

// "a", "b" -> "a/b"; an absolute `name` wins; an empty `dir` adds nothing.
std::string JoinPath(absl::string_view dir, absl::string_view name);
template <typename... Rest>
std::string JoinPath(absl::string_view dir, absl::string_view name,
                     Rest... rest) {
  return JoinPath(JoinPath(dir, name), rest...);
}

// "a/b/c" -> "a/b"; "c" -> "."; "/c" -> "/".
std::string DirectoryOf(absl::string_view path);
// "a/b/c.txt" -> "c.txt".
absl::string_view FileNameOf(absl::string_view path);

// An advisory, exclusive lock between processes (flock), released when it is
// destroyed or its process dies. The file is created where missing and stays; a
// symbolic link in its place is an error.
class FileLock {
 public:
  // FailedPrecondition, naming the file and the holder's process id, where
  // somebody else holds the lock.
  static absl::StatusOr<FileLock> Try(const std::string& path,
                                      FileSystem* fs = FileSystem::Real());
  // Waits until the lock is free.
  static absl::StatusOr<FileLock> Wait(const std::string& path,
                                       FileSystem* fs = FileSystem::Real());

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  FileLock(int fd, FileSystem* fs) : fd_(fd), fs_(fs) {}
  static absl::StatusOr<FileLock> Acquire(const std::string& path, bool wait,
                                          FileSystem* fs);

  int fd_;
  FileSystem* fs_;
};

// "writing results.pb: No space left on device", with the code that fits
// `error_number`. For the code of this folder.
absl::Status FileError(absl::string_view action, absl::string_view path,
                       int error_number);

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_FILE_H_
