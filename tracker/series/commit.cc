#include "tracker/series/commit.h"

#include <algorithm>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/process/git.h"
#include "tracker/series/work_tree.h"

namespace optrail::tracker {
namespace {

bool IsFullHash(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

proto::Commit HeadCommit(const std::string& workspace, std::string* note) {
  proto::Commit commit;
  const absl::StatusOr<GitFacts> facts = FindGitFacts(workspace);
  if (!facts.ok()) {
    *note = absl::StrCat("a record of it is without a commit: ",
                         facts.status().message());
    return commit;
  }
  note->clear();
  commit.set_id(facts->commit);
  // CI services check out a commit, not a branch.
  const char* branch = std::getenv("OPTRAIL_BRANCH");
  commit.set_branch(branch != nullptr ? branch : facts->branch);
  if (commit.branch().empty()) {
    *note =
        "HEAD is detached, so results are recorded without a branch and no "
        "window over one will find them; next: set OPTRAIL_BRANCH";
  }
  if (facts->first_parent_position) {
    commit.set_first_parent_position(*facts->first_parent_position);
  } else {
    *note =
        "a shallow clone hides the commit's position; results are ordered by "
        "time";
  }
  commit.set_commit_unix_ns(facts->commit_time_unix_s * int64_t{1'000'000'000});
  commit.set_subject(facts->subject);
  commit.set_dirty(FindWorkTreeChanges(*facts).any());
  return commit;
}

absl::StatusOr<proto::Commit> CommitNamed(const std::string& workspace,
                                          const std::string& name,
                                          std::string* note) {
  std::string unused;
  if (note == nullptr) note = &unused;
  note->clear();
  proto::Commit commit;
  const absl::StatusOr<std::string> id = ResolveCommit(workspace, name);
  if (!id.ok()) {
    if (!IsFullHash(name)) {
      return absl::Status(
          id.status().code(),
          absl::StrCat("commit '", name, "': ", id.status().message(),
                       "; expected a name that git knows, or a full hash of 40 "
                       "digits; next: git fetch, or git log --oneline"));
    }
    commit.set_id(name);
    *note = absl::StrCat("git does not know commit ", name.substr(0, 12),
                         ": it is recorded without a branch and a place on it");
    return commit;
  }
  commit.set_id(*id);
  proto::Commit head = HeadCommit(workspace, &unused);
  // The work tree's changes are not part of a commit that was named.
  head.set_dirty(false);
  if (head.id() == *id) return head;
  if (const auto position = FirstParentPosition(workspace, *id);
      position.ok()) {
    commit.set_first_parent_position(*position);
  }
  if (const auto facts = DescribeCommit(workspace, *id); facts.ok()) {
    commit.set_commit_unix_ns(facts->time_unix_s * int64_t{1'000'000'000});
    commit.set_subject(facts->subject);
  }
  if (head.branch().empty()) {
    *note =
        "HEAD is detached: commits are recorded without a branch, and no "
        "window over one will find them; next: set OPTRAIL_BRANCH";
  } else if (IsOnFirstParentLine(workspace, commit, head.id())) {
    commit.set_branch(head.branch());
  } else {
    *note = absl::StrCat("commit ", id->substr(0, 12), " is not on branch ",
                         head.branch(),
                         ": it is recorded without a branch, and no window "
                         "over one will find it; next: --branch=NAME");
  }
  return commit;
}

bool IsOnFirstParentLine(const std::string& workspace,
                         const proto::Commit& commit, const std::string& tip) {
  if (!commit.has_first_parent_position()) return false;
  const auto tip_position = FirstParentPosition(workspace, tip);
  if (!tip_position.ok()) return false;
  const int64_t steps = *tip_position - commit.first_parent_position();
  if (steps < 0) return false;
  const auto found = ResolveCommit(workspace, absl::StrCat(tip, "~", steps));
  return found.ok() && *found == commit.id();
}

}  // namespace optrail::tracker
