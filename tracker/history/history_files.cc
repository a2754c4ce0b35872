#include "tracker/history/history_files.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "base/text/utf8.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kSuffix = ".pb";
constexpr absl::string_view kQuarantine = "quarantine";

// The longest name of a file in quarantine; file systems take 255.
constexpr size_t kMostNameBytes = 120;

// runs/2026/x.pb is two; somebody's folder of months may be more.
constexpr int kMostFolders = 8;

absl::Status ListInto(const std::string& dir, int depth, FileSystem* fs,
                      RecordFiles* found) {
  std::vector<std::string> names;
  if (fs->List(dir, &names) != 0) return FileError("listing", dir, errno);
  for (const std::string& name : names) {
    if (IsTemporaryName(name)) continue;
    const std::string path = JoinPath(dir, name);
    FileInfo info;
    if (fs->LinkStat(path, &info) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) continue;  // vanished since
      return FileError("looking at", path, errno);
    }
    const bool is_named_a_record = absl::EndsWith(name, kSuffix);
    const auto refuse = [&](absl::string_view reason) {
      found->bad_files.push_back({path, std::string(reason), Damage::kNoFile});
    };
    if (info.is_link) {
      FileInfo target;
      const bool leads_to_folder =
          fs->Stat(path, &target) == 0 && target.is_directory;
      if (is_named_a_record || leads_to_folder) {
        refuse("it is a symbolic link, which is not followed");
      }
    } else if (info.is_directory && is_named_a_record) {
      refuse("it is a folder, expected a file");
    } else if (info.is_directory && depth == kMostFolders) {
      refuse(absl::StrCat("it lies more than ", kMostFolders, " folders deep"));
    } else if (info.is_directory) {
      OPTRAIL_RETURN_IF_ERROR(ListInto(path, depth + 1, fs, found));
    } else if (is_named_a_record && !info.is_regular) {
      refuse("it is a pipe, device or socket, expected a file");
    } else if (is_named_a_record) {
      found->files.push_back({path, info});
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectFolder(const std::string& path, FileSystem* fs) {
  FileInfo info;
  if (fs->LinkStat(path, &info) != 0) {
    return FileError("looking at", path, errno);
  }
  if (info.is_directory) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "writing below ", path, ": it is ",
      info.is_link ? "a symbolic link, which is not followed" : "a file"));
}

// Looks at the folders between `dir` and the file at `path`, one by one.
absl::Status WalkFoldersOf(const std::string& dir, const std::string& path,
                           bool create, FileSystem* fs) {
  const std::string folder = DirectoryOf(path);
  const size_t prefix = JoinPath(dir, "x").size() - 1;
  const absl::string_view below =
      folder.size() > prefix ? absl::string_view(folder).substr(prefix) : "";
  std::string reached = dir;
  for (const absl::string_view name :
       absl::StrSplit(below, '/', absl::SkipEmpty())) {
    reached = JoinPath(reached, name);
    FileInfo info;
    if (create && fs->LinkStat(reached, &info) != 0 && errno == ENOENT) {
      OPTRAIL_RETURN_IF_ERROR(CreateDirectories(reached, fs));
    }
    OPTRAIL_RETURN_IF_ERROR(ExpectFolder(reached, fs));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRecordId(absl::string_view id) {
  constexpr absl::string_view kForm = "00000000T000000Z-";
  if (id.size() <= kForm.size() || id.size() > 64) return false;
  for (size_t i = 0; i < id.size(); ++i) {
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(id[i]));
    if (i >= kForm.size()) {
      if (!digit && (id[i] < 'a' || id[i] > 'f')) return false;
    } else if (kForm[i] == '0' ? !digit : id[i] != kForm[i]) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::string> PlaceOf(absl::string_view dir,
                                    absl::string_view folder,
                                    absl::string_view id) {
  if (!IsRecordId(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("id '", id.substr(0, 80),
                     "': expected the form 20261120T090807Z-1a2b3c4d5e6f"));
  }
  return JoinPath(dir, folder, id.substr(0, 4), absl::StrCat(id, kSuffix));
}

absl::StatusOr<RecordFiles> ListRecordFiles(const std::string& dir,
                                            absl::string_view folder,
                                            FileSystem* fs) {
  RecordFiles found;
  const std::string root = JoinPath(dir, folder);
  FileInfo info;
  if (fs->LinkStat(root, &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return found;
    return FileError("looking at", root, errno);
  }
  if (info.is_link) {
    found.bad_files.push_back({root,
                               "it is a symbolic link, which is not followed",
                               Damage::kNoFile});
    return found;
  }
  OPTRAIL_RETURN_IF_ERROR(ListInto(root, 1, fs, &found));
  std::sort(
      found.files.begin(), found.files.end(),
      [](const RecordFile& a, const RecordFile& b) { return a.path < b.path; });
  std::sort(found.bad_files.begin(), found.bad_files.end(),
            [](const BadFile& a, const BadFile& b) { return a.path < b.path; });
  return found;
}

absl::StatusOr<std::string> ReadRecordFile(const std::string& path,
                                           FileSystem* fs) {
  return ReadRegularFile(path, kMostRecordBytes, fs);
}

absl::Status CheckFoldersOf(const std::string& dir, const std::string& path,
                            FileSystem* fs) {
  return WalkFoldersOf(dir, path, /*create=*/false, fs);
}

absl::Status PrepareFolderOf(const std::string& dir, const std::string& path,
                             FileSystem* fs) {
  // The history's own folder may be a link: somebody put it there.
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(dir, fs));
  return WalkFoldersOf(dir, path, /*create=*/true, fs);
}

absl::StatusOr<std::string> MoveToQuarantine(const std::string& dir,
                                             const std::string& path,
                                             absl::string_view reason,
                                             FileSystem* fs) {
  std::string wanted =
      JoinPath(dir, kQuarantine, path.substr(JoinPath(dir, "x").size() - 1));
  // Room for what is put behind the name.
  if (const absl::string_view name = FileNameOf(wanted);
      name.size() > kMostNameBytes) {
    wanted = JoinPath(DirectoryOf(wanted),
                      absl::StrCat(TruncateUtf8(name, kMostNameBytes), "-",
                                   absl::Hex(StableHash(name))));
  }
  // What is moved lies below the history, and so does where it goes.
  OPTRAIL_RETURN_IF_ERROR(CheckFoldersOf(dir, path, fs));
  OPTRAIL_RETURN_IF_ERROR(PrepareFolderOf(dir, wanted, fs));
  std::string to = wanted;
  FileInfo taken;
  for (int i = 1; fs->LinkStat(to, &taken) == 0; ++i) {
    to = absl::StrCat(wanted, ".", i);
  }
  if (fs->Rename(path, to) != 0) {
    return FileError("moving to quarantine", path, errno);
  }
  OPTRAIL_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(to), fs));
  OPTRAIL_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path), fs));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(to, ".reason"),
                                              absl::StrCat(reason, "\n"), fs));
  return to;
}

}  // namespace optrail::tracker
