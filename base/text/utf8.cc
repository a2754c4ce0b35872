#include "base/text/utf8.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optrail {
namespace {

constexpr absl::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr size_t kMostBytes = 4;                            // of one character

bool IsBetween(char32_t c, char32_t low, char32_t high) {
  return c >= low && c <= high;
}

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Bytes of the character that begins with `first`; 0 where none does.
size_t LengthAfter(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if ((byte & 0xf0) == 0xe0) return 3;
  if (byte >= 0xf0 && byte < 0xf5) return 4;
  return 0;
}

// How much of `text`, which begins with no character, one U+FFFD stands for:
// the beginning of a character that was cut, or one byte.
size_t InvalidBytes(absl::string_view text) {
  const size_t length = LengthAfter(text[0]);
  size_t present = 1;
  while (present < length && present < text.size() &&
         IsContinuation(text[present])) {
    ++present;
  }
  // A whole one that is invalid is overlong, a surrogate or beyond Unicode.
  return present < length ? present : 1;
}

}  // namespace

CodePoint FirstCodePoint(absl::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const CodePoint invalid = {byte(0), 1, false};
  if (byte(0) < 0x80) return {byte(0), 1, true};
  size_t size;
  char32_t value, least;
  if ((byte(0) & 0xe0) == 0xc0) {
    size = 2, value = byte(0) & 0x1f, least = 0x80;
  } else if ((byte(0) & 0xf0) == 0xe0) {
    size = 3, value = byte(0) & 0x0f, least = 0x800;
  } else if ((byte(0) & 0xf8) == 0xf0) {
    size = 4, value = byte(0) & 0x07, least = 0x10000;
  } else {
    return invalid;
  }
  if (text.size() < size) return invalid;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return invalid;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  if (value < least || value > 0x10ffff || IsBetween(value, 0xd800, 0xdfff)) {
    return invalid;
  }
  return {value, size, true};
}

bool IsHostile(char32_t c) {
  // Joiners (U+200C, U+200D) belong to the spelling of scripts and emoji.
  return c < 0x20 || IsBetween(c, 0x7f, 0x9f) || c == 0x61c || c == 0x200b ||
         IsBetween(c, 0x200e, 0x200f) || IsBetween(c, 0x2028, 0x202e) ||
         IsBetween(c, 0x2060, 0x206f) || c == 0xfeff;
}

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    if (!c.valid) return false;
    text.remove_prefix(c.size_bytes);
  }
  return true;
}

std::string ReplaceInvalidUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    const size_t bytes = c.valid ? c.size_bytes : InvalidBytes(text);
    absl::StrAppend(&result, c.valid ? text.substr(0, bytes) : kReplacement);
    text.remove_prefix(bytes);
  }
  return result;
}

std::string SanitiseText(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    const size_t bytes = c.valid ? c.size_bytes : InvalidBytes(text);
    if (!c.valid) {
      absl::StrAppend(&result, kReplacement);
    } else if (!IsHostile(c.value) || c.value == '\n' || c.value == '\t') {
      absl::StrAppend(&result, text.substr(0, bytes));
    } else if (c.value == '\r') {
      result += "\\r";
    } else if (c.value < 0x100) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<uint32_t>(c.value));
    } else {
      absl::StrAppendFormat(&result, "\\u%04x", static_cast<uint32_t>(c.value));
    }
    text.remove_prefix(bytes);
  }
  return result;
}

std::string EscapeForTerminal(absl::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint c = FirstCodePoint(text);
    if (c.valid && !IsHostile(c.value)) {
      absl::StrAppend(&result, text.substr(0, c.size_bytes));
    } else if (c.value == '\n') {
      result += "\\n";
    } else if (c.value == '\t') {
      result += "\\t";
    } else if (c.value == '\r') {
      result += "\\r";
    } else if (!c.valid || c.value < 0x100) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<uint32_t>(c.value));
    } else {
      absl::StrAppendFormat(&result, "\\u%04x", static_cast<uint32_t>(c.value));
    }
    text.remove_prefix(c.size_bytes);
  }
  return result;
}

absl::string_view TruncateUtf8(absl::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  // Only a whole character may be given up: a run of stray continuation bytes
  // is none.
  for (size_t cut = most_bytes; cut + kMostBytes > most_bytes; --cut) {
    if (!IsContinuation(text[cut])) return text.substr(0, cut);
    if (cut == 0) break;
  }
  return text.substr(0, most_bytes);
}

absl::string_view TailUtf8(absl::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  const size_t start = text.size() - most_bytes;
  for (size_t cut = start; cut < start + kMostBytes; ++cut) {
    if (cut == text.size() || !IsContinuation(text[cut])) {
      return text.substr(cut);
    }
  }
  return text.substr(start);
}

}  // namespace optrail
