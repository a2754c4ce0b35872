#include "base/file/writable_folder.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail {

absl::Status CheckFolderIsWritable(const std::string& folder, FileSystem* fs) {
  // Another process or thread may ask the same question at the same time.
  static std::atomic<int> asked{0};
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(folder, fs));
  const std::string probe =
      JoinPath(folder, absl::StrCat(".probe-", getpid(), "-", asked++));
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(probe, "probe", fs));
  return RemoveFile(probe, fs);
}

absl::Status CreateOutputFolder(const std::string& folder, FileSystem* fs) {
  const std::string around = DirectoryOf(folder);
  if (!FileExists(around, fs)) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", around,
                     " to write to; next: create it, or choose another one"));
  }
  return CreateDirectories(folder, fs);
}

}  // namespace optrail
