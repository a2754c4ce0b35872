#include "ops/core/former_kernel_sources.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash.h"

namespace optrail::ops {
namespace {

// "#", the directive and what follows, or empty where the line has none.
struct Directive {
  absl::string_view name;
  absl::string_view rest;
};

Directive ParseDirective(absl::string_view line) {
  Directive directive;
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return directive;
  line = absl::StripLeadingAsciiWhitespace(line);
  const size_t end = std::min(line.find_first_of(" \t\"<"), line.size());
  directive.name = line.substr(0, end);
  directive.rest = absl::StripAsciiWhitespace(line.substr(end));
  return directive;
}

// The first two directives of a header are its guard if they are #ifndef X and
// #define X; its last line is then the #endif.
absl::string_view GuardOf(const std::vector<absl::string_view>& lines) {
  absl::string_view guard;
  for (const absl::string_view line : lines) {
    const Directive directive = ParseDirective(line);
    if (directive.name.empty()) continue;
    if (guard.empty()) {
      if (directive.name != "ifndef") return "";
      guard = directive.rest;
    } else {
      return directive.name == "define" && directive.rest == guard ? guard : "";
    }
  }
  return "";
}

// `"a/b/c.h"` -> `"c.h"`.
std::string WithoutFolders(absl::string_view line) {
  const size_t open = line.find('"');
  if (open == absl::string_view::npos) return std::string(line);
  const size_t close = line.find('"', open + 1);
  if (close == absl::string_view::npos) return std::string(line);
  const absl::string_view path = line.substr(open + 1, close - open - 1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return std::string(line);
  return absl::StrCat(line.substr(0, open + 1), path.substr(slash + 1),
                      line.substr(close));
}

}  // namespace

std::string WithoutPlaces(absl::string_view source) {
  std::vector<absl::string_view> lines = absl::StrSplit(source, '\n');
  const absl::string_view guard = GuardOf(lines);
  std::vector<std::string> kept;
  std::vector<std::string> includes;
  // Includes are sorted by path: a move may change their order, too.
  const auto flush = [&] {
    std::sort(includes.begin(), includes.end());
    kept.insert(kept.end(), includes.begin(), includes.end());
    includes.clear();
  };
  for (const absl::string_view line : lines) {
    const Directive directive = ParseDirective(line);
    if (directive.name == "include") {
      includes.push_back(WithoutFolders(line));
      continue;
    }
    flush();
    if (directive.name.empty()) {
      kept.emplace_back(line);
      continue;
    }
    if (!guard.empty() &&
        (((directive.name == "ifndef" || directive.name == "define") &&
          directive.rest == guard) ||
         (directive.name == "endif" && absl::StrContains(line, guard)))) {
      continue;
    }
    kept.push_back(WithoutFolders(line));
  }
  flush();
  return absl::StrJoin(kept, "\n");
}

std::vector<std::string> FormerFilesOf(absl::string_view table,
                                       absl::string_view op,
                                       absl::string_view backend) {
  std::vector<std::string> files;
  bool is_listed = false;
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ') {
      if (is_listed) files.emplace_back(absl::StripAsciiWhitespace(line));
      continue;
    }
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    is_listed = words[0] == op && std::find(words.begin() + 1, words.end(),
                                            backend) != words.end();
  }
  return files;
}

std::string FormerKernelSourcesHash(int version, absl::string_view options,
                                    const std::vector<std::string>& contents) {
  std::vector<std::string> sources;
  sources.reserve(contents.size());
  for (const std::string& text : contents) {
    sources.push_back(WithoutPlaces(text));
  }
  std::sort(sources.begin(), sources.end());
  std::string text = absl::StrCat("version ", version, "\noptions\n", options);
  for (const std::string& source : sources) {
    absl::StrAppend(&text, "\nsource ", source.size(), "\n", source);
  }
  return Fingerprint(text);
}

}  // namespace optrail::ops
