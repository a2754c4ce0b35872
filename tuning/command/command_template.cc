#include "tuning/command/command_template.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/quote.h"

namespace optrail::tuning {
namespace {

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// The name in "{name}" at `at`; empty if there is none.
absl::string_view NameAt(absl::string_view text, size_t at) {
  if (at + 1 >= text.size() || text[at] != '{' || !IsNameStart(text[at + 1])) {
    return {};
  }
  size_t end = at + 1;
  while (end < text.size() && IsNameChar(text[end])) ++end;
  if (end == text.size() || text[end] != '}') return {};
  return text.substr(at + 1, end - at - 1);
}

}  // namespace

absl::StatusOr<CommandTemplate> CommandTemplate::Parse(
    absl::string_view text, const std::vector<std::string>& knobs) {
  if (absl::StripAsciiWhitespace(text).empty()) {
    return absl::InvalidArgumentError(
        "the command is empty, expected a shell command with {knob} where the "
        "value of a knob goes");
  }
  CommandTemplate result;
  result.text_ = std::string(text);
  std::set<std::string> used;
  std::string literal;
  for (size_t i = 0; i < text.size();) {
    const absl::string_view escaped =
        text[i] == '{' ? NameAt(text, i + 1) : absl::string_view();
    const size_t after = i + escaped.size() + 3;
    if (!escaped.empty() && after < text.size() && text[after] == '}') {
      absl::StrAppend(&literal, "{", escaped, "}");
      i = after + 1;
      continue;
    }
    const absl::string_view name = NameAt(text, i);
    const bool of_the_shell = i > 0 && text[i - 1] == '$';
    if (name.empty() || of_the_shell) {
      literal += text[i++];
      continue;
    }
    if (std::find(knobs.begin(), knobs.end(), name) == knobs.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "command, column ", i + 1, ": {", name, "} is no knob of the space (",
          absl::StrJoin(knobs, ", "), "); write {{", name,
          "}} for the text itself"));
    }
    used.insert(std::string(name));
    result.pieces_.push_back({std::move(literal), std::string(name)});
    literal.clear();
    i += name.size() + 2;
  }
  result.pieces_.push_back({std::move(literal), ""});
  for (const std::string& knob : knobs) {
    if (used.count(knob) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the command does not contain {", knob,
                       "}, so that knob would change nothing"));
    }
  }
  return result;
}

std::string CommandTemplate::Fill(
    const std::map<std::string, std::string>& values) const {
  std::string command;
  for (const Piece& piece : pieces_) {
    command += piece.literal;
    if (!piece.knob.empty()) command += QuoteForShell(values.at(piece.knob));
  }
  return command;
}

}  // namespace optrail::tuning
