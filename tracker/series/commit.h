#ifndef OPTRAIL_TRACKER_SERIES_COMMIT_H_
#define OPTRAIL_TRACKER_SERIES_COMMIT_H_

// The commit that a run records, from git.
//
//   std::string note;
//   *run.mutable_commit() = HeadCommit(WorkspaceDirectory(), &note);
//   if (!note.empty()) std::cerr << note << "\n";

#include <string>

#include "absl/status/statusor.h"
#include "tuning/proto/context.pb.h"

namespace optrail::tracker {

// The commit that is checked out at `workspace`. Without git or a repository
// it is empty: results are worth recording all the same. $OPTRAIL_BRANCH, if
// set, is the branch: CI services check out a commit. `note` says what is wrong
// (no git, no branch, a shallow clone), and is empty if nothing is.
proto::Commit HeadCommit(const std::string& workspace, std::string* note);

// The commit that git calls `name`. Its branch is the one that is checked out
// ($OPTRAIL_BRANCH, if set) where it is on that branch's first-parent line;
// otherwise it has none, and `note`, if given, says so. A full hash is taken as
// it is where git does not know it, for results that come from elsewhere; any
// other unknown name is an error that says what was expected.
absl::StatusOr<proto::Commit> CommitNamed(const std::string& workspace,
                                          const std::string& name,
                                          std::string* note = nullptr);

// Returns whether first parents lead from `tip`, a name that git knows, to
// `commit`.
bool IsOnFirstParentLine(const std::string& workspace,
                         const proto::Commit& commit, const std::string& tip);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_COMMIT_H_
