#ifndef OPTRAIL_TRACKER_CHECKOUT_WORKTREE_H_
#define OPTRAIL_TRACKER_CHECKOUT_WORKTREE_H_

// Worktrees checks commits out beside the working tree, without touching it.
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto trees,
//                            Worktrees::Create(options, interruptible));
//   OPTRAIL_ASSIGN_OR_RETURN(std::string commit, trees->Resolve("HEAD~1"));
//   OPTRAIL_ASSIGN_OR_RETURN(std::string path, trees->CheckOut("a", commit));
//
// A tree is a git worktree; checking another commit out into it changes only
// the files that differ, and what was built there and git ignores stays, so
// that the next build is incremental.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tracker/checkout/interruptible.h"
#include "tracker/checkout/temporary_folder.h"

namespace optrail::tracker {

struct WorktreeOptions {
  std::string repository;  // any folder in it
  // Where the trees are, kept when the object goes, and reused by the next one;
  // empty: a temporary folder that goes with it, or, if the process is killed,
  // with the next Create for that repository. One process at a time.
  std::string folder;
};

class Worktrees {
 public:
  // Errors of git.h; Unavailable where another process has `folder`.
  // `interruptible` must outlive the trees.
  static absl::StatusOr<std::unique_ptr<Worktrees>> Create(
      const WorktreeOptions& options, Interruptible& interruptible);
  Worktrees(const Worktrees&) = delete;
  Worktrees& operator=(const Worktrees&) = delete;
  ~Worktrees();

  // The full id of the commit that `name` means. NotFound.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;

  // The ids from `good` to `bad`, both included, each the first parent of the
  // next. FailedPrecondition if `good` is not on that line of `bad`.
  absl::StatusOr<std::vector<std::string>> FirstParentLine(
      const std::string& good, const std::string& bad) const;
  // The ids that `range` ("v1.2..HEAD", or one name: all that lead to it)
  // names along first parents, newest first.
  absl::StatusOr<std::vector<std::string>> Range(
      const std::string& range) const;
  // The first line of the commit's message, or "".
  std::string Subject(const std::string& commit) const;

  // The path of the tree of that name, which then holds `commit`. Names are of
  // the same length, so that paths are: their length alone moves a program's
  // stack and with it some readings.
  absl::StatusOr<std::string> CheckOut(const std::string& name,
                                       const std::string& commit);

  // For other files that should go with the trees.
  const std::string& folder() const { return folder_; }
  const std::string& top_level() const { return top_level_; }

 private:
  Worktrees(std::string top_level, std::string folder,
            std::unique_ptr<TemporaryFolder> temporary, int lock,
            Interruptible& interruptible);
  absl::Status Add(const std::string& path, const std::string& commit) const;

  const std::string top_level_;
  const std::string folder_;
  const std::unique_ptr<TemporaryFolder> temporary_;  // null: kept
  const int lock_;                                    // descriptor
  Interruptible& interruptible_;
  std::set<std::string> trees_;  // paths
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CHECKOUT_WORKTREE_H_
