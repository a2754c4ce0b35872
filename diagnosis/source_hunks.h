#ifndef OPTRAIL_DIAGNOSIS_SOURCE_HUNKS_H_
#define OPTRAIL_DIAGNOSIS_SOURCE_HUNKS_H_

// Ranks the hunks of a diff by how likely they explain why a function is
// slower.
//
//   for (const SourceHunk& hunk : RankedHunks(git_diff, "blur")) {
//     std::cout << hunk.file << ":" << hunk.line << "\n";
//   }

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optrail::diagnosis {

struct SourceHunk {
  std::string file, line, function;  // `line`: the first one, of the new file
  std::vector<std::string> removed, added;
  int rank = 0;  // 0: how the project is built
};

// `diff`: what `git diff -U0` prints. Hunks of how it is built come first, then
// those that name the function, then others, documents last; those that change
// nothing but comments are left out.
std::vector<SourceHunk> RankedHunks(absl::string_view diff,
                                    const std::string& function);

// Returns whether a line of a source has no code.
bool IsCommentLine(absl::string_view line);

}  // namespace optrail::diagnosis

#endif  // OPTRAIL_DIAGNOSIS_SOURCE_HUNKS_H_
