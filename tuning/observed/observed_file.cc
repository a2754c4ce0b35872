#include "tuning/observed/observed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

constexpr char kMagic[16] = "optrail calls 1";
constexpr char kSuffix[] = ".observed";
constexpr size_t kHeaderBytes = 4096;
constexpr int kRecordsReserved = 256;  // at a time
constexpr int kFields = 8;             // of a key's text, with tabs between
constexpr const char* kSourceNames[kObservedSources] = {
    "exact",    "other shape", "other hardware", "default",
    "caller's", "refused",     "bucket"};

std::string TextOf(const ObservedKey& key) {
  return absl::StrJoin(
      std::make_tuple(key.op, key.shape, key.device, key.backend,
                      key.cache_mode, key.hardware_id, key.threads,
                      static_cast<int>(key.source)),
      "\t");
}

absl::StatusOr<ObservedKey> ParseText(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\t');
  ObservedKey key;
  int source = 0;
  if (parts.size() != kFields || !absl::SimpleAtoi(parts[6], &key.threads) ||
      !absl::SimpleAtoi(parts[7], &source) || source < 0 ||
      source >= kObservedSources) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::StrReplaceAll(text, {{"\t", " "}}),
                     "\" is no operator, shape and how a lookup ended"));
  }
  key.op = parts[0];
  key.shape = parts[1];
  key.device = parts[2];
  key.backend = parts[3];
  key.cache_mode = parts[4];
  key.hardware_id = parts[5];
  key.source = static_cast<ObservedSource>(source);
  return key;
}

absl::Status SystemError(const std::string& path, const char* what, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

}  // namespace

absl::string_view ObservedSourceName(ObservedSource source) {
  return kSourceNames[static_cast<int>(source)];
}

bool ObservedKey::operator<(const ObservedKey& other) const {
  return std::tie(op, shape, device, backend, cache_mode, hardware_id, threads,
                  source) < std::tie(other.op, other.shape, other.device,
                                     other.backend, other.cache_mode,
                                     other.hardware_id, other.threads,
                                     other.source);
}

struct ObservedFile::Header {
  char magic[16];
  uint64_t record_bytes;
  std::atomic<uint64_t> records;  // that were begun
};

// All zeros but the key's text, which is complete where `ready` is 1.
struct ObservedFile::Record {
  char text[508];
  std::atomic<uint32_t> ready;
  ObservedCounter counter;
};

absl::StatusOr<std::unique_ptr<ObservedFile>> ObservedFile::Create(
    const std::string& folder) {
  static_assert(sizeof(Record) == 1024 && sizeof(Header) <= kHeaderBytes);
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder));
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  const std::string path =
      JoinPath(folder, absl::StrCat(host, "-", getpid(), "-",
                                    absl::ToUnixMicros(absl::Now()), kSuffix));
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return SystemError(path, "cannot be created", errno);
  std::unique_ptr<ObservedFile> file(new ObservedFile(path, descriptor));
  if (const absl::Status mapped = file->Map(); !mapped.ok()) {
    unlink(path.c_str());
    return mapped;
  }
  return file;
}

absl::Status ObservedFile::Map() {
  const size_t bytes = kHeaderBytes + kMostKeys * sizeof(Record);
  if (const int error = posix_fallocate(
          descriptor_, 0, kHeaderBytes + kRecordsReserved * sizeof(Record))) {
    return SystemError(path_, "no room", error);
  }
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) return SystemError(path_, "not mapped", errno);
  header_ = static_cast<Header*>(memory);
  records_ =
      reinterpret_cast<Record*>(static_cast<char*>(memory) + kHeaderBytes);
  header_->record_bytes = sizeof(Record);
  NewRecord(TextOf(ObservedKey()));  // of what has no other
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header_->magic, kMagic, sizeof(kMagic));
  return absl::OkStatus();
}

ObservedFile::~ObservedFile() {
  if (header_ != nullptr) {
    munmap(header_, kHeaderBytes + kMostKeys * sizeof(Record));
  }
  close(descriptor_);
}

ObservedFile::Record* ObservedFile::NewRecord(const std::string& text) {
  if (text.size() >= sizeof(Record::text) ||
      std::count(text.begin(), text.end(), '\t') != kFields - 1) {
    return nullptr;
  }
  // Processes that were forked begin records, too.
  const uint64_t i = header_->records.fetch_add(1, std::memory_order_relaxed);
  if (i >= kMostKeys) {
    header_->records.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (i >= reserved_) {
    const uint64_t first = i / kRecordsReserved * kRecordsReserved;
    if (posix_fallocate(
            descriptor_,
            static_cast<off_t>(kHeaderBytes + first * sizeof(Record)),
            kRecordsReserved * sizeof(Record)) != 0) {
      return nullptr;
    }
    reserved_ = first + kRecordsReserved;
  }
  Record& record = records_[i];
  std::memcpy(record.text, text.c_str(), text.size() + 1);
  record.ready.store(1, std::memory_order_release);
  return &record;
}

ObservedCounter* ObservedFile::CounterOf(const ObservedKey& key) {
  const std::string text = TextOf(key);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = counters_.find(text);
  if (found != counters_.end()) return found->second;
  Record* const record = NewRecord(text);
  if (record == nullptr) return &records_[0].counter;
  return counters_[text] = &record->counter;
}

absl::Status ObservedFile::Read(const std::string& path,
                                std::vector<ObservedRow>* rows) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", why,
                     ", expected a file that liboptrail "
                     "wrote while OPTRAIL_OBSERVE was set"));
  };
  // Written last: without it the process was killed before it counted anything.
  if (bytes.substr(0, sizeof(kMagic)).find_first_not_of('\0') ==
      std::string::npos) {
    return absl::OkStatus();
  }
  if (bytes.size() < kHeaderBytes) return refuse("too short");
  Header header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.record_bytes != sizeof(Record)) {
    return refuse("no counts of calls of this version");
  }
  const size_t count = std::min<size_t>(
      header.records.load(), (bytes.size() - kHeaderBytes) / sizeof(Record));
  for (size_t i = 0; i < count; ++i) {
    auto record = std::make_unique<Record>();
    std::memcpy(static_cast<void*>(record.get()),
                bytes.data() + kHeaderBytes + i * sizeof(Record),
                sizeof(Record));
    if (record->ready.load() != 1) continue;  // its writer was killed
    record->text[sizeof(record->text) - 1] = '\0';
    ObservedRow row;
    const absl::StatusOr<ObservedKey> key = ParseText(record->text);
    if (!key.ok()) return refuse(key.status().message());
    row.key = *key;
    for (const ObservedCounter::Counts& counts : record->counter.shards_) {
      row.lookups += static_cast<int64_t>(counts.lookups.load());
      row.runs += static_cast<int64_t>(counts.runs.load());
      row.timed_runs += static_cast<int64_t>(counts.timed_runs.load());
      row.ns += static_cast<double>(counts.ns.load());
    }
    if (row.lookups + row.runs > 0) rows->push_back(std::move(row));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ObservedRow>> ReadObservedFiles(
    const std::vector<std::string>& paths) {
  std::vector<ObservedRow> all;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      OPTRAIL_RETURN_IF_ERROR(ObservedFile::Read(path, &all));
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ListDirectory(path));
    bool found = false;
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, kSuffix)) continue;
      found = true;
      OPTRAIL_RETURN_IF_ERROR(ObservedFile::Read(JoinPath(path, name), &all));
    }
    if (!found) {
      return absl::NotFoundError(
          absl::StrCat(path, ": no file *", kSuffix,
                       "; next: run the program with OPTRAIL_OBSERVE=", path));
    }
  }
  std::map<ObservedKey, ObservedRow> by_key;
  for (const ObservedRow& row : all) {
    ObservedRow& sum = by_key.try_emplace(row.key).first->second;
    sum.key = row.key;
    sum.lookups += row.lookups;
    sum.runs += row.runs;
    sum.timed_runs += row.timed_runs;
    sum.ns += row.ns;
  }
  std::vector<ObservedRow> rows;
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ObservedRow& a, const ObservedRow& b) {
                     return a.calls() > b.calls();
                   });
  return rows;
}

}  // namespace optrail::tuning
