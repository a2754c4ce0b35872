#ifndef OPTRAIL_TUNING_SPACE_EXPRESSION_LEXER_H_
#define OPTRAIL_TUNING_SPACE_EXPRESSION_LEXER_H_

// Cuts the text of an expression into tokens. Only for expression*.cc.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail::tuning::internal_expression {

struct Token {
  enum Kind { kEnd, kName, kInt, kDouble, kString, kSymbol };
  Kind kind = kEnd;
  size_t offset = 0;
  std::string text;      // a name, a symbol or a string's value
  uint64_t integer = 0;  // kInt: magnitude
  double number = 0;
};

// For messages: "the end", "the string 'a'".
std::string Describe(const Token& token);

// `text` must outlive it.
class ExpressionLexer {
 public:
  explicit ExpressionLexer(absl::string_view text) : text_(text) {}

  // Goes on to the next token; false: it is malformed, and error() says how.
  bool Advance();
  // Empty before the first Advance().
  const Token& token() const { return token_; }

  // Keeps the first error, of the lexer or of who reads the tokens.
  void Fail(size_t offset, std::string message);
  const std::string& error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

 private:
  bool LexName();
  bool LexNumber();
  bool LexString();
  bool LexSymbol();

  const absl::string_view text_;
  size_t position_ = 0;
  Token token_;
  std::string error_;
  size_t error_offset_ = 0;
};

}  // namespace optrail::tuning::internal_expression

#endif  // OPTRAIL_TUNING_SPACE_EXPRESSION_LEXER_H_
