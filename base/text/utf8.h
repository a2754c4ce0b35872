#ifndef OPTRAIL_BASE_TEXT_UTF8_H_
#define OPTRAIL_BASE_TEXT_UTF8_H_

// Text that others wrote (the output of a command, the name of a branch, a
// file that is imported) made fit to be stored and shown. It is done once, at
// the border where the text comes in: what is inside is valid UTF-8, which
// protobuf asks of a string, and moves no cursor.
//
//   trial.set_detail(SanitiseText(TruncateUtf8(output, 4096)));
//   run.mutable_commit()->set_branch(SanitiseText(branch));
//
// JSON and CSV quote text themselves (base/text/table.h); Markdown does in
// base/text/markdown.h.

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// A character, or one byte that is none.
struct CodePoint {
  char32_t value;
  size_t size_bytes;
  bool valid;
};

// The code point at the start of `text`, which is not empty. Overlong forms,
// surrogates and values beyond Unicode are invalid, one byte at a time.
CodePoint FirstCodePoint(absl::string_view text);

// Characters that move or reorder what stands around them, or that nobody sees:
// controls (newline and tab among them), marks for direction that can make text
// read as what it is not, and spaces of no width.
bool IsHostile(char32_t c);

bool IsValidUtf8(absl::string_view text);

// The same with U+FFFD for what is no UTF-8: one for each character that was
// cut, one for each byte that could not be part of one.
std::string ReplaceInvalidUtf8(absl::string_view text);

// Valid UTF-8 in which hostile characters, but for newlines and tabs, are
// escapes such as \x1b. What is sanitised already stays as it is.
std::string SanitiseText(absl::string_view text);

// `text` in one line that is safe to print: control characters and invalid
// UTF-8 become escapes such as \n and \x1b.
std::string EscapeForTerminal(absl::string_view text);

// The first and the last characters of `text` that fit into `most_bytes`; a
// character is never cut. Bytes that are no UTF-8 may be parted anywhere.
absl::string_view TruncateUtf8(absl::string_view text, size_t most_bytes);
absl::string_view TailUtf8(absl::string_view text, size_t most_bytes);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_UTF8_H_
