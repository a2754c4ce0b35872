#include "base/text/prose.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/table.h"

namespace optrail {
namespace {

constexpr int kWidest = 100;
constexpr int kHanging = 2;
constexpr absl::string_view kNext = "next: ";

std::string Spaces(int count) {
  return std::string(static_cast<size_t>(count), ' ');
}

// "optrail gate: no policy ..." is an error, whose first words are a command.
bool IsError(absl::string_view text) {
  return absl::c_all_of(text.substr(0, text.find(": ")), [](char c) {
    return absl::ascii_islower(c) || c == ' ' || c == '_';
  });
}

bool IsCommand(absl::string_view text) {
  return absl::StartsWith(text, "--") ||
         (absl::StartsWith(text, "optrail ") &&
          !(absl::StrContains(text, ": ") && IsError(text)));
}

// The parts that a word may be broken into: those of a config end with a comma.
std::vector<absl::string_view> PartsOf(absl::string_view word, int width) {
  if (DisplayWidth(word) <= width || absl::StrContains(word, '/')) {
    return {word};
  }
  std::vector<absl::string_view> parts;
  while (!word.empty()) {
    const size_t comma = std::min(word.find(','), word.size() - 1);
    parts.push_back(word.substr(0, comma + 1));
    word.remove_prefix(comma + 1);
  }
  return parts;
}

std::string WrapLine(absl::string_view line, int width) {
  if (DisplayWidth(line) <= width) return std::string(line);
  const size_t start = std::min(line.find_first_not_of(' '), line.size());
  const int first = static_cast<int>(start);
  const int indent = first + kHanging;
  absl::string_view text = line.substr(start);
  if (IsCommand(text)) return std::string(line);
  const size_t next = text.find(kNext);
  if (next == absl::string_view::npos) {
    return FillParagraph(text, width, first, indent);
  }
  if (next == 0) return std::string(line);
  return absl::StrCat(FillParagraph(text.substr(0, next), width, first, indent),
                      "\n", Spaces(indent), text.substr(next));
}

}  // namespace

std::string WrapProse(absl::string_view text, int width) {
  if (width <= 0) return std::string(text);
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.push_back(WrapLine(line, std::min(width, kWidest)));
  }
  return absl::StrJoin(lines, "\n");
}

std::string FillParagraph(absl::string_view text, int width, int first,
                          int indent) {
  std::string filled = Spaces(first);
  int column = first;
  bool is_empty = true;  // the line
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    absl::string_view gap = is_empty ? "" : " ";
    for (const absl::string_view part : PartsOf(word, width - indent)) {
      const int needed = DisplayWidth(gap) + DisplayWidth(part);
      if (!is_empty && column + needed > width) {
        absl::StrAppend(&filled, "\n", Spaces(indent), part);
        column = indent + DisplayWidth(part);
      } else {
        absl::StrAppend(&filled, gap, part);
        column += needed;
      }
      gap = "";
      is_empty = false;
    }
  }
  return filled;
}

std::string JoinFirst(const std::vector<std::string>& names, size_t most,
                      absl::string_view separator) {
  const size_t shown = std::min(names.size(), most);
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<int>(shown), separator);
  if (shown < names.size()) {
    absl::StrAppend(&text, separator == ", " ? " " : separator, "and ",
                    names.size() - shown, " more");
  }
  return text;
}

}  // namespace optrail
