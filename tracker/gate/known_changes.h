#ifndef OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_
#define OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_

// KnownChanges is what `changes` would have said of the series that a gate
// judges when the candidate was measured, so that the two answers refer to each
// other.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const KnownChanges known,
//                            KnownChanges::Of(history, policy, git, baselines,
//                                             candidate, now_unix_ns));
//   compare.level_start = known.LevelStart(...);
//   known.List(&report);            // what waits for an answer, or for points
//   known.HeedAnswers(&report);     // an ack covers a red row
//   known.NarrowSuspects(&report);  // where the change of a red row began
//
// It knows no point after the candidate.

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/gate/candidate.h"
#include "tracker/gate/gate.h"
#include "tracker/history/history.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"
#include "tracker/series/shared_names.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {

class KnownChanges {
 public:
  // Judges the series that the policy gates, of the candidate's hardware, on
  // its branches and those of `baselines` that are windows. At `now_unix_ns`
  // mutes hold or have ended.
  static absl::StatusOr<KnownChanges> Of(
      const History& history, const Policy& policy, const GitLookup& git,
      const std::vector<proto::Baseline>& baselines, const Candidate& candidate,
      int64_t now_unix_ns);

  // The first of `runs` that belongs to the level that was the norm before the
  // candidate; "" if all do.
  std::string LevelStart(const proto::BenchmarkKey& benchmark,
                         absl::string_view metric, absl::string_view hardware,
                         absl::string_view branch,
                         const std::set<std::string>& runs) const;

  // Fills in open_changes of rows that a window judges, and adds the notes, one
  // of them about benchmarks that the branch lost so long ago that no row has
  // them.
  void List(GateReport* report) const;

  // Makes a warning of each red row that somebody has acknowledged: the
  // candidate is among the suspects that the answer names, and its change is
  // not larger; or the benchmark is missing, and the answer came after it was
  // measured last. Other answers only say so.
  void HeedAnswers(GateReport* report) const;

  // Fills in good and bad of the red rows.
  void NarrowSuspects(GateReport* report) const;

 private:
  explicit KnownChanges(TriageBook book) : book_(std::move(book)) {}

  // A series as an index; -1 if there is none.
  int Find(const proto::BenchmarkKey& benchmark, absl::string_view metric,
           absl::string_view hardware, absl::string_view branch) const;
  // The one that a window of the row is of, whatever the candidate's branch is.
  int SeriesOf(const GateRow& row) const;

  // Makes a warning of a row of a missing benchmark that is acknowledged.
  void HeedRemoval(const Series& series, GateRow* row) const;
  void NoteForgotten(GateReport* report) const;
  // Notes those that the report has a row of.
  void NoteSharedNames(GateReport* report) const;

  TriageBook book_;
  std::vector<Series> series_;
  std::vector<Judgement> judgements_;  // by series
  // By series: the candidate's point; past the end where it has none.
  std::vector<int> candidates_;
  std::unordered_map<std::string, int> by_key_;
  // Series of a window's branch that the newest run of a suite of the candidate
  // lacks, and nobody has acknowledged or exempted that.
  std::vector<int> lost_;
  std::vector<SharedName> shared_names_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_KNOWN_CHANGES_H_
