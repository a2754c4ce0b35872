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

// Counts of one key. What a thread counts for different keys lies side by side,
// lookups apart from the rest: those of a thousand keys take 8 KiB and stay in
// the nearest cache. Other threads count in other cache lines.
class ObservedCounter {
 public:
  void AddLookup() { Add(OfKey()[Shard() * kGroupKeys]); }
  void AddRun() { Add(RunsHere().runs); }
  void AddRun(int64_t ns) {
    Runs& here = RunsHere();
    Add(here.runs);
    Add(here.timed_runs);
    Add(here.ns, static_cast<uint64_t>(ns));
  }

 private:
  friend class ObservedFile;
  using Count = std::atomic<uint64_t>;
  struct Runs {
    Count runs, timed_runs, ns, unused;
  };
  static constexpr size_t kShards = 8;
  static constexpr size_t kGroupKeys = 256;

  static void Add(Count& count, uint64_t value = 1) {
    count.fetch_add(value, std::memory_order_relaxed);
  }
  // Threads differ in where their control blocks lie. Reading a thread_local of
  // a library that was opened at run time takes a call.
  static size_t Shard() {
    const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
    return (thread >> 6) * 0x9e3779b97f4a7c15u >> 61;
  }
  // The lookups of the key in the first shard, of an array of all shards.
  Count* OfKey() { return reinterpret_cast<Count*>(this); }
  // A group of keys has that array at an address that is a multiple of a
  // shard's size, so that this tells which key it is; the runs follow.
  Runs& RunsHere() {
    const size_t key =
        reinterpret_cast<uintptr_t>(this) / sizeof(Count) % kGroupKeys;
    Count* const runs = OfKey() - key + kShards * kGroupKeys;
    return reinterpret_cast<Runs*>(runs)[Shard() * kGroupKeys + key];
  }

  Count lookups_;
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

  // Adds the rows of one file; notes and errors are those of
  // ReadObservedFiles().
  static absl::Status Read(const std::string& path,
                           std::vector<ObservedRow>* rows,
                           std::vector<std::string>* notes = nullptr);

  // Around fork(): the lock is free in the child.
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  static constexpr size_t kGroupKeys = ObservedCounter::kGroupKeys;
  struct Header;
  struct Key;
  struct Group;

  ObservedFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  absl::Status Map();
  static size_t MappedBytes();
  int Reserve(uint64_t group);
  ObservedCounter* NewCounter(const std::string& text);

  const std::string path_;
  const int descriptor_;
  Header* header_ = nullptr;
  Group* groups_ = nullptr;  // behind the header
  std::mutex mutex_;
  uint64_t reserved_ = 0;  // groups whose blocks this process reserved
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
// one. A file may end within a group of counts, as on a full disk: those before
// are read, and `notes`, unless null, gets a sentence without a full stop.
// InvalidArgument for a file that is none of these, that was cut off within its
// first group or that is given twice; NotFound for a path that is not there or
// a folder without such files.
absl::StatusOr<std::vector<ObservedRow>> ReadObservedFiles(
    const std::vector<std::string>& paths,
    std::vector<std::string>* notes = nullptr);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_OBSERVED_OBSERVED_FILE_H_
