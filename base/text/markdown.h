#ifndef OPTRAIL_BASE_TEXT_MARKDOWN_H_
#define OPTRAIL_BASE_TEXT_MARKDOWN_H_

// Text that others wrote (a benchmark's name, a commit's subject, an error)
// inside Markdown that code hosts render: shown as it is, and doing nothing.
//
//   absl::StrAppend(&comment, "Slower: ", EscapeForMarkdown(name), "\n");
//
// It mentions and notifies nobody (@team), links nowhere (bare URLs, www., mail
// addresses, #12, GH-12, !12, JIRA-12, commit hashes), embeds nothing (images,
// HTML, formulas, emoji codes), closes no issue and is no list, heading or
// command of a host. Entities do not do that: a host looks for mentions and
// links after it has decoded them. It leaves alone what is in a code span; so
// each word that is not plainly a word or a number is put into one.
//
// It is one line, for a sentence or a table cell; it is not for the inside of a
// code block or of a link.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// "slower at 1a2b3c4d: see @team" -> "slower at `1a2b3c4d`: see `@team`".
// Control characters and invalid UTF-8 are escapes such as \x1b; spaces at the
// ends are dropped.
std::string EscapeForMarkdown(absl::string_view text);

// The same of a sentence of ours: what stands between backticks in it, a
// command or a name, is one code span. "see `optrail log`" stays as it is.
std::string SentenceForMarkdown(absl::string_view sentence);

// A command or another text that is copied as a whole, as one code span; "" for
// "". It is not for the cell of a table, which a | in it would end.
std::string CodeForMarkdown(absl::string_view text);

// Lines that are shown as they stand, as one code block; "" for "". Without it
// a host merges them into one paragraph.
std::string BlockForMarkdown(absl::string_view lines);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_MARKDOWN_H_
