#include "ops/device/cuda/turns.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail::ops::cuda {
namespace {

// Each byte of the file is a lock. A process that wants the turn takes kNext
// first, of which there is one, and keeps it until it has the turn: so the one
// that gives the turn back finds somebody before it, if anybody waits.
constexpr off_t kTurn = 0, kNext = 1;
constexpr off_t kFirstProcess = 16;  // and its number

// The result of fcntl(2), and what it left in *lock if that is not null.
int Locked(int fd, int command, short type, off_t at,
           struct flock* lock = nullptr) {
  struct flock own;
  if (lock == nullptr) lock = &own;
  std::memset(lock, 0, sizeof(*lock));
  lock->l_type = type;
  lock->l_whence = SEEK_SET;
  lock->l_start = at;
  lock->l_len = 1;
  int result = 0;
  do {
    result = fcntl(fd, command, lock);
  } while (result != 0 && errno == EINTR);
  return result;
}

void Release(int fd, off_t at) { Locked(fd, F_OFD_SETLK, F_UNLCK, at); }

}  // namespace

std::string Turns::PathOf(const std::string& gpu_uuid) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder = absl::StrCat("/tmp/optrail-", getuid());
  if (cache != nullptr && *cache == '/') {
    folder = JoinPath(cache, "optrail");
  } else if (home != nullptr && *home == '/') {
    folder = JoinPath(home, ".cache/optrail");
  }
  return JoinPath(folder, absl::StrCat("gpu-", gpu_uuid, ".turns"));
}

absl::StatusOr<Turns> Turns::Join(const std::string& path) {
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  const int fd =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("opening ", path, ": ", std::strerror(errno)));
  }
  Turns turns(fd);
  // A number that another machine's process has in a shared folder is as good.
  if (Locked(fd, F_OFD_SETLK, F_WRLCK, kFirstProcess + getpid()) != 0 &&
      errno != EAGAIN && errno != EACCES) {
    return absl::UnavailableError(
        absl::StrCat("locking ", path, ": ", std::strerror(errno)));
  }
  return turns;
}

Turns::~Turns() {
  if (fd_ >= 0) close(fd_);
}

Turns::Turn::~Turn() {
  if (fd_ >= 0) Release(fd_, kTurn);
}

Turns::Turn Turns::Take(absl::FunctionRef<void()> waits) const {
  bool told = false;
  for (const off_t at : {kNext, kTurn}) {
    if (Locked(fd_, F_OFD_SETLK, F_WRLCK, at) == 0) continue;
    if (!told) waits();
    told = true;
    Locked(fd_, F_OFD_SETLKW, F_WRLCK, at);
  }
  Release(fd_, kNext);
  return Turn(fd_);
}

bool Turns::TakesPart(int pid) const {
  struct flock lock;
  return Locked(fd_, F_OFD_GETLK, F_WRLCK, kFirstProcess + pid, &lock) == 0 &&
         lock.l_type != F_UNLCK;
}

}  // namespace optrail::ops::cuda
