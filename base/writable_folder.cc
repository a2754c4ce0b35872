#include "base/writable_folder.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
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

}  // namespace optrail
