#ifndef OPTRAIL_TRACKER_SERIES_WORK_TREE_H_
#define OPTRAIL_TRACKER_SERIES_WORK_TREE_H_

// Finds what a work tree has beyond its commit that a build may have used. A
// run that was measured with it does not stand for the commit.
//
//   if (facts->dirty) std::cerr << UncommittedText(*facts);
//
// Edited tracked files count, and untracked files that git does not ignore, but
// for results (bench.json), products (./bench, lib.a) and the folders of build
// systems (build/ of CMake, target/ of Cargo): they come from measuring.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/process/git.h"

namespace optrail::tracker {

struct WorkTreeChanges {
  std::vector<std::string> edited;     // paths from the top of the work tree
  std::vector<std::string> untracked;  // a folder ends in "/"

  bool any() const { return !edited.empty() || !untracked.empty(); }
};

// All that git lists counts where it cannot be looked at.
WorkTreeChanges FindWorkTreeChanges(const GitFacts& facts);

// Says what kind of changes there are, and that the commit is judged without
// them; "" if there are none.
std::string UncommittedText(const GitFacts& facts);

// Returns whether an untracked file or folder ("build/") of the work tree
// `top` may be a source of a build.
bool MayBeSource(const std::string& top, absl::string_view path);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_WORK_TREE_H_
