#ifndef OPTRAIL_SUITES_WORKLOAD_NAMED_FILE_H_
#define OPTRAIL_SUITES_WORKLOAD_NAMED_FILE_H_

// Data files that are strings of the program (suites/embed.bzl) and found by
// their names, beside files of a user's own, which are found by their paths.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const NamedFile file,
//       FindFile(EmbeddedWorkloads(), "workload", "bert_large"));

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optrail::suites {

struct NamedFile {
  std::string name, path, text;
};

std::vector<std::string> NamesOf(const std::vector<NamedFile>& files);

// True if the text is no name but the path of a file: it has a '/' or a '.'.
bool IsPath(absl::string_view text);

// The one of this name, or a file of the user's. NotFound lists the names there
// are; `kind` is what they are and the middle of a file's suffix.
absl::StatusOr<NamedFile> FindFile(const std::vector<NamedFile>& files,
                                   absl::string_view kind,
                                   const std::string& name_or_path);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_WORKLOAD_NAMED_FILE_H_
