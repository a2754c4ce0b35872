#include "tuning/command/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "re2/re2.h"

namespace optrail::tuning {
namespace {

bool IsRegularFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string InDirectory(const std::string& directory, const std::string& path) {
  if (directory.empty() || absl::StartsWith(path, "/")) return path;
  return JoinPath(directory, path);
}

// The file that a shell would run for `word`; empty if there is none.
std::string Resolve(const std::string& word, const std::string& directory) {
  if (absl::StrContains(word, '/')) {
    const std::string path = InDirectory(directory, word);
    return IsRegularFile(path) ? path : "";
  }
  const char* search = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(search == nullptr ? "" : search, ':')) {
    const std::string path = InDirectory(
        directory, JoinPath(folder.empty() ? "." : std::string(folder), word));
    if (IsRegularFile(path) && access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

bool IsInterpreter(absl::string_view path) {
  static const RE2* const kNames = new RE2(
      R"((?:ba|da|z|k|fi)?sh|python[\d.]*|perl|ruby|node|Rscript|julia|lua)");
  const absl::string_view name = FileNameOf(path);
  return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), *kNames);
}

// Words without quotes: who needs them names the file.
std::vector<std::string> Words(absl::string_view command) {
  std::vector<std::string> words;
  for (const absl::string_view word : absl::StrSplit(
           command, absl::ByAnyChar(" \t\n;&|()<>"), absl::SkipEmpty())) {
    words.emplace_back(absl::StripAsciiWhitespace(word));
  }
  return words;
}

}  // namespace

absl::StatusOr<std::vector<proto::TunedCommand::File>> ProgramFiles(
    absl::string_view command, const std::vector<std::string>& named,
    const std::string& directory) {
  static const RE2* const kAssignment = new RE2(R"([A-Za-z_]\w*=.*)");
  std::vector<std::string> paths;
  const std::vector<std::string> words = Words(command);
  size_t first = 0;
  while (first < words.size() &&
         (RE2::FullMatch(words[first], *kAssignment) ||
          words[first] == "exec" || words[first] == "env")) {
    ++first;
  }
  if (first < words.size()) {
    const std::string program = Resolve(words[first], directory);
    if (!program.empty()) paths.push_back(program);
    if (!program.empty() && IsInterpreter(program)) {
      for (size_t i = first + 1; i < words.size(); ++i) {
        if (absl::StartsWith(words[i], "-")) continue;
        const std::string script = InDirectory(directory, words[i]);
        if (IsRegularFile(script)) paths.push_back(script);
        break;
      }
    }
  }
  for (const std::string& name : named) {
    const std::string path = InDirectory(directory, name);
    if (!IsRegularFile(path)) {
      return absl::NotFoundError(
          absl::StrCat("program '", path, "': expected a file"));
    }
    paths.push_back(path);
  }
  std::vector<proto::TunedCommand::File> files;
  for (const std::string& path : paths) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
    proto::TunedCommand::File file;
    file.set_path(SanitiseText(path));
    file.set_fingerprint(Fingerprint(contents));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace optrail::tuning
