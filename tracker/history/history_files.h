#ifndef OPTRAIL_TRACKER_HISTORY_HISTORY_FILES_H_
#define OPTRAIL_TRACKER_HISTORY_HISTORY_FILES_H_

// Where a history touches the disk, and the only place where an id becomes a
// path. A history may have been merged, pulled or unpacked from anywhere, so
// nothing in it is trusted (docs/reference/threats.md):
//
//   - a path is made of a folder's name and of an id of the one form, so it
//     lies below the history whatever a record says of itself;
//   - below the history's own folder no symbolic link is followed, neither to
//     read nor to write nor to move a file away;
//   - a record is a regular file of a bounded size: pipes, devices, sockets and
//     folders are reported, never opened for long.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const RecordFiles found,
//                            ListRecordFiles(dir, "runs", fs));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes,
//                            ReadRecordFile(found.files[0].path, fs));
//
// It does not look into records: see history.h.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file/file_system.h"

namespace optrail::tracker {

// A larger file is no record, and no larger record is written. (A run of 10,000
// benchmarks in five processes of 100 samples takes about 20 MiB.)
inline constexpr int64_t kMostRecordBytes = 256LL << 20;

// [0-9]{8}T[0-9]{6}Z-[0-9a-f]+, at most 64 characters.
bool IsRecordId(absl::string_view id);

// <dir>/<folder>/2026/20261120T090807Z-1a2b3c4d5e6f.pb. InvalidArgument, naming
// the id, where it is none.
absl::StatusOr<std::string> PlaceOf(absl::string_view dir,
                                    absl::string_view folder,
                                    absl::string_view id);

// What is wrong with a file among the records.
enum class Damage {
  kUnreadable,       // the system does not let it be read, or it is too large
  kNoFile,           // a link, pipe, device, socket, or a folder called x.pb
  kCutOff,           // shorter than it was written, or no record at all
  kChanged,          // its checksum says so: flipped bits, half a merge
  kImpossibleValue,  // NaN, infinite or negative times, samples of no calls, an
                     // id of another form
  kMisplaced,        // it holds a record whose place is elsewhere
  kNewerFormat,      // sound, but only newer code reads it
};

// A file that is no intact record, and why.
struct BadFile {
  std::string path;
  std::string reason;
  Damage damage = Damage::kUnreadable;
  std::string place = {};  // kMisplaced: where it belongs, as PlaceOf says
};

struct RecordFile {
  std::string path;
  FileInfo info;
};

struct RecordFiles {
  std::vector<RecordFile> files;   // by path
  std::vector<BadFile> bad_files;  // what can't be a record, by path
};

// The files below <dir>/<folder> whose names end in ".pb", without temporaries.
// Empty where there is no such folder.
absl::StatusOr<RecordFiles> ListRecordFiles(const std::string& dir,
                                            absl::string_view folder,
                                            FileSystem* fs);

// The bytes of a regular file. FailedPrecondition for anything else,
// ResourceExhausted beyond kMostRecordBytes. Never waits for a writer.
absl::StatusOr<std::string> ReadRecordFile(const std::string& path,
                                           FileSystem* fs);

// FailedPrecondition where a folder between `dir` and the file at `path` below
// it is a symbolic link, NotFound where one is not there.
absl::Status CheckFoldersOf(const std::string& dir, const std::string& path,
                            FileSystem* fs);

// The same, and creates the folders that are missing.
absl::Status PrepareFolderOf(const std::string& dir, const std::string& path,
                             FileSystem* fs);

// Moves whatever is at `path` below `dir` (a link itself, not what it leads to)
// to the same place below <dir>/quarantine, or beside it where that is taken,
// and `reason` with it. The new path.
absl::StatusOr<std::string> MoveToQuarantine(const std::string& dir,
                                             const std::string& path,
                                             absl::string_view reason,
                                             FileSystem* fs);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_HISTORY_FILES_H_
