#ifndef OPTRAIL_TRACKER_HISTORY_SELECTORS_H_
#define OPTRAIL_TRACKER_HISTORY_SELECTORS_H_

// Which runs a person means: the one resolver of every command over a history.
//
//   OPTRAIL_ASSIGN_OR_RETURN(Selection head,
//                            Select(history, "HEAD", GitIn(workspace)));
//   for (const RunInfo& run : head.runs) std::cout << head.name << run.id();
//
// It takes what History::Resolve takes, and names that only git knows. Commits
// are ordered by their position; time orders the runs of one commit and runs
// without a position.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

// Tag, branch or hash -> full commit hash. Null: there is no git to ask.
using CommitResolver =
    std::function<absl::StatusOr<std::string>(absl::string_view name)>;
CommitResolver GitIn(const std::string& workspace);

struct Selection {
  // In the order of a series. Empty where a commit is known and the history has
  // no run of it.
  std::vector<RunInfo> runs;
  std::string commit;  // full hash, where a commit was named
  std::string name;    // "commit 1a2b3c4d5e6f (HEAD~1)", "latest"
  std::vector<std::string> notes;
};

// NotFound where neither the history nor git knows `what`; InvalidArgument
// where it could be several; DataLoss where it is damaged (History::Resolve).
absl::StatusOr<Selection> Select(const History& history,
                                 const std::string& what,
                                 const CommitResolver& git,
                                 const RunFilter& filter = {});

// The same, and NotFound where there is no run.
absl::StatusOr<Selection> SelectRuns(const History& history,
                                     const std::string& what,
                                     const CommitResolver& git,
                                     const RunFilter& filter = {});

// "latest" or "latest~2".
bool IsLatest(absl::string_view selector);

// The first twelve digits; "no commit" for "".
std::string ShortHash(absl::string_view commit);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_SELECTORS_H_
