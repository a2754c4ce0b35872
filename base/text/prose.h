#ifndef OPTRAIL_BASE_TEXT_PROSE_H_
#define OPTRAIL_BASE_TEXT_PROSE_H_

// Wraps sentences for the terminal that they are printed on.
//
//   std::cout << WrapProse(text, TerminalWidth());
//
// A pipe gets each sentence on one line, so that grep finds it as a whole. A
// table is laid out by base/text/table.h; its lines are no prose.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail {

// Each line of `text` as lines of at most `width` columns (0: any), and of at
// most 100, since longer ones are hard to read. What follows the first is
// indented by two columns more than it.
//
// Two things are never broken, so that they can be copied: a word, such as the
// name of a benchmark, and a command. A command is what follows "next: ", and
// a line that begins with "optrail " or "--". Only a word that is longer than a
// line and has commas but no slash, a config, goes on after a comma.
std::string WrapProse(absl::string_view text, int width);

// The words of `text` as one paragraph of lines of at most `width` columns; a
// longer word has a line of its own, unless it is a config. The first line is
// indented by `first` columns and the others by `indent`. It does not end with
// a newline.
std::string FillParagraph(absl::string_view text, int width, int first,
                          int indent);

// "a, b, c and 4 more": a list of names that stops after the first `most`.
// Lists whose members have commas take the separator "; ": "a, b; c, d; and 4
// more".
std::string JoinFirst(const std::vector<std::string>& names, size_t most,
                      absl::string_view separator = ", ");

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_PROSE_H_
