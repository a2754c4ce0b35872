#ifndef OPTRAIL_BASE_FILE_FILE_SYSTEM_H_
#define OPTRAIL_BASE_FILE_FILE_SYSTEM_H_

// FileSystem is the thin layer through which Optrail's files and journals make
// their system calls, so that tests can fail each one of them
// (base/testing/fault_injecting_file_system.h).
//
// It is not what other code reads and writes files with: see base/file/file.h.
//
// Every method means what the system call of that name means: it returns -1 and
// sets errno on failure, may be interrupted and may write less than it was
// given. Descriptors belong to the FileSystem that opened them.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace optrail {

struct FileInfo {
  bool is_directory = false;
  bool is_regular = false;  // a plain file: no pipe, device or socket
  bool is_link = false;     // LinkStat only
  int64_t size_bytes = 0;
  uint64_t inode = 0;
  int64_t modified_unix_ns = 0;  // 0 where it is not known
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The machine's own; never destroyed.
  static FileSystem* Real();

  // `flags` as for open(2); O_CLOEXEC is always added.
  virtual int Open(const std::string& path, int flags, int mode) = 0;
  virtual int Close(int fd) = 0;
  virtual ssize_t Read(int fd, void* buffer, size_t size_bytes) = 0;
  virtual ssize_t Write(int fd, const void* data, size_t size_bytes) = 0;
  virtual int Truncate(int fd, int64_t size_bytes) = 0;
  virtual int Sync(int fd) = 0;

  virtual int Rename(const std::string& from, const std::string& to) = 0;
  virtual int Link(const std::string& from, const std::string& to) = 0;
  virtual int Unlink(const std::string& path) = 0;
  virtual int MakeDirectory(const std::string& path, int mode) = 0;

  // Names in `path` without "." and "..", in no particular order.
  virtual int List(const std::string& path,
                   std::vector<std::string>* names) = 0;
  virtual int Stat(const std::string& path, FileInfo* info) = 0;
  // lstat(2): of a symbolic link itself.
  virtual int LinkStat(const std::string& path, FileInfo* info) = 0;
  virtual int StatDescriptor(int fd, FileInfo* info) = 0;

  // An exclusive flock(2), held until the descriptor is closed. Without `wait`,
  // fails with EWOULDBLOCK where somebody else holds it.
  virtual int Lock(int fd, bool wait) = 0;

  // The process that holds the lock of this file, 0 where that is unknown.
  virtual int64_t LockHolder(int fd) = 0;
};

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_FILE_SYSTEM_H_
