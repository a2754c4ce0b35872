#include "tuning/space/string_location.h"

#include "absl/strings/ascii.h"

namespace optrail::tuning {
namespace {

// Walks a text and keeps line and column as protobuf's tokenizer counts them.
class Cursor {
 public:
  explicit Cursor(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return position_ == text_.size(); }
  char Peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  TextLocation location() const { return {line_, column_}; }

  void Advance() {
    if (AtEnd()) return;
    const char c = text_[position_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if (c == '\t') {
      column_ += 8 - (column_ - 1) % 8;
    } else {
      ++column_;
    }
  }
  // To the begin of a line, or the end of the text.
  void SkipToLine(int line) {
    while (line_ < line && !AtEnd()) {
      const size_t end = text_.find('\n', position_);
      if (end == absl::string_view::npos) return Advance(text_.size());
      position_ = end + 1;
      ++line_;
      column_ = 1;
    }
  }
  void Advance(size_t count) {
    for (size_t i = 0; i < count; ++i) Advance();
  }

  void SkipSpaceAndComments() {
    while (!AtEnd()) {
      if (absl::ascii_isspace(Peek())) {
        Advance();
      } else if (Peek() == '#') {
        while (!AtEnd() && Peek() != '\n') Advance();
      } else {
        return;
      }
    }
  }

  // The length in the source of the escape or character here.
  size_t SourceLength() const {
    if (Peek() != '\\') return 1;
    const auto digits = [this](size_t from, size_t most, bool (*is)(uint8_t)) {
      size_t n = 0;
      while (n < most && is(static_cast<uint8_t>(Peek(from + n)))) ++n;
      return n;
    };
    const auto is_octal = [](uint8_t c) { return c >= '0' && c <= '7'; };
    const auto is_hex = [](uint8_t c) {
      return absl::ascii_isxdigit(static_cast<unsigned char>(c));
    };
    switch (Peek(1)) {
      case 'x':
      case 'X':
        return 2 + digits(2, 2, is_hex);
      case 'u':
        return 2 + digits(2, 4, is_hex);
      case 'U':
        return 2 + digits(2, 8, is_hex);
      default:
        return is_octal(static_cast<uint8_t>(Peek(1)))
                   ? 1 + digits(1, 3, is_octal)
                   : 2;
    }
  }

 private:
  absl::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

TextLocation LocateInString(absl::string_view text, TextLocation field,
                            size_t offset) {
  Cursor cursor(text);
  const auto before = [&] {
    const TextLocation at = cursor.location();
    return at.line < field.line ||
           (at.line == field.line && at.column < field.column);
  };
  cursor.SkipToLine(field.line);
  while (!cursor.AtEnd() && before()) cursor.Advance();
  while (absl::ascii_isalnum(cursor.Peek()) || cursor.Peek() == '_') {
    cursor.Advance();
  }
  cursor.SkipSpaceAndComments();
  if (cursor.Peek() == ':') cursor.Advance();
  cursor.SkipSpaceAndComments();
  TextLocation last = field;
  while (cursor.Peek() == '"' || cursor.Peek() == '\'') {
    const char quote = cursor.Peek();
    cursor.Advance();
    while (!cursor.AtEnd() && cursor.Peek() != quote) {
      if (offset == 0) return cursor.location();
      // \u escapes stand for several bytes; a position inside one is its begin.
      --offset;
      cursor.Advance(cursor.SourceLength());
    }
    last = cursor.location();
    cursor.Advance();
    cursor.SkipSpaceAndComments();
  }
  return last;
}

}  // namespace optrail::tuning
