#include "tuning/store/operator_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

namespace fs = std::filesystem;

bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Walks the text of a BUILD file, over strings and comments.
class BuildText {
 public:
  explicit BuildText(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return position_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }
  void Step() { ++position_; }

  // Past white space and comments.
  void SkipSpace() {
    while (!AtEnd()) {
      if (Peek() == '#') {
        while (!AtEnd() && Peek() != '\n') Step();
      } else if (absl::ascii_isspace(Peek())) {
        Step();
      } else {
        return;
      }
    }
  }

  std::string TakeName() {
    const size_t begin = position_;
    while (!AtEnd() && IsNameCharacter(Peek())) Step();
    return std::string(text_.substr(begin, position_ - begin));
  }

  // At a quote; what stands between it and its match, escapes as they are.
  std::string TakeString() {
    const char quote = Peek();
    const std::string three(3, quote);
    const std::string end = absl::StartsWith(text_.substr(position_), three)
                                ? three
                                : std::string(1, quote);
    position_ += end.size();
    const size_t begin = position_;
    while (!AtEnd() && !absl::StartsWith(text_.substr(position_), end)) {
      if (Peek() == '\\') Step();
      Step();
    }
    const size_t stop = std::min(position_, text_.size());
    position_ = std::min(stop + end.size(), text_.size());
    return std::string(text_.substr(begin, stop - begin));
  }

 private:
  const absl::string_view text_;
  size_t position_ = 0;
};

// The macro, or one that calls it, such as elementwise_operator.
bool DeclaresOperators(absl::string_view macro) {
  return macro == "operator" || absl::EndsWith(macro, "_operator");
}

}  // namespace

std::vector<std::string> OperatorsDeclaredIn(absl::string_view build_file) {
  std::vector<std::string> operators;
  BuildText text(build_file);
  int depth = 0;
  // The number of parentheses and brackets at which the call of the macro is
  // open; 0: it is not open.
  int call = 0;
  std::string previous;  // the name just read
  while (text.SkipSpace(), !text.AtEnd()) {
    const char c = text.Peek();
    if (c == '"' || c == '\'') {
      text.TakeString();
      previous.clear();
    } else if (IsNameCharacter(c)) {
      previous = text.TakeName();
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
      if (c == '(' && depth == 1 && DeclaresOperators(previous)) call = depth;
      text.Step();
      previous.clear();
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth == call) call = 0;
      depth = std::max(depth - 1, 0);
      text.Step();
      previous.clear();
    } else if (c == '=' && call == 1 && depth == 1 && previous == "name") {
      text.Step();
      text.SkipSpace();
      if (text.Peek() == '"' || text.Peek() == '\'') {
        operators.push_back(text.TakeString());
      }
      previous.clear();
    } else {
      text.Step();
      previous.clear();
    }
  }
  return operators;
}

absl::StatusOr<OperatorFolders> OperatorFolders::Find(const std::string& root) {
  std::error_code error;
  fs::recursive_directory_iterator entry(
      root, fs::directory_options::skip_permission_denied, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat(root, ": cannot be read as a folder: ", error.message()));
  }
  OperatorFolders result;
  result.root_ = root;
  for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(error)) {
      if (absl::StartsWith(name, ".") || absl::StartsWith(name, "bazel-")) {
        entry.disable_recursion_pending();
      }
      continue;
    }
    if (name != "BUILD" && name != "BUILD.bazel") continue;
    if (!entry->is_regular_file(error)) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(entry->path().string()));
    const std::string folder = entry->path().parent_path().string();
    for (const std::string& op : OperatorsDeclaredIn(text)) {
      std::vector<std::string>& folders = result.folders_[op];
      // BUILD.bazel stands in for a BUILD beside it.
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
        folders.push_back(folder);
      }
    }
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat("reading the folders below ",
                                               root, ": ", error.message()));
  }
  for (auto& [op, folders] : result.folders_) {
    std::sort(folders.begin(), folders.end());
  }
  return result;
}

absl::StatusOr<std::string> OperatorFolders::FolderOf(
    absl::string_view operator_name) const {
  const auto found = folders_.find(std::string(operator_name));
  if (found == folders_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "no BUILD file below ", root_, " declares operator \"", operator_name,
        "\"; there are: ",
        folders_.empty()
            ? std::string("none")
            : absl::StrJoin(folders_, ", ",
                            [](std::string* out, const auto& folder) {
                              absl::StrAppend(out, folder.first);
                            })));
  }
  if (found->second.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "operator \"", operator_name, "\" is declared in several folders: ",
        absl::StrJoin(found->second, ", ")));
  }
  return found->second[0];
}

}  // namespace optrail::tuning
