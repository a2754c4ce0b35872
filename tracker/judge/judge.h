#ifndef OPTRAIL_TRACKER_JUDGE_JUDGE_H_
#define OPTRAIL_TRACKER_JUDGE_JUDGE_H_

// The judge turns a series into one answer: its epochs, the changes of its
// level with what people have said about them, where its newest point stands,
// and from which point on it is a baseline. `changes`, the gate's window, the
// report and whoever else asks "did it get slower?" of a series ask here.
//
//   const TriageBook book(loaded.records, now_unix_ns);
//   const Judgement judgement = JudgeSeries(series, book);
//   if (judgement.standing == Verdict::kSlower) Alert(judgement.why);
//   for (int i = judgement.baseline_begin; i < series.points.size(); ++i) {
//     if (judgement.weights[i] > 0) AddToWindow(series.points[i]);
//   }
//
// Levels on two sides of an epoch (hardware, toolchain, settings) don't
// compare: each epoch is folded by itself (detect/online.h), and what lies
// between two of them is told apart from a change of the code. So is a shift
// that calibration loops, measured beside the benchmark, made as well.
//
// Folding is nearly all of its cost. fold_memory.h spares it where the points
// are those that were folded before.
//
// It compares no two runs: see compare/. It applies no policy: see gate/.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/verdict.h"
#include "tracker/detect/detect.h"
#include "tracker/judge/beside.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {

class FoldMemory;
struct Evidence;

struct JudgeOptions {
  // A change decides the standing for as many points after it; one for the
  // worse that nobody has answered, for ever.
  int recent_points = 30;
  // For JudgeAll, those of the series; of runs only what is not their results.
  // If given, a series that the newest run of its suite lacks is missing.
  const std::vector<proto::Run>* runs = nullptr;
  // The judge finds folds here and keeps them; null: it folds every series
  // anew. The answer is the same.
  FoldMemory* folds = nullptr;
};

enum class ChangeKind {
  kConfirmed,    // stays, whatever comes
  kProvisional,  // may be withdrawn; or only the newest points are off yet
  kReturn,       // between levels that it has shifted between before: no news
  kEpoch,        // levels differ, and so does what they were measured with
  kMachine,      // levels differ, and calibration loops beside them as much
  kCreep,        // no step: the newest points are worse than the level's first
  kRenamed,      // what may be the same benchmark's former name had another
};

// A shift of a series' level.
struct Change {
  const Series* series = nullptr;
  ChangeKind kind = ChangeKind::kConfirmed;
  // May be withdrawn: kProvisional, and what rests on so few points but has the
  // machine behind it.
  bool provisional = false;
  // Places are points of the series.
  ChangePoint change;
  // How much worse (+) or better (-) it got, whatever the metric's direction:
  // relative_change for LOWER_IS_BETTER, else 1 / (1 + relative_change) - 1.
  double worse_by = 0;
  Opinion opinion;
  // Its cause: the loop of kMachine, the former name of kRenamed.
  std::string cause;
  // The first point after which the level was, in the same epoch, where it had
  // been before this change, or beyond; null if it did not go back.
  const Point* back = nullptr;
  // The points of a provisional change are so far beyond the level before that
  // it is an alert before it is confirmed (StandApart of detect/sudden.h). A
  // creep stands apart if it is twice the effect that matters, and the effect
  // that matters even at the low end of its interval.
  bool stands_apart = false;
  // The detector takes so many more points like those since a provisional
  // change to confirm it; absent of others, and beyond kMostToAnswer.
  absl::optional<int> points_to_answer;
  // The last point before the change that was measured; null if none was. For
  // kRenamed it is another series'.
  const Point* before = nullptr;
  // The answer of EvidenceOf if the series has only some of its points; null if
  // it has all.
  std::shared_ptr<const Evidence> evidence;

  const Point& after() const { return series->points[change.index]; }
  bool IsUndone() const { return back != nullptr; }
  // A change for the worse that may be one, and that nobody has answered.
  bool IsOpen() const;
  // A change for the worse that nobody has answered, and that lasts: confirmed,
  // under another name, or provisional or a creep and standing apart. `changes`
  // exits with 1 for it.
  bool IsAlert() const;
  // Its epoch has ended: no point to come can confirm it.
  bool IsOfPastEpoch() const {
    return after().epoch != series->points.back().epoch;
  }
  // How many points were measured from the change to the end of the series.
  int PointsSince() const;
  // Says of a provisional change: "4 more points like it would confirm it; gate
  // judges the newest run".
  std::string AnswerText() const;
};

inline constexpr int kMostToAnswer = 40;

// It lies between levels that were measured with other things, or the machine
// made it: nobody has to answer it.
bool IsNoChangeOfTheCode(const Change& change);
// Lists of changes have it: it is news of at least `min_effect`.
bool IsListed(const Change& change, double min_effect);

// How many changes a list has: `changes` and the report print this one count.
struct ChangeCounts {
  int alerts = 0;
  int all = 0;
  int muted = 0;
  int answered = 0;  // acknowledged or expected

  void Add(const Change& change);
  // "1 new for the worse, 4 changes of at least 3% (1 muted, 2 answered)".
  std::string Text(double min_effect) const;
};

// A stretch of a series between two shifts of its level.
struct Level {
  int begin = 0, end = 0;  // places of the series, `end` not included
  double value = 0;        // the median
};

struct Judgement {
  // Ascending by place.
  std::vector<Change> changes;
  // The first point of every epoch, ascending; the first is 0.
  std::vector<int> epoch_begins;

  // The first point of the level that is the norm now: where the newest epoch
  // begins, or the last change in it that is confirmed or acknowledged. An
  // acknowledgement counts even where no change was found.
  int baseline_begin = 0;
  // Per point how much it says of its level, in [0, 1]: 0 without a value, less
  // than 1 for one that is far off (kFarOff robust deviations), falling with
  // the square of the distance.
  std::vector<double> weights;
  // Those with a value, ascending.
  std::vector<Level> levels;

  // Measured points since the newest epoch began, and how many a level takes:
  // with fewer a series has no verdict but for what was found before.
  int known_points = 0;
  int needed_points = 0;

  // The verdict on the newest point of the series.
  Verdict standing = Verdict::kNoBaseline;
  std::string why;  // one line
  // The change that decided the standing: an index into `changes`, or -1.
  int decided_by = -1;
  // A standing of kFailed names the runs of the last point that worked, null if
  // none did, and of the one after it. A metric that a failure leaves without
  // points has those of the time.
  std::shared_ptr<const PointRuns> last_worked, first_failed;
  // The series that began where this one ended, by a name like it; "" if none.
  std::string renamed_to;
  // The smallest relative change that the noise of the newest level lets one
  // see in five points; absent if there are too few to know.
  absl::optional<double> minimum_detectable_effect;

  // Sets `back` of each change that was more than provisional: once more where
  // one was put before others.
  void FindUndone();
  // The first point of the level that was the norm when only the first `points`
  // points were known: the last change among them that was confirmed then, or
  // that somebody acknowledged; 0 if there is none. Epochs have no say.
  int NormOf(int points, const Series& series, const TriageBook& book) const;
};

Judgement JudgeSeries(const Series& series, const TriageBook& book,
                      const JudgeOptions& options = {});

// The same of many, in parallel, and across series:
// - Where one ends and one of a similar name begins, their levels are compared.
// - A metric that the newest run lacks, because its benchmark failed or was
//   skipped, has the answer of the benchmark's time, if that is among `series`.
// - A failure on one branch is past once another branch has measured a later
//   commit: by its position, or by time where positions are unknown.
// `threads` 0: one per core. `series` must outlive the result.
std::vector<Judgement> JudgeAll(const std::vector<Series>& series,
                                const TriageBook& book,
                                const JudgeOptions& options = {},
                                int threads = 0);

// The second half of JudgeAll: what one series says of another, where
// JudgeSeries judged each.
void JudgeTogether(const std::vector<Series>& series, const TriageBook& book,
                   const JudgeOptions& options,
                   std::vector<Judgement>& judgements);
// By series: whether JudgeTogether looks at all of its points. Of the others
// the ends, the newest point that works and Series::times are enough.
std::vector<bool> NeedsAllPoints(const std::vector<Series>& series,
                                 const JudgeOptions& options);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_JUDGE_JUDGE_H_
