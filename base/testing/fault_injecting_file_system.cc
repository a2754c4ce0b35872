#include "base/testing/fault_injecting_file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace optrail {

struct FaultInjectingFileSystem::Node {
  bool is_directory = false;
  uint64_t inode = 0;
  // What the running system sees, and what a power loss leaves.
  std::string contents, durable_contents;
  std::map<std::string, NodePtr> entries, durable_entries;
  int lock_fd = -1;
};

struct FaultInjectingFileSystem::Descriptor {
  NodePtr node;
  bool append = false;
  bool writable = false;
  size_t offset = 0;
};

FaultInjectingFileSystem::FaultInjectingFileSystem(uint64_t seed)
    : rng_(seed), root_(std::make_shared<Node>()) {
  root_->is_directory = true;
  root_->inode = next_inode_++;
}

FaultInjectingFileSystem::~FaultInjectingFileSystem() = default;

void FaultInjectingFileSystem::FailAt(int64_t operation, int error_number,
                                      bool sticky) {
  fail_at_ = operation;
  fail_errno_ = error_number;
  fail_sticky_ = sticky;
}

void FaultInjectingFileSystem::WriteShortAt(int64_t operation) {
  short_write_at_ = operation;
}

void FaultInjectingFileSystem::LosePowerAt(int64_t operation) {
  power_loss_at_ = operation;
}

void FaultInjectingFileSystem::Restart(PowerLoss loss) {
  open_.clear();
  power_is_off_ = false;
  power_loss_at_ = short_write_at_ = fail_at_ = -1;
  // Visits every node that any surviving name may lead to.
  std::vector<NodePtr> todo = {root_};
  while (!todo.empty()) {
    Node& node = *todo.back();
    todo.pop_back();
    node.lock_fd = -1;
    if (node.is_directory) {
      std::map<std::string, NodePtr> survivors = node.durable_entries;
      if (loss == PowerLoss::kKeepNames) survivors = node.entries;
      if (loss == PowerLoss::kTorn) {
        // Each name is as it was or as it became.
        std::map<std::string, NodePtr> all = node.entries;
        all.insert(node.durable_entries.begin(), node.durable_entries.end());
        survivors.clear();
        for (const auto& [name, unused] : all) {
          const auto& source =
              rng_.UniformInt(2) ? node.entries : node.durable_entries;
          const auto it = source.find(name);
          if (it != source.end()) survivors.insert(*it);
        }
      }
      node.entries = node.durable_entries = survivors;
      for (const auto& [name, child] : node.entries) todo.push_back(child);
      continue;
    }
    if (loss == PowerLoss::kTorn && node.contents != node.durable_contents) {
      // Bytes in common were not in flight. Of the rest a prefix arrived, then
      // perhaps blocks that were allocated but never written.
      const std::string& durable = node.durable_contents;
      std::string& now = node.contents;
      const size_t common =
          std::mismatch(durable.begin(),
                        durable.begin() + std::min(durable.size(), now.size()),
                        now.begin())
              .first -
          durable.begin();
      if (common < durable.size()) {
        if (rng_.UniformInt(2)) now = durable;  // e.g. a truncation: or not
      } else {
        const size_t arrived =
            common +
            static_cast<size_t>(rng_.UniformInt(now.size() - common + 1));
        switch (rng_.UniformInt(3)) {
          case 0:
            now.resize(arrived);
            break;
          case 1:
            std::fill(now.begin() + arrived, now.end(), '\0');
            break;
          default:
            for (size_t i = arrived; i < now.size(); ++i) {
              now[i] = static_cast<char>(rng_.UniformInt(256));
            }
        }
      }
      node.durable_contents = now;
    } else {
      node.contents = node.durable_contents;
    }
  }
}

bool FaultInjectingFileSystem::PowerIsOff() {
  if (power_is_off_) errno = EIO;
  return power_is_off_;
}

FaultInjectingFileSystem::Fault FaultInjectingFileSystem::NextOperation() {
  const int64_t operation = operations_++;
  if (operation == power_loss_at_) {
    power_is_off_ = true;
    errno = EIO;
    return Fault::kPowerLoss;
  }
  if (PowerIsOff()) return Fault::kFail;
  if (operation == fail_at_ || (fail_sticky_ && operation > fail_at_)) {
    errno = fail_errno_;
    return Fault::kFail;
  }
  if (operation == short_write_at_) return Fault::kShort;
  return Fault::kNone;
}

FaultInjectingFileSystem::NodePtr FaultInjectingFileSystem::FindParent(
    const std::string& path, std::string* name) {
  NodePtr node = root_;
  name->clear();
  size_t begin = 0;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (!name->empty()) {
      const auto it = node->entries.find(*name);
      if (it == node->entries.end() || !it->second->is_directory) {
        errno = it == node->entries.end() ? ENOENT : ENOTDIR;
        return nullptr;
      }
      node = it->second;
    }
    *name = part;
  }
  return node;
}

FaultInjectingFileSystem::NodePtr FaultInjectingFileSystem::Find(
    const std::string& path) {
  std::string name;
  const NodePtr parent = FindParent(path, &name);
  if (parent == nullptr || name.empty()) return parent;
  const auto it = parent->entries.find(name);
  if (it != parent->entries.end()) return it->second;
  errno = ENOENT;
  return nullptr;
}

FaultInjectingFileSystem::Descriptor* FaultInjectingFileSystem::Get(int fd) {
  if (PowerIsOff()) return nullptr;
  const auto it = open_.find(fd);
  if (it != open_.end()) return it->second.get();
  errno = EBADF;
  return nullptr;
}

int FaultInjectingFileSystem::Open(const std::string& path, int flags,
                                   int mode) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  NodePtr node = Find(path);
  if (node == nullptr) {
    std::string name;
    const NodePtr parent = FindParent(path, &name);
    if (parent == nullptr) return -1;
    if (!(flags & O_CREAT)) {
      errno = ENOENT;
      return -1;
    }
    if (NextOperation() != Fault::kNone) return -1;
    node = std::make_shared<Node>();
    node->inode = next_inode_++;
    parent->entries[name] = node;
  } else if ((flags & O_CREAT) && (flags & O_EXCL)) {
    errno = EEXIST;
    return -1;
  } else if (node->is_directory && (flags & O_ACCMODE) != O_RDONLY) {
    errno = EISDIR;
    return -1;
  } else if (flags & O_TRUNC) {
    if (NextOperation() != Fault::kNone) return -1;
    node->contents.clear();
  }
  auto descriptor = std::make_unique<Descriptor>();
  descriptor->node = node;
  descriptor->append = (flags & O_APPEND) != 0;
  descriptor->writable = (flags & O_ACCMODE) != O_RDONLY;
  open_[next_fd_] = std::move(descriptor);
  return next_fd_++;
}

int FaultInjectingFileSystem::Close(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = open_.find(fd);
  if (it == open_.end()) {
    errno = EBADF;
    return -1;
  }
  if (it->second->node->lock_fd == fd) it->second->node->lock_fd = -1;
  open_.erase(it);
  return 0;
}

ssize_t FaultInjectingFileSystem::Read(int fd, void* buffer,
                                       size_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Descriptor* file = Get(fd);
  if (file == nullptr) return -1;
  if (file->node->is_directory) {
    errno = EISDIR;
    return -1;
  }
  const std::string& contents = file->node->contents;
  if (file->offset >= contents.size()) return 0;
  const size_t n = std::min(size_bytes, contents.size() - file->offset);
  std::memcpy(buffer, contents.data() + file->offset, n);
  file->offset += n;
  return static_cast<ssize_t>(n);
}

ssize_t FaultInjectingFileSystem::Write(int fd, const void* data,
                                        size_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Descriptor* file = Get(fd);
  if (file == nullptr) return -1;
  if (!file->writable) {
    errno = EBADF;
    return -1;
  }
  const Fault fault = NextOperation();
  if (fault == Fault::kFail) return -1;
  if (fault != Fault::kNone) size_bytes /= 2;
  std::string& contents = file->node->contents;
  if (file->append) file->offset = contents.size();
  if (contents.size() < file->offset + size_bytes) {
    contents.resize(file->offset + size_bytes);
  }
  std::memcpy(&contents[file->offset], data, size_bytes);
  file->offset += size_bytes;
  return fault == Fault::kPowerLoss ? -1 : static_cast<ssize_t>(size_bytes);
}

int FaultInjectingFileSystem::Truncate(int fd, int64_t size_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Descriptor* file = Get(fd);
  if (file == nullptr || NextOperation() != Fault::kNone) return -1;
  file->node->contents.resize(static_cast<size_t>(size_bytes));
  return 0;
}

int FaultInjectingFileSystem::Sync(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Descriptor* file = Get(fd);
  if (file == nullptr || NextOperation() != Fault::kNone) return -1;
  file->node->durable_contents = file->node->contents;
  file->node->durable_entries = file->node->entries;
  return 0;
}

int FaultInjectingFileSystem::Rename(const std::string& from,
                                     const std::string& to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  const NodePtr node = Find(from);
  std::string from_name, to_name;
  const NodePtr from_parent = FindParent(from, &from_name);
  const NodePtr to_parent = FindParent(to, &to_name);
  if (node == nullptr || to_parent == nullptr) return -1;
  if (NextOperation() != Fault::kNone) return -1;
  from_parent->entries.erase(from_name);
  to_parent->entries[to_name] = node;
  return 0;
}

int FaultInjectingFileSystem::Link(const std::string& from,
                                   const std::string& to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  const NodePtr node = Find(from);
  std::string name;
  const NodePtr parent = FindParent(to, &name);
  if (node == nullptr || parent == nullptr) return -1;
  if (parent->entries.count(name) > 0) {
    errno = EEXIST;
    return -1;
  }
  if (NextOperation() != Fault::kNone) return -1;
  parent->entries[name] = node;
  return 0;
}

int FaultInjectingFileSystem::Unlink(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  const NodePtr node = Find(path);
  if (node == nullptr) return -1;
  if (node->is_directory) {
    errno = EISDIR;
    return -1;
  }
  if (NextOperation() != Fault::kNone) return -1;
  std::string name;
  FindParent(path, &name)->entries.erase(name);
  return 0;
}

int FaultInjectingFileSystem::MakeDirectory(const std::string& path, int mode) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  std::string name;
  const NodePtr parent = FindParent(path, &name);
  if (parent == nullptr) return -1;
  if (name.empty() || parent->entries.count(name) > 0) {
    errno = EEXIST;
    return -1;
  }
  if (NextOperation() != Fault::kNone) return -1;
  const NodePtr node = std::make_shared<Node>();
  node->is_directory = true;
  node->inode = next_inode_++;
  parent->entries[name] = node;
  return 0;
}

int FaultInjectingFileSystem::List(const std::string& path,
                                   std::vector<std::string>* names) {
  const std::lock_guard<std::mutex> lock(mutex_);
  names->clear();
  if (PowerIsOff()) return -1;
  const NodePtr node = Find(path);
  if (node == nullptr) return -1;
  if (!node->is_directory) {
    errno = ENOTDIR;
    return -1;
  }
  // Folders promise no order; neither does this.
  for (const auto& [name, unused] : node->entries) names->push_back(name);
  std::reverse(names->begin(), names->end());
  return 0;
}

int FaultInjectingFileSystem::Stat(const std::string& path, FileInfo* info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (PowerIsOff()) return -1;
  const NodePtr node = Find(path);
  if (node == nullptr) return -1;
  info->is_directory = node->is_directory;
  info->is_regular = !node->is_directory;
  info->size_bytes = static_cast<int64_t>(node->contents.size());
  info->inode = node->inode;
  return 0;
}

int FaultInjectingFileSystem::LinkStat(const std::string& path,
                                       FileInfo* info) {
  return Stat(path, info);
}

int FaultInjectingFileSystem::StatDescriptor(int fd, FileInfo* info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Descriptor* file = Get(fd);
  if (file == nullptr) return -1;
  info->is_directory = file->node->is_directory;
  info->is_regular = !file->node->is_directory;
  info->size_bytes = static_cast<int64_t>(file->node->contents.size());
  info->inode = file->node->inode;
  return 0;
}

int FaultInjectingFileSystem::Lock(int fd, bool wait) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Descriptor* file = Get(fd);
  if (file == nullptr) return -1;
  int& holder = file->node->lock_fd;
  if (holder != -1 && holder != fd) {
    // One thread can't wait for itself: what would hang fails.
    errno = wait ? EDEADLK : EWOULDBLOCK;
    return -1;
  }
  holder = fd;
  return 0;
}

int64_t FaultInjectingFileSystem::LockHolder(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Descriptor* file = Get(fd);
  return file != nullptr && file->node->lock_fd != -1 ? getpid() : 0;
}

}  // namespace optrail
