#ifndef OPTRAIL_BASE_PROCESS_GIT_H_
#define OPTRAIL_BASE_PROCESS_GIT_H_

// What a result needs to know about the source tree it was measured at, from
// the `git` command.
//
//   absl::StatusOr<GitFacts> facts = FindGitFacts(WorkspaceDirectory());
//
// Errors, here and below:
//   Unavailable         git is not installed
//   FailedPrecondition  the folder is not in a repository, or has no commit
//   yet,
//                       or git refuses it, or history is cut off (shallow
//                       clone) where it is needed
//   NotFound            no such commit
// It never writes to the repository.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace optrail {

struct GitFacts {
  std::string top_level;  // absolute path of the working tree
  std::string commit;     // 40 hexadecimal digits
  // Number of commits on the first-parent line up to and including `commit`.
  // Unset in a shallow clone, which can't know.
  std::optional<int64_t> first_parent_position;
  std::string branch;  // empty: detached
  int64_t commit_time_unix_s = 0;
  std::string subject;
  // Tracked files differ from `commit`, or there are untracked ones that are
  // not ignored; files below .optrail/, which are our own, do not count.
  bool dirty = false;
  bool shallow = false;
};

absl::StatusOr<GitFacts> FindGitFacts(const std::string& dir);

// The full id of the commit that `name` (id, branch, tag, HEAD~2) means.
absl::StatusOr<std::string> ResolveCommit(const std::string& dir,
                                          const std::string& name);

struct GitCommit {
  int64_t time_unix_s = 0;
  std::string subject;
};

// Author, time and subject of the commit with this full id.
absl::StatusOr<GitCommit> DescribeCommit(const std::string& dir,
                                         const std::string& id);

// Commits on the first-parent line up to and including `commit`.
absl::StatusOr<int64_t> FirstParentPosition(const std::string& dir,
                                            const std::string& commit);

// The best common ancestor. NotFound too where there is none.
absl::StatusOr<std::string> MergeBase(const std::string& dir,
                                      const std::string& a,
                                      const std::string& b);

// Returns the output of `git diff` for two commits, without lines of context.
absl::StatusOr<std::string> DiffCommits(const std::string& dir,
                                        const std::string& a,
                                        const std::string& b);

// The root of the work tree the user is in, which holds .optrail/: the
// workspace of `bazel run`, else the nearest folder above with a .git, else the
// current one.
std::string WorkspaceDirectory();

// What the user's relative paths start from: where `bazel run` was called, else
// the current folder.
std::string WorkingDirectory();

}  // namespace optrail

#endif  // OPTRAIL_BASE_PROCESS_GIT_H_
