#ifndef OPTRAIL_TUNING_OBSERVED_OBSERVED_FILE_H_
#define OPTRAIL_TUNING_OBSERVED_OBSERVED_FILE_H_

// Counts of the calls that a program makes, by operator, shape and how the
// lookup of a config ended. They lie in a file that the process maps: counting
// is one atomic addition, a crash or kill -9 loses nothing, and children of
// fork() count into the same file.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto file, ObservedFile::Create(folder));
//   ObservedCounter* const counter = file->CounterOf(key);
//   counter->AddLookup();
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto rows, ReadObservedFiles({folder}));
//
// The file's blocks are reserved before they are used, so that a full disk
// raises no signal; truncating it does. Thread-safe. Errors name the path.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tuning {

// How a lookup ended, as liboptrail names it, and in what order tables list it.
enum class ObservedSource {
  kExact = 0,      // tuned for this shape on this hardware
  kOtherShape,     // tuned for a shape nearby
  kOtherHardware,  // tuned on similar hardware
  kDefault,
  kCallersConfig,
  kRefused,  // the caller wanted an exact config, and there is none
  kBucket,   // verified for a range of shapes with this one
};
inline constexpr int kObservedSources = 7;
absl::string_view ObservedSourceName(ObservedSource source);  // "exact"

struct ObservedKey {
  std::string op, shape;  // of calls beyond what the file holds both are empty
  std::string device, backend, cache_mode;
  std::string hardware_id;
  int threads = 1;
  ObservedSource source = ObservedSource::kDefault;

  bool operator<(const ObservedKey& other) const;
};

// Counts of one key. Threads count in different cache lines.
class ObservedCounter {
 public:
  static constexpr int kShards = 8;

  void AddLookup() {
    shards_[Shard()].lookups.fetch_add(1, std::memory_order_relaxed);
  }
  void AddRun() {
    shards_[Shard()].runs.fetch_add(1, std::memory_order_relaxed);
  }
  void AddRun(int64_t ns) {
    Counts& counts = shards_[Shard()];
    counts.runs.fetch_add(1, std::memory_order_relaxed);
    counts.timed_runs.fetch_add(1, std::memory_order_relaxed);
    counts.ns.fetch_add(static_cast<uint64_t>(ns), std::memory_order_relaxed);
  }

 private:
  friend class ObservedFile;
  struct alignas(64) Counts {
    std::atomic<uint64_t> lookups, runs, timed_runs, ns;
  };

  // Threads differ in where their control blocks lie. Reading a thread_local of
  // a library that was opened at run time takes a call.
  static size_t Shard() {
    const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
    return (thread >> 6) * 0x9e3779b97f4a7c15u >> 61;
  }

  Counts shards_[kShards];
};

struct ObservedRow;

class ObservedFile {
 public:
  static constexpr int kMostKeys = 1 << 14;

  // A new file in `folder`, which is created if it is missing: the name tells
  // host, process and time. PermissionDenied and the like name the path.
  static absl::StatusOr<std::unique_ptr<ObservedFile>> Create(
      const std::string& folder);
  ~ObservedFile();
  ObservedFile(const ObservedFile&) = delete;
  ObservedFile& operator=(const ObservedFile&) = delete;

  const std::string& path() const { return path_; }

  // Never null: beyond kMostKeys, and for texts that are too long, all share
  // one counter. It lives as long as the file. Equal keys have one counter.
  // Takes a lock; keep what it returns.
  ObservedCounter* CounterOf(const ObservedKey& key);

  // Adds the rows of one file; its errors are those of ReadObservedFiles().
  static absl::Status Read(const std::string& path,
                           std::vector<ObservedRow>* rows);

  // Around fork(): the lock is free in the child.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  struct Header;
  struct Record;

  ObservedFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  absl::Status Map();
  Record* NewRecord(const std::string& text);

  const std::string path_;
  const int descriptor_;
  Header* header_ = nullptr;
  Record* records_ = nullptr;  // behind the header
  std::mutex mutex_;
  uint64_t reserved_ = 0;  // records whose blocks this process reserved
  std::unordered_map<std::string, ObservedCounter*> counters_;
};

struct ObservedRow {
  ObservedKey key;
  int64_t lookups = 0;
  int64_t runs = 0;
  int64_t timed_runs = 0;
  double ns = 0;  // of timed runs, together

  // A program that runs plans looks up once for many calls; one that has
  // kernels of its own looks up for each.
  int64_t calls() const { return runs > 0 ? runs : lookups; }
};

// Of all files, and of all *.observed files in those that are folders: one row
// for each key, most calls first. Rows of runs and of lookups of one key are
// one. InvalidArgument for a file that is none of these, NotFound for a path
// that is not there or a folder without such files.
absl::StatusOr<std::vector<ObservedRow>> ReadObservedFiles(
    const std::vector<std::string>& paths);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_OBSERVED_OBSERVED_FILE_H_
