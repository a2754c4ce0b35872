#include "tracker/series/work_tree.h"

#include <algorithm>
#include <fstream>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file/file.h"
#include "base/process/subprocess.h"

namespace optrail::tracker {
namespace {

// Endings of results, reports and products.
constexpr absl::string_view kNoSources[] = {
    ".a",     ".bz2",     ".csv",  ".d",   ".db",  ".deb",    ".dll", ".dylib",
    ".exe",   ".gcda",    ".gcno", ".gz",  ".htm", ".html",   ".jpg", ".json",
    ".jsonl", ".lo",      ".log",  ".md",  ".o",   ".obj",    ".pb",  ".pdf",
    ".png",   ".profraw", ".pyc",  ".rst", ".so",  ".sqlite", ".svg", ".tar",
    ".tgz",   ".tsv",     ".whl",  ".xml", ".xz",  ".zip",    ".zst",
};

// A build system or a tool leaves one of these in a folder that it owns.
constexpr absl::string_view kOwnersMarks[] = {
    "CACHEDIR.TAG", "CMakeCache.txt", "build.ninja", "meson-info", "pyvenv.cfg",
};

bool IsOwnedByATool(const std::string& folder) {
  const absl::string_view name = FileNameOf(folder);
  return name == "node_modules" || name == "__pycache__" ||
         absl::c_any_of(kOwnersMarks, [&](absl::string_view mark) {
           return FileExists(JoinPath(folder, mark));
         });
}

bool IsElf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, sizeof(magic)) &&
         absl::string_view(magic, sizeof(magic)) == "\177ELF";
}

bool MayBeSourceFile(const std::string& path) {
  const std::string name = absl::AsciiStrToLower(FileNameOf(path));
  const bool ends_so = absl::c_any_of(kNoSources, [&](absl::string_view end) {
    return absl::EndsWith(name, end);
  });
  return !ends_so && !IsElf(path);
}

// A folder of more files than `most` is not looked through: it counts.
bool HasSource(const std::string& folder, int* most) {
  if (IsOwnedByATool(folder)) return false;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return true;
  for (const std::string& name : *names) {
    if (--*most < 0) return true;
    const std::string path = JoinPath(folder, name);
    const bool is_folder = ListDirectory(path).ok();
    if (is_folder ? HasSource(path, most) : MayBeSourceFile(path)) return true;
  }
  return false;
}

// "2 edited files (src/a.cc, ...)".
std::string NamesText(const std::vector<std::string>& paths,
                      absl::string_view one, absl::string_view many) {
  return absl::StrCat(paths.size(), " ", paths.size() == 1 ? one : many, " (",
                      paths[0], paths.size() == 1 ? ")" : ", ...)");
}

}  // namespace

bool MayBeSource(const std::string& top, absl::string_view path) {
  if (!absl::ConsumeSuffix(&path, "/")) {
    return MayBeSourceFile(JoinPath(top, path));
  }
  int most = 2000;
  return HasSource(JoinPath(top, path), &most);
}

WorkTreeChanges FindWorkTreeChanges(const GitFacts& facts) {
  WorkTreeChanges changes;
  if (!facts.dirty) return changes;
  CommandOptions options;
  options.environment = {{"LC_ALL", "C"}};
  const absl::StatusOr<CommandResult> listed =
      RunCommand({"git", "--no-optional-locks", "-C", facts.top_level, "status",
                  "--porcelain", "-z", "--no-renames", "--", ":(top)",
                  ":(top,exclude,glob)**/.optrail/**"},
                 options);
  if (!listed.ok() || listed->exit.kind != ExitInfo::Kind::kExited ||
      listed->exit.code != 0) {
    changes.edited.push_back("unknown");
    return changes;
  }
  for (absl::string_view line :
       absl::StrSplit(listed->stdout_text, '\0', absl::SkipEmpty())) {
    const bool is_untracked = absl::ConsumePrefix(&line, "?? ");
    if (!is_untracked) {
      line.remove_prefix(std::min<size_t>(3, line.size()));
      changes.edited.emplace_back(line);
    } else if (MayBeSource(facts.top_level, line)) {
      changes.untracked.emplace_back(line);
    }
  }
  return changes;
}

std::string UncommittedText(const GitFacts& facts) {
  const WorkTreeChanges changes = FindWorkTreeChanges(facts);
  if (!changes.any()) return "";
  std::string text = "the work tree has ";
  if (!changes.edited.empty()) {
    absl::StrAppend(&text,
                    NamesText(changes.edited, "edited file", "edited files"));
  }
  if (!changes.untracked.empty()) {
    absl::StrAppend(
        &text, changes.edited.empty() ? "" : " and ",
        NamesText(changes.untracked, "untracked source", "untracked sources"));
  }
  return absl::StrCat(text, ", which commit ", facts.commit.substr(0, 12),
                      " lacks: the commit is judged without them");
}

}  // namespace optrail::tracker
