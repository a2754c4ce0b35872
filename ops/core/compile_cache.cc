#include "ops/core/compile_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/status_macros.h"

namespace optrail::ops {
namespace {

constexpr char kSuffix[] = ".artifact";
constexpr char kMagic[] = "optrail-artifact-1";

// A line of text with the lengths of what follows, and that; the checksum
// covers everything behind the first line.
std::string Encode(const Artifact& artifact) {
  std::string facts;
  for (const auto& [name, value] : artifact.facts) {
    absl::StrAppend(&facts, name, " ", value, "\n");
  }
  const std::string body = absl::StrCat(
      artifact.key, " ", facts.size(), " ", artifact.log.size(), " ",
      artifact.bytes.size(), "\n", facts, artifact.log, artifact.bytes);
  return absl::StrFormat("%s %08x\n%s", kMagic, Crc32c(body), body);
}

absl::StatusOr<Artifact> Decode(const std::string& text) {
  const absl::Status damaged = absl::DataLossError("not a sound cache entry");
  const size_t line_end = text.find('\n');
  if (line_end == std::string::npos) return damaged;
  const std::string body = text.substr(line_end + 1);
  if (text.substr(0, line_end) !=
      absl::StrFormat("%s %08x", kMagic, Crc32c(body))) {
    return damaged;
  }
  std::istringstream in(body);
  Artifact artifact;
  size_t facts_size = 0, log_size = 0, bytes_size = 0;
  in >> artifact.key >> facts_size >> log_size >> bytes_size;
  size_t at = body.find('\n');
  if (!in || at == std::string::npos ||
      ++at + facts_size + log_size + bytes_size != body.size()) {
    return damaged;
  }
  std::istringstream facts(body.substr(at, facts_size));
  std::string name;
  int64_t value;
  while (facts >> name >> value) artifact.facts[name] = value;
  at += facts_size;
  artifact.log = body.substr(at, log_size);
  artifact.bytes = body.substr(at + log_size);
  return artifact;
}

absl::StatusOr<struct stat> RegularFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::NotFoundError("no such entry");
  }
  return info;
}

}  // namespace

std::string CompileCache::PathOf(absl::string_view key) const {
  return JoinPath(folder_, absl::StrCat(key, kSuffix));
}

absl::StatusOr<Artifact> CompileCache::Get(absl::string_view key) const {
  const std::string path = PathOf(key);
  OPTRAIL_RETURN_IF_ERROR(RegularFile(path).status());
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return absl::NotFoundError(text.status().message());
  absl::StatusOr<Artifact> artifact = Decode(*text);
  if (!artifact.ok() || artifact->key != key) {
    unlink(path.c_str());
    return absl::NotFoundError(
        absl::StrCat(path, ": not a sound cache entry; removed"));
  }
  // Used now: the last to go.
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return artifact;
}

absl::Status CompileCache::Put(const Artifact& artifact) const {
  const std::string text = Encode(artifact);
  if (static_cast<int64_t>(text.size()) > max_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "an artifact of ", text.size(),
        " bytes does not fit into a compile cache of ", max_bytes_));
  }
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder_));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(PathOf(artifact.key), text));
  Trim();
  return absl::OkStatus();
}

void CompileCache::Trim() const {
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
    if (!absl::EndsWith(name, kSuffix)) continue;
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

}  // namespace optrail::ops
