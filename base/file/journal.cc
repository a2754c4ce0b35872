#include "base/file/journal.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

constexpr absl::string_view kMagic = "optrailj";
constexpr uint32_t kVersion = 1;
constexpr int64_t kFileHeaderBytes = 16;

constexpr absl::string_view kRecordMark = "\xa5rec";
constexpr int64_t kRecordHeaderBytes = 20;

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

std::string FileHeader() {
  std::string header(kMagic);
  AppendLittleEndian(kVersion, 4, &header);
  AppendLittleEndian(Crc32c(header), 4, &header);
  return header;
}

// `length_and_batch` are the 12 bytes of the record's header.
uint32_t RecordCrc(int64_t offset, absl::string_view length_and_batch,
                   absl::string_view payload) {
  std::string position;
  AppendLittleEndian(static_cast<uint64_t>(offset), 8, &position);
  return ExtendCrc32c(ExtendCrc32c(Crc32c(position), length_and_batch),
                      payload);
}

void AppendRecord(int64_t offset, int64_t batch, absl::string_view payload,
                  std::string* out) {
  std::string length_and_batch;
  AppendLittleEndian(payload.size(), 4, &length_and_batch);
  AppendLittleEndian(static_cast<uint64_t>(batch), 8, &length_and_batch);
  out->append(kRecordMark.data(), kRecordMark.size());
  out->append(length_and_batch);
  AppendLittleEndian(RecordCrc(offset, length_and_batch, payload), 4, out);
  out->append(payload.data(), payload.size());
}

struct Record {
  int64_t batch;
  absl::string_view payload;
};

// The record at `offset`, if there is a whole and undamaged one.
std::optional<Record> RecordAt(absl::string_view file, int64_t offset) {
  const absl::string_view rest = file.substr(static_cast<size_t>(offset));
  if (rest.size() < kRecordHeaderBytes ||
      !absl::StartsWith(rest, kRecordMark)) {
    return std::nullopt;
  }
  const absl::string_view length_and_batch = rest.substr(4, 12);
  const uint64_t length = LittleEndian(length_and_batch.substr(0, 4));
  if (length > rest.size() - kRecordHeaderBytes) return std::nullopt;
  Record record;
  record.batch = static_cast<int64_t>(LittleEndian(rest.substr(8, 8)));
  record.payload = rest.substr(kRecordHeaderBytes, length);
  if (LittleEndian(rest.substr(16, 4)) !=
      RecordCrc(offset, length_and_batch, record.payload)) {
    return std::nullopt;
  }
  return record;
}

struct Scan {
  JournalContents contents;
  int64_t good_bytes = 0;  // what counts, the file header among it
};

absl::StatusOr<Scan> ScanFile(absl::string_view file, absl::string_view path) {
  Scan scan;
  if (!absl::StartsWith(file, kMagic)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is not an Optrail journal: it does not begin with ", "\"",
        kMagic, "\""));
  }
  // The header was complete before the file had its name: it is never torn.
  if (file.size() < kFileHeaderBytes ||
      LittleEndian(file.substr(12, 4)) != Crc32c(file.substr(0, 12))) {
    return absl::DataLossError(
        absl::StrCat(path, ": the header of the journal (the first ",
                     kFileHeaderBytes, " bytes) is damaged"));
  }
  if (const uint64_t version = LittleEndian(file.substr(8, 4));
      version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a journal of version ", version,
                     "; this program reads version ", kVersion));
  }

  int64_t offset = kFileHeaderBytes;
  while (const std::optional<Record> record = RecordAt(file, offset)) {
    scan.contents.records.emplace_back(record->payload);
    offset += kRecordHeaderBytes + static_cast<int64_t>(record->payload.size());
  }
  scan.good_bytes = offset;
  scan.contents.ignored_bytes = static_cast<int64_t>(file.size()) - offset;

  // A later batch proves that the one here was synced: this is no torn tail.
  for (size_t next = file.find(kRecordMark, static_cast<size_t>(offset) + 1);
       next != absl::string_view::npos;
       next = file.find(kRecordMark, next + 1)) {
    const std::optional<Record> later =
        RecordAt(file, static_cast<int64_t>(next));
    if (later.has_value() && later->batch > offset) {
      return absl::DataLossError(absl::StrCat(
          path, ": the record at offset ", offset,
          " is damaged, though a whole one follows at offset ", next,
          "; nothing was changed. ", scan.contents.records.size(),
          " records come before it"));
    }
  }
  return scan;
}

constexpr char kHeldPayload[] = "optrail/journal_held";

absl::Status HeldByAnother(const std::string& message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kHeldPayload, absl::Cord("1"));
  return status;
}

}  // namespace

bool IsHeldByAnother(const absl::Status& status) {
  return status.GetPayload(kHeldPayload).has_value();
}

absl::StatusOr<JournalContents> ReadJournal(const std::string& path,
                                            FileSystem* fs) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string file, ReadFile(path, fs));
  OPTRAIL_ASSIGN_OR_RETURN(Scan scan, ScanFile(file, path));
  return std::move(scan.contents);
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path,
                                                       FileSystem* fs) {
  if (!FileExists(path, fs)) {
    const absl::Status status = WriteNewFileAtomically(path, FileHeader(), fs);
    // Somebody else may have been faster.
    if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  }
  const int fd = fs->Open(path, O_RDWR | O_APPEND, 0);
  if (fd < 0) return FileError("opening journal", path, errno);
  std::unique_ptr<Journal> journal(new Journal(path, fd, fs));
  while (fs->Lock(fd, /*wait=*/false) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return FileError("locking journal", path, errno);
    const int64_t holder = fs->LockHolder(fd);
    return HeldByAnother(absl::StrCat(
        "journal ", path, " is being written by ",
        holder > 0 ? absl::StrCat("process ", holder) : "another process"));
  }
  // Whoever held the lock until now may have removed or replaced the file.
  FileInfo ours, named;
  if (fs->StatDescriptor(fd, &ours) != 0 || fs->Stat(path, &named) != 0 ||
      ours.inode != named.inode) {
    return HeldByAnother(absl::StrCat(
        "journal ", path, " was removed or replaced while it was opened"));
  }
  OPTRAIL_RETURN_IF_ERROR(journal->Load());
  return journal;
}

Journal::~Journal() { fs_->Close(fd_); }

absl::Status Journal::Load() {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string file, ReadFile(path_, fs_));
  OPTRAIL_ASSIGN_OR_RETURN(Scan scan, ScanFile(file, path_));
  records_ = std::move(scan.contents.records);
  ignored_bytes_ = scan.contents.ignored_bytes;
  size_bytes_ = scan.good_bytes;
  if (ignored_bytes_ > 0 && fs_->Truncate(fd_, size_bytes_) != 0) {
    return FileError("truncating journal", path_, errno);
  }
  // What was read may never have been synced and is about to count; nor may
  // the name of the file have been.
  if (fs_->Sync(fd_) != 0) return FileError("syncing journal", path_, errno);
  return SyncDirectory(DirectoryOf(path_), fs_);
}

absl::Status Journal::Append(absl::string_view record) {
  OPTRAIL_RETURN_IF_ERROR(broken_);
  if (static_cast<int64_t>(record.size()) > kMaxJournalRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "appending to journal ", path_, ": a record of ", record.size(),
        " bytes; the most is ", kMaxJournalRecordBytes));
  }
  AppendRecord(size_bytes_ + static_cast<int64_t>(queue_.size()), size_bytes_,
               record, &queue_);
  return absl::OkStatus();
}

absl::Status Journal::Sync() {
  OPTRAIL_RETURN_IF_ERROR(broken_);
  if (queue_.empty()) return absl::OkStatus();
  absl::string_view rest = queue_;
  while (!rest.empty()) {
    const ssize_t written = fs_->Write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    const absl::Status status = FileError("writing journal", path_, errno);
    // Half a batch must not stand before the next one.
    if (fs_->Truncate(fd_, size_bytes_) != 0) {
      broken_ =
          FileError("restoring journal after a failed write to", path_, errno);
    }
    return status;
  }
  if (fs_->Sync(fd_) != 0) {
    broken_ = FileError("syncing journal", path_, errno);
    return broken_;
  }
  ++syncs_;
  size_bytes_ += static_cast<int64_t>(queue_.size());
  queue_.clear();
  return absl::OkStatus();
}

absl::Status Journal::AppendAndSync(absl::string_view record) {
  OPTRAIL_RETURN_IF_ERROR(Append(record));
  return Sync();
}

}  // namespace optrail
