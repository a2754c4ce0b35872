#include "ops/core/kernel_sources.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/status_macros.h"
#include "ops/core/source_tokens.h"

namespace optrail::ops {
namespace {

bool EndsWithOneOf(absl::string_view path,
                   std::initializer_list<absl::string_view> suffixes) {
  return std::any_of(
      suffixes.begin(), suffixes.end(),
      [&](absl::string_view s) { return absl::EndsWith(path, s); });
}

bool IsHeader(absl::string_view path) {
  return EndsWithOneOf(path, {".h", ".hh", ".hpp", ".cuh"});
}

bool IsCode(absl::string_view path) {
  return IsHeader(path) ||
         EndsWithOneOf(path, {".cc", ".cpp", ".cxx", ".c", ".cu", ".inc"});
}

}  // namespace

bool IsEmbedded(absl::string_view path) {
  return EndsWithOneOf(
      path, {".jit.cc", ".jit.h", "/jit.h", ".cu", ".cuh", "_halide.cc"});
}

namespace {

bool IsDirective(const SourceLine& line, absl::string_view name) {
  return line.is_directive && !line.tokens.empty() && line.tokens[0] == name;
}

absl::string_view FolderOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? "" : path.substr(0, slash + 1);
}

// The name between the quotes or brackets of an #include, else empty.
absl::string_view IncludedName(const SourceLine& line) {
  if (!IsDirective(line, "include") || line.tokens.size() != 2) return "";
  absl::string_view name = line.tokens[1];
  if (name.size() < 3 || (name[0] != '"' && name[0] != '<')) return "";
  return name.substr(1, name.size() - 2);
}

// `"a/b/c.h"` -> `"c.h"`; what is no path in quotes stays.
std::string WithoutFolders(const std::string& token) {
  const size_t slash = token.rfind('/');
  if (token[0] != '"' || slash == std::string::npos) return token;
  return absl::StrCat("\"", token.substr(slash + 1));
}

// A header's guard is its first two directives, if they are #ifndef X and
// #define X. Its #endif says no name once comments are gone, and stays.
void RemoveGuard(std::vector<SourceLine>& lines) {
  std::vector<size_t> directives;
  for (size_t i = 0; i < lines.size() && directives.size() < 2; ++i) {
    if (lines[i].is_directive) directives.push_back(i);
  }
  if (directives.size() < 2) return;
  const SourceLine& first = lines[directives[0]];
  const SourceLine& second = lines[directives[1]];
  if (!IsDirective(first, "ifndef") || !IsDirective(second, "define") ||
      first.tokens.size() != 2 || second.tokens.size() != 2 ||
      first.tokens[1] != second.tokens[1]) {
    return;
  }
  lines.erase(lines.begin() + static_cast<long>(directives[1]));
  lines.erase(lines.begin() + static_cast<long>(directives[0]));
}

// The walk of FilesOfKernel.
class Walk {
 public:
  Walk(const Sources& sources,
       const std::function<bool(absl::string_view)>& is_left_out)
      : sources_(sources), is_left_out_(is_left_out) {
    for (const auto& [path, contents] : sources) {
      by_name_.emplace(path.substr(FolderOf(path).size()), &path);
    }
  }

  absl::Status Take(const std::string& path) {
    if (!taken_.insert(path).second) return absl::OkStatus();
    const auto found = sources_.find(path);
    if (found == sources_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": not among the files of the operator"));
    }
    if (!IsCode(path)) return absl::OkStatus();
    for (const SourceLine& line : LinesOf(found->second)) {
      const absl::string_view name = IncludedName(line);
      if (name.empty()) continue;
      OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> included,
                               Find(name, path, line.number));
      for (const std::string& one : included) {
        OPTRAIL_RETURN_IF_ERROR(Take(one));
        OPTRAIL_RETURN_IF_ERROR(TakeBeside(one));
      }
    }
    return absl::OkStatus();
  }

  std::vector<std::string> taken() const {
    return {taken_.begin(), taken_.end()};
  }

 private:
  absl::Status TakeBeside(const std::string& header) {
    if (!IsHeader(header)) return absl::OkStatus();
    const std::string stem = header.substr(0, header.rfind('.'));
    for (const char* suffix : {".cc", ".cpp", ".cxx", ".c"}) {
      const std::string beside = absl::StrCat(stem, suffix);
      if (sources_.count(beside) > 0) return Take(beside);
    }
    return absl::OkStatus();
  }

  // Empty: not of these sources. Several, where only the compiler's include
  // paths tell which it is.
  absl::StatusOr<std::vector<std::string>> Find(absl::string_view name,
                                                const std::string& includer,
                                                int line) {
    std::vector<std::string> found;
    for (const std::string& path :
         {std::string(name),
          std::filesystem::path(absl::StrCat(FolderOf(includer), name))
              .lexically_normal()
              .string()}) {
      if (is_left_out_(path)) return found;
      if (sources_.count(path) == 0) continue;
      found.push_back(path);
      return found;
    }
    const auto [begin, end] =
        by_name_.equal_range(std::string(name.substr(FolderOf(name).size())));
    for (auto one = begin; one != end; ++one) {
      if (absl::EndsWith(*one->second, absl::StrCat("/", name))) {
        found.push_back(*one->second);
      }
    }
    const absl::Status status = CheckFound(found, name, includer, line);
    if (!status.ok()) return status;
    return found;
  }

  static absl::Status CheckFound(const std::vector<std::string>& found,
                                 absl::string_view name,
                                 const std::string& includer, int line) {
    if (found.size() > 1 && IsEmbedded(includer)) {
      return absl::InvalidArgumentError(absl::StrCat(
          includer, ":", line, ": \"", name, "\" may be ", found[0], " or ",
          found[1],
          ": expected one file of that name, since embedded files lie in one "
          "folder; next: rename one"));
    }
    if (!found.empty() || !absl::StartsWith(name, "ops/")) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        includer, ":", line, ": includes \"", name,
        "\", which no dependency of the operator declares: expected it in the "
        "srcs, hdrs or textual_hdrs of a library; next: name that library in "
        "`deps`"));
  }

  const Sources& sources_;
  const std::function<bool(absl::string_view)>& is_left_out_;
  std::multimap<std::string, const std::string*> by_name_;
  std::set<std::string> taken_;
};

}  // namespace

std::vector<std::string> IncludesOf(absl::string_view source) {
  std::vector<std::string> names;
  for (const SourceLine& line : LinesOf(source)) {
    const absl::string_view name = IncludedName(line);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::string CodeOf(absl::string_view source) {
  std::vector<SourceLine> lines = LinesOf(source);
  RemoveGuard(lines);
  std::vector<std::string> kept;
  std::vector<std::string> includes;
  // Includes are sorted by path: a move may change their order, too.
  const auto flush = [&] {
    std::sort(includes.begin(), includes.end());
    kept.insert(kept.end(), includes.begin(), includes.end());
    includes.clear();
  };
  for (SourceLine& line : lines) {
    if (line.is_directive) {
      for (std::string& token : line.tokens) token = WithoutFolders(token);
    }
    const std::string text = absl::StrJoin(line.tokens, " ");
    if (IsDirective(line, "include")) {
      includes.push_back(absl::StrCat("#", text));
      continue;
    }
    flush();
    kept.push_back(line.is_directive ? absl::StrCat("#", text) : text);
  }
  flush();
  return absl::StrJoin(kept, "\n");
}

absl::StatusOr<std::vector<std::string>> FilesOfKernel(
    const Sources& sources, const std::vector<std::string>& roots,
    const std::function<bool(absl::string_view)>& is_left_out) {
  Walk walk(sources, is_left_out);
  for (const std::string& root : roots) {
    OPTRAIL_RETURN_IF_ERROR(walk.Take(root));
  }
  return walk.taken();
}

std::vector<std::string> CodeOfFiles(const Sources& sources,
                                     const std::vector<std::string>& paths) {
  std::vector<std::string> code;
  for (const std::string& path : paths) {
    const std::string& contents = sources.at(path);
    code.push_back(IsCode(path) ? CodeOf(contents) : contents);
  }
  return code;
}

std::string KernelSourcesHash(int version, absl::string_view options,
                              std::vector<std::string> code) {
  std::sort(code.begin(), code.end());
  std::string text = absl::StrCat("version ", version, "\noptions\n", options);
  for (const std::string& one : code) {
    absl::StrAppend(&text, "\ncode ", one.size(), "\n", one);
  }
  return Fingerprint(text);
}

}  // namespace optrail::ops
