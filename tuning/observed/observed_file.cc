#include "tuning/observed/observed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/file/read_file_or_link.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

constexpr char kMagic[16] = "optrail calls 2";
constexpr char kSuffix[] = ".observed";
constexpr size_t kHeaderBytes = 4096;
constexpr int kFields = 8;  // of a key's text, with tabs between
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
  uint64_t group_bytes;
  std::atomic<uint64_t> keys;  // that were begun
};

// All zeros but the text, which is complete where `ready` is 1.
struct ObservedFile::Key {
  char text[508];
  std::atomic<uint32_t> ready;
};

// The keys of a group and their counts. Its blocks are reserved together.
struct ObservedFile::Group {
  Key keys[kGroupKeys];
  ObservedCounter lookups[ObservedCounter::kShards][kGroupKeys];
  ObservedCounter::Runs runs[ObservedCounter::kShards][kGroupKeys];
};

absl::StatusOr<std::unique_ptr<ObservedFile>> ObservedFile::Create(
    const std::string& folder) {
  // ObservedCounter::RunsHere() relies on where these lie in pages.
  static_assert(sizeof(Group) % 4096 == 0 &&
                offsetof(Group, lookups) % 4096 == 0 &&
                offsetof(Group, runs) - offsetof(Group, lookups) ==
                    8 * ObservedCounter::kShards * kGroupKeys &&
                8 * kGroupKeys <= 4096 && sizeof(Header) <= kHeaderBytes &&
                kMostKeys % kGroupKeys == 0);
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
  void* const memory = mmap(nullptr, MappedBytes(), PROT_READ | PROT_WRITE,
                            MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) return SystemError(path_, "not mapped", errno);
  header_ = static_cast<Header*>(memory);
  groups_ = reinterpret_cast<Group*>(static_cast<char*>(memory) + kHeaderBytes);
  if (const int error = Reserve(0)) return SystemError(path_, "no room", error);
  header_->group_bytes = sizeof(Group);
  NewCounter(TextOf(ObservedKey()));  // of what has no other
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header_->magic, kMagic, sizeof(kMagic));
  return absl::OkStatus();
}

size_t ObservedFile::MappedBytes() {
  return kHeaderBytes + kMostKeys / kGroupKeys * sizeof(Group);
}

// Returns the number of an error, or 0.
int ObservedFile::Reserve(uint64_t group) {
  if (group < reserved_) return 0;
  // The first one comes with the header.
  const size_t begin = group == 0 ? 0 : kHeaderBytes + group * sizeof(Group);
  const size_t end = kHeaderBytes + (group + 1) * sizeof(Group);
  // Beyond the limit of a file's size, the system would end the process.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      end > limit.rlim_cur) {
    return EFBIG;
  }
  const int error = posix_fallocate(descriptor_, static_cast<off_t>(begin),
                                    static_cast<off_t>(end - begin));
  if (error == 0) reserved_ = group + 1;
  return error;
}

ObservedFile::~ObservedFile() {
  if (header_ != nullptr) munmap(header_, MappedBytes());
  close(descriptor_);
}

ObservedCounter* ObservedFile::NewCounter(const std::string& text) {
  if (text.size() >= sizeof(Key::text) ||
      std::count(text.begin(), text.end(), '\t') != kFields - 1) {
    return nullptr;
  }
  // Processes that were forked begin keys, too.
  const uint64_t i = header_->keys.fetch_add(1, std::memory_order_relaxed);
  if (i >= kMostKeys) {
    header_->keys.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  if (Reserve(i / kGroupKeys) != 0) return nullptr;
  Group& group = groups_[i / kGroupKeys];
  Key& key = group.keys[i % kGroupKeys];
  std::memcpy(key.text, text.c_str(), text.size() + 1);
  key.ready.store(1, std::memory_order_release);
  return &group.lookups[0][i % kGroupKeys];
}

ObservedCounter* ObservedFile::CounterOf(const ObservedKey& key) {
  const std::string text = TextOf(key);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = counters_.find(text);
  if (found != counters_.end()) return found->second;
  ObservedCounter* const counter = NewCounter(text);
  if (counter == nullptr) return &groups_[0].lookups[0][0];
  return counters_[text] = counter;
}

absl::Status ObservedFile::Read(const std::string& path,
                                std::vector<ObservedRow>* rows,
                                std::vector<std::string>* notes) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string bytes, ReadFileOrLink(path));
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
      header.group_bytes != sizeof(Group)) {
    return refuse("no counts of calls of this version");
  }
  // The blocks of the first group are reserved before the magic is written.
  // Those of a later one may end anywhere where the disk is full, and while a
  // file system that reserves block by block is at it: nothing is counted
  // there.
  const size_t groups = (bytes.size() - kHeaderBytes) / sizeof(Group);
  if (groups == 0) {
    return refuse(absl::StrCat("cut off after ", bytes.size(), " bytes"));
  }
  const size_t rest = (bytes.size() - kHeaderBytes) % sizeof(Group);
  if (rest != 0 && notes != nullptr) {
    notes->push_back(absl::StrCat(
        path, ": its last ", rest,
        " bytes are no whole group of counts and were left out: the disk was "
        "full, or the file was cut off"));
  }
  const size_t count =
      std::min<size_t>(header.keys.load(), groups * kGroupKeys);
  const auto group = std::make_unique<Group>();
  for (size_t i = 0; i < count; ++i) {
    if (i % kGroupKeys == 0) {
      std::memcpy(static_cast<void*>(group.get()),
                  bytes.data() + kHeaderBytes + i / kGroupKeys * sizeof(Group),
                  sizeof(Group));
    }
    Key& key = group->keys[i % kGroupKeys];
    if (key.ready.load() != 1) continue;  // its writer was killed
    key.text[sizeof(key.text) - 1] = '\0';
    ObservedRow row;
    const absl::StatusOr<ObservedKey> parsed = ParseText(key.text);
    if (!parsed.ok()) return refuse(parsed.status().message());
    row.key = *parsed;
    for (size_t shard = 0; shard < ObservedCounter::kShards; ++shard) {
      const ObservedCounter::Runs& runs = group->runs[shard][i % kGroupKeys];
      row.lookups += static_cast<int64_t>(
          group->lookups[shard][i % kGroupKeys].lookups_.load());
      row.runs += static_cast<int64_t>(runs.runs.load());
      row.timed_runs += static_cast<int64_t>(runs.timed_runs.load());
      row.ns += static_cast<double>(runs.ns.load());
    }
    if (row.lookups + row.runs > 0) rows->push_back(std::move(row));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ObservedRow>> ReadObservedFiles(
    const std::vector<std::string>& paths, std::vector<std::string>* notes) {
  std::vector<ObservedRow> all;
  std::map<std::string, std::string> given;  // by where it really is
  const auto read = [&](const std::string& path) -> absl::Status {
    std::error_code error;
    const std::string place = std::filesystem::canonical(path, error).string();
    const auto [first, is_new] = given.try_emplace(error ? path : place, path);
    if (is_new) return ObservedFile::Read(path, &all, notes);
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is the same file as ", first->second,
        ", expected each once, since its calls would count twice"));
  };
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      OPTRAIL_RETURN_IF_ERROR(read(path));
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ListDirectory(path));
    bool found = false;
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, kSuffix)) continue;
      found = true;
      OPTRAIL_RETURN_IF_ERROR(read(JoinPath(path, name)));
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
