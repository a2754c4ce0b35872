#ifndef OPTRAIL_BASE_TESTING_FAULT_INJECTING_FILE_SYSTEM_H_
#define OPTRAIL_BASE_TESTING_FAULT_INJECTING_FILE_SYSTEM_H_

// FaultInjectingFileSystem lives in memory, numbers its changing operations and
// fails, shortens or cuts the power at any of them, so that a crash test can
// visit every single one:
//
//   FaultInjectingFileSystem count;
//   Work(&count);
//   for (int64_t i = 0; i < count.operations(); ++i) {
//     FaultInjectingFileSystem fs;
//     fs.LosePowerAt(i);
//     Work(&fs);                      // fails somewhere in the middle
//     fs.Restart(PowerLoss::kDropUnsynced);
//     Verify(&fs);
//   }
//
// What a power loss may leave behind is what POSIX allows it to: contents are
// durable after a Sync of the file, names after a Sync of the folder they are
// in, and nothing else is. For tests only. Thread safety: threads
// may share the file system; faults are planned by one.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file/file_system.h"
#include "base/random.h"

namespace optrail {

enum class PowerLoss {
  kDropUnsynced,  // nothing survives that was not synced
  kKeepNames,     // unsynced names survive, the contents behind them do not
  kTorn,          // unsynced names survive at random, of unsynced contents a
                  // random part does; the rest is cut off, zeros or garbage
};

class FaultInjectingFileSystem : public FileSystem {
 public:
  // `seed` decides what survives PowerLoss::kTorn.
  explicit FaultInjectingFileSystem(uint64_t seed = 1);
  ~FaultInjectingFileSystem() override;

  // Changing operations attempted so far: Open that creates or truncates,
  // Write, Truncate, Sync, Rename, Link, Unlink, MakeDirectory.
  int64_t operations() const { return operations_; }

  // Operation number `operation` (from 0) fails with `error_number`; with
  // `sticky`, so do all after it.
  void FailAt(int64_t operation, int error_number, bool sticky = false);

  // If it is a Write, it stores only half of what it was given.
  void WriteShortAt(int64_t operation);

  // The operation happens by half (a Write) or not at all, and from then on
  // everything fails with EIO until Restart.
  void LosePowerAt(int64_t operation);

  // The machine comes back: all descriptors and locks are gone, of the rest
  // remains what `loss` says. Forgets all planned faults.
  void Restart(PowerLoss loss);

  int open_descriptors() const { return static_cast<int>(open_.size()); }

  int Open(const std::string& path, int flags, int mode) override;
  int Close(int fd) override;
  ssize_t Read(int fd, void* buffer, size_t size_bytes) override;
  ssize_t Write(int fd, const void* data, size_t size_bytes) override;
  int Truncate(int fd, int64_t size_bytes) override;
  int Sync(int fd) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Link(const std::string& from, const std::string& to) override;
  int Unlink(const std::string& path) override;
  int MakeDirectory(const std::string& path, int mode) override;
  int List(const std::string& path, std::vector<std::string>* names) override;
  int Stat(const std::string& path, FileInfo* info) override;
  // There are no links here.
  int LinkStat(const std::string& path, FileInfo* info) override;
  int StatDescriptor(int fd, FileInfo* info) override;
  int Lock(int fd, bool wait) override;
  int64_t LockHolder(int fd) override;

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Descriptor;
  enum class Fault { kNone, kFail, kShort, kPowerLoss };

  // Counts a changing operation and says what is to happen to it; sets errno.
  Fault NextOperation();
  bool PowerIsOff();  // sets errno
  NodePtr Find(const std::string& path);
  NodePtr FindParent(const std::string& path, std::string* name);
  Descriptor* Get(int fd);

  std::mutex mutex_;
  Rng rng_;
  NodePtr root_;
  std::map<int, std::unique_ptr<Descriptor>> open_;
  int next_fd_ = 1000;
  uint64_t next_inode_ = 1;
  int64_t operations_ = 0;
  bool power_is_off_ = false;
  int64_t power_loss_at_ = -1;
  int64_t short_write_at_ = -1;
  int64_t fail_at_ = -1;
  int fail_errno_ = 0;
  bool fail_sticky_ = false;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_TESTING_FAULT_INJECTING_FILE_SYSTEM_H_
