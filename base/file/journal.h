#ifndef OPTRAIL_BASE_FILE_JOURNAL_H_
#define OPTRAIL_BASE_FILE_JOURNAL_H_

// Journal is a file that grows by records and can be killed at any moment: a
// record counts once Sync has returned OK, and from then on no crash or power
// loss takes it away.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Journal> journal,
//                            Journal::Open(path));
//   for (const std::string& record : journal->records()) Replay(record);
//   OPTRAIL_RETURN_IF_ERROR(journal->Append(trial.SerializeAsString()));
//   OPTRAIL_RETURN_IF_ERROR(journal->Sync());      // now it counts
//
// It is not a database: records have no keys, are read all at once and are
// never changed. One process writes a journal at a time.
//
// Format (all integers little-endian):
//   file    = "optrailj" version:u32=1 crc32c(the 12 bytes before):u32 record*
//   record  = 0xa5 'r' 'e' 'c' length:u32 batch:u64 crc:u32 payload
//   batch   = offset in the file of the first record written by the same Sync
//   crc     = crc32c(offset of the record:u64, length:u32, batch:u64, payload)
// A batch begins only after the one before it was synced, so a record is only
// ever followed by one of a later batch if it was whole once. That tells a torn
// tail (cut off, its records never counted) from corruption (reported). The
// offset in the checksum keeps a record that is quoted in a payload, or was
// left by an earlier file in the same blocks, from passing for one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file/file_system.h"

namespace optrail {

// The largest record Append takes.
inline constexpr int64_t kMaxJournalRecordBytes = int64_t{1} << 30;

struct JournalContents {
  std::vector<std::string> records;
  // Bytes of a torn tail that were not counted as records.
  int64_t ignored_bytes = 0;
};

// Reads a journal without changing or locking it; a writer may be at work.
//   NotFound            there is no such file
//   InvalidArgument     it is not a journal, or of a newer version
//   DataLoss            a record in the middle is damaged; names its offset
absl::StatusOr<JournalContents> ReadJournal(
    const std::string& path, FileSystem* fs = FileSystem::Real());

// Returns whether Journal::Open() failed since another process has the journal:
// the same call succeeds once that process is done with it.
bool IsHeldByAnother(const absl::Status& status);

class Journal {
 public:
  // Opens `path` for appending, creating it where missing, and reads what it
  // holds; a torn tail is cut off. Errors as ReadJournal, and
  // FailedPrecondition, naming the file and the holder's process id, where
  // another writer has it open.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(
      const std::string& path, FileSystem* fs = FileSystem::Real());

  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // Records that were appended but not synced are dropped.
  ~Journal();

  // The records that the file held when it was opened.
  const std::vector<std::string>& records() const { return records_; }
  // How many bytes of torn tail Open cut off.
  int64_t ignored_bytes() const { return ignored_bytes_; }

  // Queues a record for the next Sync; does no I/O.
  absl::Status Append(absl::string_view record);

  // Writes all queued records and waits until they are on the disk. When the
  // write fails (a full disk), the file is as before, the records stay queued
  // and Sync may be tried again. When the disk fails to sync, nobody knows what
  // it holds: this journal then refuses everything until it is opened anew.
  absl::Status Sync();

  // Append and Sync.
  absl::Status AppendAndSync(absl::string_view record);

  const std::string& path() const { return path_; }
  // Bytes in the file that count.
  int64_t size_bytes() const { return size_bytes_; }
  // How often the disk was waited for since Open.
  int64_t syncs() const { return syncs_; }

 private:
  Journal(std::string path, int fd, FileSystem* fs)
      : path_(std::move(path)), fd_(fd), fs_(fs) {}
  absl::Status Load();

  const std::string path_;
  const int fd_;
  FileSystem* const fs_;
  std::vector<std::string> records_;
  int64_t ignored_bytes_ = 0;
  int64_t size_bytes_ = 0;
  int64_t syncs_ = 0;
  std::string queue_;
  absl::Status broken_;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_JOURNAL_H_
