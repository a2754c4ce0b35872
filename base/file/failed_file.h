#ifndef OPTRAIL_BASE_FILE_FAILED_FILE_H_
#define OPTRAIL_BASE_FILE_FAILED_FILE_H_

// The file that an error is about, for those who add a hint to its message.
//
//   const absl::StatusOr<std::string> text = ReadFile("runs.jsno");
//   const absl::optional<FailedFile> failed = FailedFileOf(text.status());
//   if (failed && failed->error_number == ENOENT) Use(failed->path);

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace optrail {

struct FailedFile {
  std::string path;
  int error_number = 0;  // the system's reason: ENOENT, EISDIR
};

// nullopt unless the error is FileError()'s of base/file/file.h, as it was
// returned: one with another message has lost its file.
absl::optional<FailedFile> FailedFileOf(const absl::Status& status);

}  // namespace optrail

#endif  // OPTRAIL_BASE_FILE_FAILED_FILE_H_
