#ifndef OPTRAIL_TRACKER_JUDGE_CHANGES_TABLE_H_
#define OPTRAIL_TRACKER_JUDGE_CHANGES_TABLE_H_

// The table of `optrail changes`. Part of changes_command.h.

#include <memory>
#include <string>
#include <vector>

#include "base/text/table.h"
#include "tracker/explain/explain.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// A series whose newest run crashed or was wrong: nobody can say how much it
// changed, and no record of triage answers it.
struct Failure {
  const Series* series = nullptr;
  std::string why;
  // Judgement::last_worked and first_failed.
  std::shared_ptr<const PointRuns> last_worked, first_failed;
};

// Programs get every piece of the evidence; people get what they need to choose
// a row, and a sentence for each that wants an answer. `history_flag`
// is HistoryFlag of the command.
Table ChangesTable(const std::vector<Change>& changes,
                   const std::vector<Failure>& failures, OutputFormat format,
                   const std::string& history_flag, Explainer& explainer);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_CHANGES_TABLE_H_
