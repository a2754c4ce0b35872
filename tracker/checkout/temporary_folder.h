#ifndef OPTRAIL_TRACKER_CHECKOUT_TEMPORARY_FOLDER_H_
#define OPTRAIL_TRACKER_CHECKOUT_TEMPORARY_FOLDER_H_

// A folder of its own under $TMPDIR, removed with all it holds when the object
// goes.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Create("ab"));
//   WriteFileAtomically(JoinPath(folder->path(), "a.json"), text);

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tracker {

class TemporaryFolder {
 public:
  // "<TMPDIR or /tmp>/optrail-<name>-XXXXXX".
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Create(
      absl::string_view name);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  // Removes read-only folders too, of which bazel makes many. Says on standard
  // error what it could not remove.
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_TEMPORARY_FOLDER_H_
