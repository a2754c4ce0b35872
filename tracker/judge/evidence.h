#ifndef OPTRAIL_TRACKER_JUDGE_EVIDENCE_H_
#define OPTRAIL_TRACKER_JUDGE_EVIDENCE_H_

// Tells what a change of a series rests on, for every place that reports it:
// the two levels and the points behind them, the suspected commits, and the
// command that narrows them.
//
//   const Evidence evidence = EvidenceOf(change);
//   out << EvidenceText(change, evidence);
//
// prints
//
//   BM_Sort time: 30.1% slower (28.9% to 31.3%); 2.10 us over 40 points (44
//   runs) up to 1a2b3c4d5e6f, 2.73 us over 5 points (5 runs) since
//   5e6f7a8b9c0d; suspects: the 3 commits after 1a2b3c4d5e6f up to 5e6f7a8b9c0d

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/explain/explain.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"

namespace optrail::tracker {

// One of the two levels: exactly the points that it was taken from.
struct LevelEvidence {
  int begin = 0, end = 0;  // places of the series, `end` not included
  int points = 0;          // how many of these places have a value
  int behind = 0;          // how many from `end` on have one
  int runs = 0;            // of these points
  // Their ids, ascending; the first and the last one if the series has only
  // some of its points.
  std::vector<std::string> run_ids;
};

struct Evidence {
  LevelEvidence before, after;
  // The suspects are the commits after `good` up to `bad`; null where no point
  // before was measured.
  const proto::Commit* good = nullptr;
  const proto::Commit* bad = nullptr;
  // How many commits that is along first parents; absent where unknown.
  absl::optional<int64_t> suspects;
};

// "new", "acknowledged", "provisional, new", "undone", "new epoch", ...
std::string ChangeText(const Change& change);

Evidence EvidenceOf(const Change& change);
// Sets `suspects` anew, for who has moved `good` or `bad`.
void CountSuspects(Evidence& evidence);

// "1a2b3c4d5e6f..5e6f7a8b9c0d"; "5e6f7a8b9c0d" where that is the only suspect.
std::string SuspectsText(const Evidence& evidence);
// " --filter='^BM_x$' --metric=joules": flags by which a command takes `metric`
// of the benchmark of that name; the time needs no --metric.
std::string FilterFlags(absl::string_view name, absl::string_view metric);
// A regular expression that matches the name alone, no longer than it must be.
std::string PatternOf(absl::string_view name);
// The command that narrows a change of `metric` of the benchmark of that name,
// which is measured by the flags `how`: "--build='make' --run='./bench'".
//   optrail bisect GOOD BAD --filter='^BM_x$' --build=... --run=...
std::string BisectCommand(absl::string_view good_id, absl::string_view bad_id,
                          absl::string_view name, absl::string_view metric,
                          absl::string_view how = "--build=... --run=...");
// Shows the benchmark `name` of a run: what failed, and how.
std::string ShowCommand(absl::string_view run_id, absl::string_view name);
// The next step to the cause of a change: BisectCommand or, where one commit is
// the suspect, "git show BAD". "" where the commits are not known.
std::string NextCommand(const Evidence& evidence, absl::string_view name,
                        absl::string_view metric,
                        absl::string_view how = "--build=... --run=...");
// NextCommand for a change. No single commit made a creep, and a run of each
// end is too little to compare: its command shows the points of the series,
// with `history_flag` (HistoryFlag of command/command_support.h) behind it.
std::string NarrowingCommand(const Change& change, const Evidence& evidence,
                             absl::string_view history_flag);
// A sentence without the command.
std::string EvidenceText(const Change& change, const Evidence& evidence);

// Explains the change (explain/explain.h) by the last run before it and the
// first one after it; empty where there is no run before.
std::vector<std::string> ChangedWith(const Evidence& evidence,
                                     const Change& change,
                                     Explainer& explainer);

// The difference that the points of `series` show at `place`, where the judge
// has found no change; nullopt where they are too few to tell the noise.
absl::optional<ChangePoint> ChangeAsMeasured(const Judgement& judgement,
                                             const Series& series, int place);

// The same of a series that begins at `place` or whose points before it say
// nothing: `past` has those of the same benchmark on the branch that it left.
absl::optional<ChangePoint> ChangeSince(const std::vector<Point>& past,
                                        const Series& series, int place);

// By series: whether it is what its benchmark is judged by unless somebody asks
// for more: its time or, of a benchmark without one, every metric. Counts of
// verdicts are over these, since cpu_time beside time counts everything twice.
std::vector<bool> MainSeries(const std::vector<Series>& series);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_EVIDENCE_H_
