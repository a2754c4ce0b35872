#include "base/text/markdown.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/utf8.h"

namespace optrail {
namespace {

// Hosts take so many hexadecimal digits for a commit.
constexpr size_t kHexDigitsOfACommit = 7;

bool IsLetter(char32_t c) {
  if (c < 0x80) return absl::ascii_isalpha(static_cast<unsigned char>(c));
  // Letters of Latin scripts and signs of the trade.
  return (c >= 0xc0 && c <= 0x24f && c != 0xd7 && c != 0xf7) || c == 0xb1 ||
         c == 0xb5 || c == 0xd7 || c == 0x3bc || c == 0x2013 || c == 0x2014 ||
         c == 0x2026 || c == 0x2192;
}

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }

// Whether a word without what stands around it in a sentence is one that no
// renderer sees anything in: letters joined by single - ' or /, or a number.
bool IsPlainCore(absl::string_view text) {
  std::vector<char32_t> core;
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    core.push_back(c.value);
    text.remove_prefix(c.size_bytes);
  }
  size_t hex_digits = 0;
  bool has_digit = false, has_hyphen = false;
  for (size_t i = 0; i < core.size(); ++i) {
    const char32_t c = core[i];
    const char32_t before = i > 0 ? core[i - 1] : 0;
    const char32_t after = i + 1 < core.size() ? core[i + 1] : 0;
    const bool is_hex =
        c < 0x80 && absl::ascii_isxdigit(static_cast<unsigned char>(c));
    hex_digits = is_hex ? hex_digits + 1 : 0;
    if (hex_digits >= kHexDigitsOfACommit) return false;
    has_digit |= IsDigit(c);
    if (IsLetter(c) || IsDigit(c)) continue;
    if ((c == '+' || c == '-') && i == 0 && IsDigit(after)) continue;
    if (c == '.' && (IsDigit(before) || before == '.') &&
        (IsDigit(after) || after == '.')) {
      continue;
    }
    if ((c == '-' || c == '\'' || c == '/') && IsLetter(before) &&
        IsLetter(after)) {
      has_hyphen |= c == '-';
      continue;
    }
    return false;
  }
  // Letters, a hyphen and digits name an issue of many trackers.
  return !(has_digit && has_hyphen);
}

bool IsPlain(absl::string_view word, bool is_first) {
  absl::string_view core = word;
  while (!core.empty() && absl::StrContains("(\"'", core.front())) {
    core.remove_prefix(1);
  }
  while (!core.empty() && absl::StrContains(".,;:!?%)\"'", core.back())) {
    core.remove_suffix(1);
  }
  // In front a dash is a list.
  if (word == "-") return !is_first;
  if (core.empty() || !IsPlainCore(core)) return false;
  // At the start of a line "1." and "1)" are a list.
  return !(is_first && IsDigit(static_cast<unsigned char>(word[0])) &&
           (word.back() == '.' || word.back() == ')'));
}

// Text that is not empty, between as many backticks as it needs.
std::string Fenced(absl::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  // One space on each side is not part of the contents.
  const bool pad = text.front() == '`' || text.back() == '`' ||
                   (text.front() == ' ' && text.back() == ' ');
  return absl::StrCat(fence, pad ? " " : "", text, pad ? " " : "", fence);
}

// `text` as code, shown as it is. A | ends a cell of a table even there, and a
// backslash before it is ambiguous: it stands between two spans.
std::string CodeSpan(absl::string_view text) {
  std::vector<std::string> spans;
  for (const absl::string_view part : absl::StrSplit(text, '|')) {
    spans.push_back(part.empty() ? "" : Fenced(part));
  }
  return absl::StrJoin(spans, "&#124;");
}

}  // namespace

std::string EscapeForMarkdown(absl::string_view text) {
  const std::string line = EscapeForTerminal(text);
  std::string result, code;
  const auto end_code = [&] {
    if (code.empty()) return;
    // What ends a part of a sentence is none of the name before it.
    size_t length = code.find_last_not_of(".,;:");
    length = length == std::string::npos ? code.size() : length + 1;
    absl::StrAppend(&result, result.empty() ? "" : " ",
                    CodeSpan(absl::string_view(code).substr(0, length)),
                    absl::string_view(code).substr(length));
    code.clear();
  };
  for (const absl::string_view word :
       absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (IsPlain(word, result.empty() && code.empty())) {
      end_code();
      absl::StrAppend(&result, result.empty() ? "" : " ", word);
    } else {
      absl::StrAppend(&code, code.empty() ? "" : " ", word);
    }
  }
  end_code();
  return result;
}

std::string SentenceForMarkdown(absl::string_view sentence) {
  const std::string line = EscapeForTerminal(sentence);
  std::string result;
  const auto add = [&result](absl::string_view part) {
    if (part.empty()) return;
    absl::StrAppend(&result, result.empty() ? "" : " ", part);
  };
  size_t done = 0, open = 0;
  while ((open = line.find('`', open)) != std::string::npos) {
    const size_t close = line.find('`', open + 1);
    if (close == std::string::npos) break;
    // A span stands between words, and punctuation may end it.
    const size_t end = std::min(line.find(' ', close), line.size());
    const absl::string_view tail =
        absl::string_view(line).substr(close + 1, end - close - 1);
    const bool is_span =
        close > open + 1 && (open == 0 || line[open - 1] == ' ') &&
        tail.find_first_not_of(".,;:") == absl::string_view::npos;
    if (is_span) {
      add(EscapeForMarkdown(absl::string_view(line).substr(done, open - done)));
      add(absl::StrCat(
          CodeSpan(absl::string_view(line).substr(open + 1, close - open - 1)),
          tail));
      done = end;
    }
    open = is_span ? end : open + 1;
  }
  add(EscapeForMarkdown(absl::string_view(line).substr(done)));
  return result;
}

std::string BlockForMarkdown(absl::string_view lines) {
  if (lines.empty()) return "";
  size_t longest = 2, run = 0;
  for (const char c : lines) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return absl::StrCat(fence, "\n", lines, lines.back() == '\n' ? "" : "\n",
                      fence, "\n");
}

std::string CodeForMarkdown(absl::string_view text) {
  return text.empty() ? "" : Fenced(EscapeForTerminal(text));
}

}  // namespace optrail
