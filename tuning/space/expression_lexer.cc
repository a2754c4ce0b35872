#include "tuning/space/expression_lexer.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace optrail::tuning::internal_expression {

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::kEnd:
      return "the end";
    case Token::kString:
      return absl::StrCat("the string '", token.text, "'");
    default:
      return absl::StrCat("\"", token.text, "\"");
  }
}

void ExpressionLexer::Fail(size_t offset, std::string message) {
  if (!error_.empty()) return;
  error_ = std::move(message);
  error_offset_ = offset;
}

bool ExpressionLexer::Advance() {
  while (position_ < text_.size() && absl::ascii_isspace(text_[position_])) {
    ++position_;
  }
  token_ = Token();
  token_.offset = position_;
  if (position_ == text_.size()) return true;
  const char c = text_[position_];
  if (absl::ascii_isalpha(c) || c == '_') return LexName();
  if (absl::ascii_isdigit(c)) return LexNumber();
  if (c == '\'' || c == '"') return LexString();
  return LexSymbol();
}

bool ExpressionLexer::LexName() {
  const size_t begin = position_;
  while (position_ < text_.size() &&
         (absl::ascii_isalnum(text_[position_]) || text_[position_] == '_')) {
    ++position_;
  }
  token_.kind = Token::kName;
  token_.text = std::string(text_.substr(begin, position_ - begin));
  return true;
}

bool ExpressionLexer::LexNumber() {
  const size_t begin = position_;
  bool is_double = false;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    const bool exponent_sign =
        (c == '+' || c == '-') &&
        (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E');
    if (c == '.' || exponent_sign) {
      is_double = true;
    } else if (!absl::ascii_isalnum(c) && c != '_') {
      break;
    } else if (c == 'e' || c == 'E') {
      is_double = true;
    }
    ++position_;
  }
  token_.text = std::string(text_.substr(begin, position_ - begin));
  const bool good = is_double
                        ? absl::SimpleAtod(token_.text, &token_.number)
                        : absl::SimpleAtoi(token_.text, &token_.integer) &&
                              token_.integer <= uint64_t{1} << 63;
  if (!good) {
    Fail(begin, absl::StrCat("\"", token_.text,
                             "\" is no number: expected a decimal integer of "
                             "64 bits or a double such as 0.5 or 1e9"));
    return false;
  }
  token_.kind = is_double ? Token::kDouble : Token::kInt;
  return true;
}

bool ExpressionLexer::LexString() {
  const char quote = text_[position_];
  size_t i = position_ + 1;
  std::string value;
  while (i < text_.size() && text_[i] != quote) {
    if (text_[i] == '\\') {
      ++i;
      if (i == text_.size()) break;
      if (text_[i] != '\\' && text_[i] != '\'' && text_[i] != '"') {
        Fail(i - 1, "unknown escape: expected \\\\, \\' or \\\"");
        return false;
      }
    }
    value.push_back(text_[i++]);
  }
  if (i >= text_.size()) {
    Fail(position_,
         absl::StrCat("string without a closing ", quote == '"' ? "\"" : "'"));
    return false;
  }
  position_ = i + 1;
  token_.kind = Token::kString;
  token_.text = std::move(value);
  return true;
}

bool ExpressionLexer::LexSymbol() {
  static const char* const kTwo[] = {"&&", "||", "==", "!=", "<=", ">="};
  const absl::string_view two = text_.substr(position_, 2);
  const absl::string_view one = text_.substr(position_, 1);
  token_.kind = Token::kSymbol;
  if (absl::c_linear_search(kTwo, two)) {
    token_.text = std::string(two);
  } else if (absl::string_view("()[],?:+-*/%<>!=.").find(one) !=
             absl::string_view::npos) {
    token_.text = std::string(one);
  } else if (one == "&" || one == "|") {
    Fail(position_,
         absl::StrCat("expected \"", one, one, "\", found \"", one, "\""));
    return false;
  } else {
    Fail(position_,
         absl::StrCat(
             "unexpected character \"",
             absl::ascii_isprint(one[0])
                 ? std::string(one)
                 : absl::StrCat("\\x", absl::Hex(static_cast<uint8_t>(one[0]))),
             "\""));
    return false;
  }
  position_ += token_.text.size();
  return true;
}
}  // namespace optrail::tuning::internal_expression
