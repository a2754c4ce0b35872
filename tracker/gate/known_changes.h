#ifndef OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_
#define OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_

// KnownChanges is what `changes` says of the series that a gate judges, so that
// the two answers refer to each other.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const KnownChanges known,
//                            KnownChanges::Of(history, now_unix_ns, report));
//   known.List(&report);            // what waits for an answer, or for points
//   known.NarrowSuspects(&report);  // where the change of a red row began
//
// A change after the candidate's commit says nothing of the candidate.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/gate/gate.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/judge/judge.h"

namespace optrail::tracker {

class KnownChanges {
 public:
  // Judges the series of the report's hardware and metrics on the branches of
  // its baselines.
  static absl::StatusOr<KnownChanges> Of(const History& history,
                                         int64_t now_unix_ns,
                                         const GateReport& report);

  // Fills in open_changes of rows that a window judges, and adds the notes.
  void List(GateReport* report) const;

  // Fills in good and bad of the red rows.
  void NarrowSuspects(GateReport* report) const;

 private:
  // The series of a row, as an index; -1 if there is none.
  int SeriesOf(const GateRow& row) const;

  LoadedSeries loaded_;
  std::vector<Judgement> judgements_;
  std::unordered_map<std::string, int> by_text_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_
