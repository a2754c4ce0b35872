#include "diagnosis/source_hunks.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace optrail::diagnosis {
namespace {

// How a project is built or configured, beside its sources.
bool IsBuildFile(absl::string_view file) {
  const std::string name =
      std::filesystem::path(std::string(file)).filename().string();
  static const auto* const names = new std::set<std::string>{
      "CMakeLists.txt", "Makefile",     "BUILD",
      "BUILD.bazel",    "meson.build",  ".bazelrc",
      "WORKSPACE",      "MODULE.bazel", "Cargo.toml",
      "setup.py",       "SConstruct",   "configure.ac",
      "GNUmakefile",    "build.ninja",  "CMakePresets.json"};
  return names->count(name) > 0 || absl::EndsWith(name, ".cmake") ||
         absl::EndsWith(name, ".mk") || absl::EndsWith(name, ".bzl");
}

// People read these, and no program does.
bool IsDocument(absl::string_view file) {
  const std::string name =
      std::filesystem::path(std::string(file)).filename().string();
  return absl::EndsWith(name, ".md") || absl::EndsWith(name, ".rst") ||
         absl::EndsWith(name, ".adoc") || absl::StartsWith(name, "README") ||
         absl::StartsWith(name, "LICENSE") ||
         absl::StartsWith(name, "CHANGELOG");
}

std::vector<SourceHunk> HunksOf(absl::string_view diff) {
  std::vector<SourceHunk> hunks;
  std::string file;
  bool in_hunk = false;
  for (const absl::string_view line : absl::StrSplit(diff, '\n')) {
    if (absl::StartsWith(line, "diff --git ")) {
      in_hunk = false;
    } else if (!in_hunk && absl::StartsWith(line, "+++ ")) {
      file = std::string(absl::StripPrefix(line.substr(4), "b/"));
    } else if (absl::StartsWith(line, "@@ ")) {
      // "@@ -12,3 +14,2 @@ float blur(const float* x)"
      in_hunk = true;
      SourceHunk& hunk = hunks.emplace_back();
      hunk.file = file;
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      if (words.size() > 2) {
        hunk.line = std::string(words[2].substr(1, words[2].find(',') - 1));
      }
      const size_t end = line.find("@@", 2);
      if (end != absl::string_view::npos) {
        hunk.function = std::string(line.substr(end + 2));
      }
    } else if (in_hunk && !hunks.empty() && absl::StartsWith(line, "-")) {
      hunks.back().removed.emplace_back(line.substr(1));
    } else if (in_hunk && !hunks.empty() && absl::StartsWith(line, "+")) {
      hunks.back().added.emplace_back(line.substr(1));
    }
  }
  return hunks;
}

}  // namespace

bool IsCommentLine(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return line.empty() || absl::StartsWith(line, "//") ||
         absl::StartsWith(line, "/*") || absl::StartsWith(line, "*") ||
         (absl::StartsWith(line, "#") && !absl::StartsWith(line, "#define") &&
          !absl::StartsWith(line, "#pragma") &&
          !absl::StartsWith(line, "#if") && !absl::StartsWith(line, "#in"));
}

std::vector<SourceHunk> RankedHunks(absl::string_view diff,
                                    const std::string& function) {
  std::vector<SourceHunk> hunks;
  for (SourceHunk& hunk : HunksOf(diff)) {
    const bool only_comments =
        std::all_of(hunk.removed.begin(), hunk.removed.end(), IsCommentLine) &&
        std::all_of(hunk.added.begin(), hunk.added.end(), IsCommentLine);
    if (only_comments) continue;
    const auto names = [&](const std::string& text) {
      return !function.empty() && absl::StrContains(text, function);
    };
    const bool named =
        names(hunk.function) ||
        std::any_of(hunk.removed.begin(), hunk.removed.end(), names) ||
        std::any_of(hunk.added.begin(), hunk.added.end(), names);
    // A setting that was changed or removed, other than a target that is new.
    const bool is_setting = IsBuildFile(hunk.file) && !hunk.removed.empty();
    hunk.rank = is_setting               ? 0
                : IsDocument(hunk.file)  ? 4
                : named                  ? 1
                : IsBuildFile(hunk.file) ? 3
                                         : 2;
    hunks.push_back(std::move(hunk));
  }
  std::stable_sort(
      hunks.begin(), hunks.end(),
      [](const SourceHunk& a, const SourceHunk& b) { return a.rank < b.rank; });
  return hunks;
}

}  // namespace optrail::diagnosis
