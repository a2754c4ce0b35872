#include "ops/core/artifact_level.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"

namespace optrail::ops {
namespace {

constexpr char kFolderVariable[] = "OPTRAIL_COMPILE_CACHE";
constexpr char kTrustVariable[] = "OPTRAIL_COMPILE_CACHE_TRUST";
constexpr char kSuffix[] = ".artifact";
constexpr char kMagic[] = "optrail-shared-1";
constexpr off_t kMostBytes = off_t{256} << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// The digest shows damage. Whose file it is says whether it can be trusted.
std::string Header(absl::string_view key, absl::string_view bytes) {
  return absl::StrCat(kMagic, " ", key, " ",
                      Fingerprint(absl::StrCat(key, "\n", bytes)), "\n");
}

std::string NameOf(uid_t uid) {
  const passwd* const user = getpwuid(uid);
  return user != nullptr ? user->pw_name : absl::StrCat("user ", uid);
}

absl::StatusOr<std::string> ReadAll(int fd, off_t size) {
  std::string text(static_cast<size_t>(size), '\0');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = read(fd, &text[at], text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::NotFoundError("an entry that cannot be read");
    at += static_cast<size_t>(n);
  }
  return text;
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// The level of an environment that makes no sense: each call returns why.
class BrokenLevel : public ArtifactLevel {
 public:
  explicit BrokenLevel(absl::Status why) : why_(std::move(why)) {}
  absl::StatusOr<std::string> Get(absl::string_view) const override {
    return why_;
  }
  absl::Status Put(absl::string_view, absl::string_view) const override {
    return why_;
  }
  void Drop(absl::string_view) const override {}

 private:
  const absl::Status why_;
};

const ArtifactLevel* LevelOfEnvironment() {
  const char* const folder = secure_getenv(kFolderVariable);
  if (folder == nullptr || *folder == '\0') return nullptr;
  const char* const trust = secure_getenv(kTrustVariable);
  absl::StatusOr<std::set<uid_t>> owners =
      ParseOwners(trust == nullptr ? "" : trust);
  if (!owners.ok()) return new BrokenLevel(owners.status());
  owners->insert(geteuid());
  owners->insert(0);
  return new SharedFolder(folder, *std::move(owners));
}

}  // namespace

SharedFolder::SharedFolder(std::string folder, std::set<uid_t> owners)
    : folder_(std::move(folder)), owners_(std::move(owners)) {}

std::string SharedFolder::PathOf(absl::string_view key) const {
  return JoinPath(folder_, absl::StrCat(key, kSuffix));
}

absl::StatusOr<std::string> SharedFolder::Get(absl::string_view key) const {
  const std::string path = PathOf(key);
  // All checks are made on the open file, since the one at `path` may be
  // replaced meanwhile. A pipe that somebody put there must not hang.
  const Descriptor file(
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ELOOP) {
      return absl::PermissionDeniedError(
          absl::StrCat(path, ": refused: a symbolic link"));
    }
    return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  }
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size > kMostBytes) {
    return absl::NotFoundError(
        absl::StrCat(path, ": expected a file of at most 256 MiB"));
  }
  if (owners_.count(info.st_uid) == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": refused: it is code of ", NameOf(info.st_uid),
                     ", who is not trusted; next: ", kTrustVariable, "=",
                     NameOf(info.st_uid), ", if that user may run code here"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path,
        ": refused: others than its owner may write it; next: chmod "
        "go-w"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(std::string text, ReadAll(file.get(), info.st_size));
  const size_t header = text.find('\n') + 1;
  const absl::string_view bytes = absl::string_view(text).substr(header);
  if (header == 0 || text.compare(0, header, Header(key, bytes)) != 0) {
    if (info.st_uid == geteuid()) unlink(path.c_str());
    return absl::NotFoundError(
        absl::StrCat(path, ": its digest does not match"));
  }
  text.erase(0, header);
  return text;
}

absl::Status SharedFolder::Put(absl::string_view key,
                               absl::string_view bytes) const {
  // A sound entry stays, since others may be reading it.
  if (Get(key).ok()) return absl::OkStatus();
  std::string temporary = JoinPath(folder_, absl::StrCat(key, ".XXXXXX"));
  // Nobody else may open it for writing, not even for a moment: who has it open
  // could write later.
  const Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  const auto failed = [&temporary](const char* what) {
    const std::string why = strerror(errno);
    unlink(temporary.c_str());
    return absl::UnavailableError(
        absl::StrCat(temporary, ": cannot be ", what, ": ", why));
  };
  if (file.get() < 0) return failed("created");
  const std::string text = absl::StrCat(Header(key, bytes), bytes);
  if (!WriteAll(file.get(), text)) return failed("written");
  if (fchmod(file.get(), 0644) != 0) return failed("made readable");
  if (rename(temporary.c_str(), PathOf(key).c_str()) != 0) {
    return failed("renamed");
  }
  return absl::OkStatus();
}

void SharedFolder::Drop(absl::string_view key) const {
  const std::string path = PathOf(key);
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0 && info.st_uid == geteuid()) {
    unlink(path.c_str());
  }
}

const ArtifactLevel* SharedLevel() {
  static const ArtifactLevel* const level = LevelOfEnvironment();
  return level;
}

absl::StatusOr<std::set<uid_t>> ParseOwners(absl::string_view users) {
  std::set<uid_t> owners;
  for (absl::string_view user : absl::StrSplit(users, ',', absl::SkipEmpty())) {
    uint32_t uid = 0;
    if (absl::SimpleAtoi(user, &uid)) {
      owners.insert(uid);
      continue;
    }
    const passwd* const known = getpwnam(std::string(user).c_str());
    if (known == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(kTrustVariable, ": \"", user,
                       "\", expected users of this machine, by name or number, "
                       "parted by commas"));
    }
    owners.insert(known->pw_uid);
  }
  return owners;
}

}  // namespace optrail::ops
