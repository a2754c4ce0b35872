#include "ops/core/source_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace optrail::ops {
namespace {

// Longest first.
constexpr absl::string_view kOperators[] = {
    "<<=", ">>=", "<=>", "->*", "...", "::", "->", ".*", "##",
    "++",  "--",  "<<",  ">>",  "<=",  ">=", "==", "!=", "&&",
    "||",  "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=", "^="};

bool IsWordChar(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Cutter {
 public:
  explicit Cutter(absl::string_view source) : rest_(source) {}

  std::vector<SourceLine> Cut() {
    while (!rest_.empty()) CutOne();
    return std::move(lines_);
  }

 private:
  void CutOne() {
    if (rest_[0] == '\n') {
      Skip(1);
      ++number_;
      begins_line_ = true;
      in_directive_ = false;
    } else if (const size_t spliced = SpliceSize(); spliced > 0) {
      Skip(spliced);
      ++number_;
    } else if (absl::ascii_isspace(rest_[0])) {
      Skip(1);
    } else if (absl::StartsWith(rest_, "//")) {
      SkipLineComment();
    } else if (absl::StartsWith(rest_, "/*")) {
      const size_t end = rest_.find("*/", 2);
      SkipLines(end == absl::string_view::npos ? rest_.size() : end + 2);
    } else if (rest_[0] == '#' && begins_line_) {
      Skip(1);
      begins_line_ = false;
      in_directive_ = true;
      lines_.push_back({/*is_directive=*/true, number_, {}});
    } else {
      begins_line_ = false;
      Add(TokenSize());
    }
  }

  // Of a backslash that ends its line, and that end; 0 where there is none.
  size_t SpliceSize() const {
    if (absl::StartsWith(rest_, "\\\n")) return 2;
    return absl::StartsWith(rest_, "\\\r\n") ? 3 : 0;
  }

  void Skip(size_t size) { rest_.remove_prefix(size); }

  void SkipLines(size_t size) {
    number_ += static_cast<int>(std::count(
        rest_.begin(), rest_.begin() + static_cast<long>(size), '\n'));
    Skip(size);
  }

  void SkipLineComment() {
    while (!rest_.empty() && rest_[0] != '\n') {
      const size_t spliced = SpliceSize();
      SkipLines(std::max<size_t>(spliced, 1));
    }
  }

  void Add(size_t size) {
    if (lines_.empty() || lines_.back().is_directive != in_directive_) {
      lines_.push_back({in_directive_, number_, {}});
    }
    SourceLine& line = lines_.back();
    std::string token(rest_.substr(0, size));
    SkipLines(size);
    const bool names_macro = line.is_directive && line.tokens.size() == 1 &&
                             line.tokens[0] == "define";
    if (names_macro && absl::StartsWith(rest_, "(")) {
      token += "(";
      Skip(1);
    }
    line.tokens.push_back(std::move(token));
  }

  size_t TokenSize() const {
    if (rest_[0] == '"' || rest_[0] == '\'') return LiteralSize(0);
    if (absl::ascii_isdigit(rest_[0]) || (rest_[0] == '.' && rest_.size() > 1 &&
                                          absl::ascii_isdigit(rest_[1]))) {
      return NumberSize();
    }
    if (IsWordChar(rest_[0])) return WordSize();
    if (IncludesInAngles()) {
      const size_t end = rest_.find_first_of(">\n");
      return end == absl::string_view::npos ? rest_.size()
                                            : end + (rest_[end] == '>');
    }
    for (const absl::string_view one : kOperators) {
      if (absl::StartsWith(rest_, one)) return one.size();
    }
    return 1;
  }

  bool IncludesInAngles() const {
    return rest_[0] == '<' && in_directive_ && !lines_.empty() &&
           lines_.back().tokens.size() == 1 &&
           absl::StartsWith(lines_.back().tokens[0], "include");
  }

  // With what follows at once, if that is a literal: R"(...)", u8"x".
  size_t WordSize() const {
    size_t size = 1;
    while (size < rest_.size() && IsWordChar(rest_[size])) ++size;
    const absl::string_view word = rest_.substr(0, size);
    if (size == rest_.size() || rest_[size] != '"') return size;
    for (const absl::string_view raw : {"R", "u8R", "uR", "UR", "LR"}) {
      if (word == raw) return RawLiteralSize(size);
    }
    return size;
  }

  size_t NumberSize() const {
    size_t size = 1;
    for (; size < rest_.size(); ++size) {
      const char c = rest_[size];
      if (IsWordChar(c) || c == '.') continue;
      const bool separates = c == '\'' && size + 1 < rest_.size() &&
                             absl::ascii_isalnum(rest_[size + 1]);
      const bool is_sign = (c == '+' || c == '-') &&
                           absl::StrContains("eEpP", rest_[size - 1]) &&
                           IsExponent(size - 1);
      if (!separates && !is_sign) break;
    }
    return size;
  }

  // In hexadecimal numbers an e is a digit: 0xe+1 is a sum of three tokens to
  // people and one number to the compiler, which refuses it.
  bool IsExponent(size_t at) const {
    const bool hexadecimal =
        absl::StartsWith(rest_, "0x") || absl::StartsWith(rest_, "0X");
    return absl::StrContains(hexadecimal ? "pP" : "eE", rest_[at]);
  }

  size_t LiteralSize(size_t begin) const {
    const char quote = rest_[begin];
    size_t size = begin + 1;
    while (size < rest_.size() && rest_[size] != quote) {
      if (rest_[size] == '\n') return size;
      size += rest_[size] == '\\' && size + 1 < rest_.size() ? 2 : 1;
    }
    return std::min(size + 1, rest_.size());
  }

  size_t RawLiteralSize(size_t quote) const {
    const size_t open = rest_.find('(', quote);
    if (open == absl::string_view::npos) return LiteralSize(quote);
    const std::string close =
        absl::StrCat(")", rest_.substr(quote + 1, open - quote - 1), "\"");
    const size_t end = rest_.find(close, open);
    return end == absl::string_view::npos ? rest_.size() : end + close.size();
  }

  absl::string_view rest_;
  int number_ = 1;
  bool begins_line_ = true;
  bool in_directive_ = false;
  std::vector<SourceLine> lines_;
};

}  // namespace

std::vector<SourceLine> LinesOf(absl::string_view source) {
  return Cutter(source).Cut();
}

}  // namespace optrail::ops
