#ifndef OPTRAIL_TRACKER_AB_WORKTREE_H_
#define OPTRAIL_TRACKER_AB_WORKTREE_H_

// CommitBuilder builds one target at several commits, beside the working tree
// and without touching it.
//
//   OPTRAIL_ASSIGN_OR_RETURN(auto builder,
//                            CommitBuilder::Create(options, interruptible));
//   OPTRAIL_ASSIGN_OR_RETURN(std::string commit, builder->Resolve("HEAD~1"));
//   OPTRAIL_ASSIGN_OR_RETURN(std::string binary, builder->Build(commit));
//
// All commits are checked out one after another into one git worktree in a
// temporary folder, with one bazel output base: only what changed is built
// again, and equal code gives equal bytes because it has been built at the same
// place. Worktree, output base and bazel's server go with the object.
//
// Only the binary itself is kept: a target that needs run files won't find
// them.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/ab/interruptible.h"
#include "tracker/ab/temporary_folder.h"

namespace optrail::tracker {

// Whether two files hold the same bytes.
absl::StatusOr<bool> AreIdentical(const std::string& path_a,
                                  const std::string& path_b);

struct BuildOptions {
  std::string repository;                    // any folder in it
  std::string target;                        // "//path:name"
  absl::Duration deadline = absl::Hours(1);  // of one build
  bool quiet = false;
};

class CommitBuilder {
 public:
  // InvalidArgument for a target that is no label of one target; errors of
  // git.h. `interruptible` must outlive the builder.
  static absl::StatusOr<std::unique_ptr<CommitBuilder>> Create(
      const BuildOptions& options, Interruptible& interruptible);
  CommitBuilder(const CommitBuilder&) = delete;
  CommitBuilder& operator=(const CommitBuilder&) = delete;
  ~CommitBuilder();

  // The full id of the commit that `name` means. NotFound.
  absl::StatusOr<std::string> Resolve(const std::string& name) const;

  // The ids from `good` to `bad`, both included, each the first parent of the
  // next. FailedPrecondition if `good` is not on that line of `bad`.
  absl::StatusOr<std::vector<std::string>> FirstParentLine(
      const std::string& good, const std::string& bad) const;
  // The first line of the commit's message, or "".
  std::string Subject(const std::string& commit) const;

  // Path of the built binary; it stays until the builder goes. A commit that
  // was built before is not built again.
  //   NotFound            the target is not there at this commit
  //   FailedPrecondition  it does not build, or to no program: with the end of
  //                       the log
  //   Cancelled           interrupted
  absl::StatusOr<std::string> Build(const std::string& commit);

  // Builds that were run.
  int builds() const { return builds_; }
  // For other files that should go with the builder.
  const std::string& folder() const { return folder_->path(); }

 private:
  CommitBuilder(BuildOptions options, std::string top_level,
                std::unique_ptr<TemporaryFolder> folder,
                Interruptible& interruptible);
  absl::Status CheckOut(const std::string& commit);
  absl::StatusOr<std::string> BuiltFile(const std::string& bazel);
  std::string Bazel() const;

  const BuildOptions options_;
  const std::string top_level_;
  const std::unique_ptr<TemporaryFolder> folder_;
  Interruptible& interruptible_;
  const std::string tree_;
  const std::string output_base_flag_;
  bool has_tree_ = false;
  int builds_ = 0;
  std::map<std::string, std::string> built_;  // commit -> binary
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_AB_WORKTREE_H_
