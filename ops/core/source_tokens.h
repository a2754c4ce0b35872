#ifndef OPTRAIL_OPS_CORE_SOURCE_TOKENS_H_
#define OPTRAIL_OPS_CORE_SOURCE_TOKENS_H_

// Cuts a C++ or CUDA source into tokens, as far as that needs no preprocessor.
//
//   for (const SourceLine& line : LinesOf("#define N 4  // rows\nint x[N];")) {
//     // {is_directive, 1, {"define", "N", "4"}}
//     // {code, 2, {"int", "x", "[", "N", "]", ";"}}
//   }
//
// Comments and whitespace are gone. No input is an error: a literal that nobody
// closes ends with its line, a comment with the text.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::ops {

struct SourceLine {
  bool is_directive = false;  // "#" itself is no token of it
  int number = 0;             // where it begins, from 1
  // Tokens joined by spaces tell sources apart as the compiler does. The name
  // of a macro that takes arguments has its parenthesis with it, "MAX(".
  std::vector<std::string> tokens;
};

// Directives, and everything between two of them as one line.
std::vector<SourceLine> LinesOf(absl::string_view source);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_SOURCE_TOKENS_H_
