#ifndef OPTRAIL_TUNING_STORE_OPERATOR_FOLDERS_H_
#define OPTRAIL_TUNING_STORE_OPERATOR_FOLDERS_H_

// Where the operators of a source tree live: the folders whose BUILD files
// declare them with the `operator` macro, or with one whose name ends in
// `_operator` and which calls it. So tuned configs find their way to the
// operator in any workspace, whatever its folders are called, and without the
// operator being part of this binary.
//
//   ASSIGN_OR_RETURN(const OperatorFolders folders,
//                    OperatorFolders::Find("/home/me/kernels"));
//   ASSIGN_OR_RETURN(const std::string folder, folders.FolderOf("softmax"));
//
// It reads BUILD files as text: a name that is computed there is not found.
// Links and folders that begin with "." or "bazel-" are not looked into.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::tuning {

class OperatorFolders {
 public:
  // NotFound if there is no folder `root`.
  static absl::StatusOr<OperatorFolders> Find(const std::string& root);

  // NotFound names what there is; FailedPrecondition if several folders declare
  // an operator of this name.
  absl::StatusOr<std::string> FolderOf(absl::string_view operator_name) const;

  // Each operator and its folders, sorted.
  const std::map<std::string, std::vector<std::string>>& folders() const {
    return folders_;
  }

 private:
  std::string root_;
  std::map<std::string, std::vector<std::string>> folders_;
};

// Names of the operators that the text of a BUILD file declares.
std::vector<std::string> OperatorsDeclaredIn(absl::string_view build_file);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_OPERATOR_FOLDERS_H_
