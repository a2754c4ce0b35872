#include "base/file/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/status_macros.h"

namespace optrail {
namespace {

constexpr char kMagic[] = "optrail-cache-1";

absl::StatusOr<struct stat> RegularFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::NotFoundError("no such entry");
  }
  return info;
}

// The line before the bytes; its checksum covers the key and them.
std::string Header(absl::string_view key, absl::string_view bytes) {
  return absl::StrFormat("%s %s %08x\n", kMagic, key,
                         ExtendCrc32c(Crc32c(key), bytes));
}

}  // namespace

std::string FileCache::PathOf(absl::string_view key) const {
  return JoinPath(folder_, absl::StrCat(key, suffix_));
}

absl::StatusOr<std::string> FileCache::Get(absl::string_view key) const {
  const std::string path = PathOf(key);
  OPTRAIL_RETURN_IF_ERROR(RegularFile(path).status());
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return absl::NotFoundError(text.status().message());
  const size_t header = text->find('\n') + 1;
  const absl::string_view bytes = absl::string_view(*text).substr(header);
  if (header == 0 || text->compare(0, header, Header(key, bytes)) != 0) {
    unlink(path.c_str());
    return absl::NotFoundError(
        absl::StrCat(path, ": not a sound cache entry; removed"));
  }
  // Used now: the last to go.
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  text->erase(0, header);
  return text;
}

absl::Status FileCache::Put(absl::string_view key,
                            absl::string_view bytes) const {
  const std::string text = absl::StrCat(Header(key, bytes), bytes);
  if (static_cast<int64_t>(text.size()) > max_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an entry of ", text.size(),
                     " bytes does not fit into a cache of ", max_bytes_));
  }
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder_));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(PathOf(key), text));
  Trim();
  return absl::OkStatus();
}

void FileCache::Trim() const {
  const auto names = ListDirectory(folder_);
  if (!names.ok()) return;
  struct Entry {
    timespec used;
    int64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  int64_t total_bytes = 0;
  for (const std::string& name : *names) {
    if (!absl::EndsWith(name, suffix_)) continue;
    const std::string path = JoinPath(folder_, name);
    const auto info = RegularFile(path);
    if (!info.ok()) continue;
    entries.push_back({info->st_mtim, info->st_size, path});
    total_bytes += info->st_size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::make_pair(a.used.tv_sec, a.used.tv_nsec) <
           std::make_pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total_bytes <= max_bytes_) return;
    // Another process may have been quicker.
    if (unlink(entry.path.c_str()) == 0) total_bytes -= entry.bytes;
  }
}

}  // namespace optrail
