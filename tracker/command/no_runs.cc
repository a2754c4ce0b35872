#include "tracker/command/no_runs.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/history/selectors.h"

namespace optrail::tracker {

absl::Status CheckHasRuns(const History& history, absl::string_view selector,
                          absl::string_view command) {
  if (!IsLatest(selector)) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const RunList runs, history.ListRuns());
  // A damaged run is one that is there.
  if (!runs.runs.empty() || !runs.bad_files.empty()) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const SessionList list, history.ListSessions());
  if (list.sessions.empty()) {
    return absl::NotFoundError(EmptyHistoryText(history.dir(), "runs"));
  }
  const size_t count = list.sessions.size();
  return absl::NotFoundError(absl::StrCat(
      "there are no runs in ", history.dir(), " yet, and ", count,
      count == 1 ? " tuning session" : " tuning sessions", "; next: optrail ",
      command, " ", list.sessions.back().id()));
}

}  // namespace optrail::tracker
