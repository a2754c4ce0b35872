#include "base/file/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace optrail {
namespace {

void Fill(const struct stat& from, FileInfo* to) {
  to->is_directory = S_ISDIR(from.st_mode);
  to->is_regular = S_ISREG(from.st_mode);
  to->is_link = S_ISLNK(from.st_mode);
  to->size_bytes = from.st_size;
  to->inode = from.st_ino;
  to->modified_unix_ns =
      int64_t{from.st_mtim.tv_sec} * 1'000'000'000 + from.st_mtim.tv_nsec;
}

class RealFileSystem : public FileSystem {
 public:
  int Open(const std::string& path, int flags, int mode) override {
    return open(path.c_str(), flags | O_CLOEXEC, mode);
  }
  int Close(int fd) override { return close(fd); }
  ssize_t Read(int fd, void* buffer, size_t size_bytes) override {
    return read(fd, buffer, size_bytes);
  }
  ssize_t Write(int fd, const void* data, size_t size_bytes) override {
    return write(fd, data, size_bytes);
  }
  int Truncate(int fd, int64_t size_bytes) override {
    return ftruncate(fd, size_bytes);
  }
  int Sync(int fd) override { return fsync(fd); }

  int Rename(const std::string& from, const std::string& to) override {
    return rename(from.c_str(), to.c_str());
  }
  int Link(const std::string& from, const std::string& to) override {
    return link(from.c_str(), to.c_str());
  }
  int Unlink(const std::string& path) override { return unlink(path.c_str()); }
  int MakeDirectory(const std::string& path, int mode) override {
    return mkdir(path.c_str(), mode);
  }

  int List(const std::string& path, std::vector<std::string>* names) override {
    names->clear();
    DIR* dir = opendir(path.c_str());
    if (dir == nullptr) return -1;
    while (true) {
      errno = 0;
      const dirent* entry = readdir(dir);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names->push_back(name);
    }
    const int error_number = errno;
    closedir(dir);
    errno = error_number;
    return error_number == 0 ? 0 : -1;
  }

  int Stat(const std::string& path, FileInfo* info) override {
    struct stat result;
    if (stat(path.c_str(), &result) != 0) return -1;
    Fill(result, info);
    return 0;
  }
  int LinkStat(const std::string& path, FileInfo* info) override {
    struct stat result;
    if (lstat(path.c_str(), &result) != 0) return -1;
    Fill(result, info);
    return 0;
  }
  int StatDescriptor(int fd, FileInfo* info) override {
    struct stat result;
    if (fstat(fd, &result) != 0) return -1;
    Fill(result, info);
    return 0;
  }

  int Lock(int fd, bool wait) override {
    return flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
  }

  // A line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 738 fe:00:1096 0 EOF".
  int64_t LockHolder(int fd) override {
    struct stat info;
    if (fstat(fd, &info) != 0) return 0;
    std::ifstream locks("/proc/locks");
    std::string line;
    while (std::getline(locks, line)) {
      int64_t pid;
      unsigned int device_major, device_minor;
      uint64_t inode;
      if (std::sscanf(line.c_str(),
                      "%*d: FLOCK ADVISORY WRITE %" SCNd64 " %x:%x:%" SCNu64,
                      &pid, &device_major, &device_minor, &inode) == 4 &&
          inode == info.st_ino && device_major == major(info.st_dev) &&
          device_minor == minor(info.st_dev)) {
        return pid;
      }
    }
    return 0;
  }
};

}  // namespace

FileSystem* FileSystem::Real() {
  static FileSystem* const real = new RealFileSystem;
  return real;
}

}  // namespace optrail
