#ifndef OPTRAIL_BASE_TEXT_CLOSEST_H_
#define OPTRAIL_BASE_TEXT_CLOSEST_H_

// Finds the name that a mistyped word probably means, for error messages.
//
//   DidYouMean("jsn", {"table", "json"})      // "; did you mean json?"
//   ExpectedOneOf("jsn", {"table", "json"})
//       // "expected table or json; did you mean json?"
//
// A name is close if at most a third of the word, and one character, is typed
// differently (Levenshtein's distance), or if the word is one of the parts
// between its underscores. Thread-safe.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail {

// Insertions, deletions and substitutions that turn `a` into `b`. Only the
// first 256 bytes of a word are compared.
int EditDistance(absl::string_view a, absl::string_view b);

// The closest of `names`, or "" if none is close.
std::string Closest(absl::string_view typed,
                    const std::vector<std::string>& names);

// "; did you mean PREFIXname?", or "" if no name is close.
std::string DidYouMean(absl::string_view typed,
                       const std::vector<std::string>& names,
                       absl::string_view prefix = "");

// "table, json or csv".
std::string JoinWithOr(const std::vector<std::string>& names);

// The end of an error about a value that is none of a few names.
std::string ExpectedOneOf(absl::string_view typed,
                          const std::vector<std::string>& names);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_CLOSEST_H_
