#include "suites/workload/named_file.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/status_macros.h"
#include "base/text/closest.h"

namespace optrail::suites {

std::vector<std::string> NamesOf(const std::vector<NamedFile>& files) {
  std::vector<std::string> names;
  for (const NamedFile& file : files) names.push_back(file.name);
  return names;
}

bool IsPath(absl::string_view text) {
  return absl::StrContains(text, '/') || absl::StrContains(text, '.');
}

absl::StatusOr<NamedFile> FindFile(const std::vector<NamedFile>& files,
                                   absl::string_view kind,
                                   const std::string& name_or_path) {
  for (const NamedFile& file : files) {
    if (file.name == name_or_path) return file;
  }
  if (IsPath(name_or_path)) {
    OPTRAIL_ASSIGN_OR_RETURN(
        std::string text, ReadFile(JoinPath(WorkingDirectory(), name_or_path)));
    return NamedFile{"", name_or_path, std::move(text)};
  }
  const std::vector<std::string> names = NamesOf(files);
  return absl::NotFoundError(
      absl::StrCat("no ", kind, " \"", name_or_path, "\"; there are: ",
                   absl::StrJoin(names, ", "), ", or give the path of a .",
                   kind, ".textproto", DidYouMean(name_or_path, names)));
}

}  // namespace optrail::suites
