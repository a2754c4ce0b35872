#ifndef OPTRAIL_TRACKER_GATE_GATE_H_
#define OPTRAIL_TRACKER_GATE_GATE_H_

// Gate applies a policy to a candidate: may this change go in?
//
//   GateOptions options;
//   options.candidate = "latest";
//   OPTRAIL_ASSIGN_OR_RETURN(GateReport report,
//                            Gate(history, policy, options));
//   return report.exit_code;   // 0 fine, 1 red, 3 can't tell
//
// The candidate is a commit with all of its suites on one hardware or several,
// each judged by its own past. An improvement never fails the gate. A benchmark
// that was not measured never passes it: without a run of the candidate, one of
// its suites or a baseline, or where noise hides what the policy must find, the
// answer is 3.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/compare/judged_row.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {

// Answers that need a git work tree; each may be null: then a baseline that
// needs it is an error that says so.
struct GitLookup {
  // Tag, branch or hash -> full commit hash.
  std::function<absl::StatusOr<std::string>(absl::string_view rev)> resolve;
  // Full hash of the merge base of two revisions.
  std::function<absl::StatusOr<std::string>(absl::string_view a,
                                            absl::string_view b)>
      merge_base;
};

struct GateOptions {
  // A commit, whose runs are all judged, or a run: see Select. "latest" is the
  // newest commit.
  std::string candidate = "latest";
  std::string suite;        // "": all suites of the candidate
  std::string hardware_id;  // "": every hardware that the candidate has
  absl::optional<proto::Baseline> baseline;  // instead of the policy's
  // For exemptions, and for runs from the future; 0: unknown.
  int64_t now_unix_s = 0;
  // How often the gate may be asked about this candidate while processes are
  // added; the looks share the false-alarm rate and 1 - power.
  int looks = 1;
  absl::optional<std::string> history_flag;  // GateReport::history_flag
  GitLookup git;
};

// Why a gate answers as it does; GateReasonName is its value in JSON, in this
// order.
enum class GateReason {
  kGreen,
  kRegression,     // a red row, of whatever verdict
  kIdentical,      // both sides are equal byte for byte
  kNoCandidate,    // no run of the candidate
  kMissing,        // a suite or hardware of the candidate has no run
  kDamagedRecord,  // the newest record cannot be read
  kNoBaseline,
  kNoBenchmark,   // no rule of the policy gates any
  kInconclusive,  // noise
};
std::string GateReasonName(GateReason reason);

struct GateRow : JudgedRow {
  RuleView rule;
  // "2099-12-31": a mute covers the row until the end of that day (UTC). It
  // quiets `changes` and the report, not the gate. Set for red rows only.
  std::string muted_until;
  // A red row names the answer that does not cover it; "" if there is none.
  std::string answer;
  // A red row's explanation (explain/explain.h).
  std::vector<std::string> changed;
  // The suspects are the commits after good up to bad, each with a run, where
  // a run between the two sides narrows them; absent elsewhere.
  struct Known {
    proto::Commit commit;
    std::string run_id;
  };
  absl::optional<Known> good, bad;
};

struct GateReport {
  int exit_code = 3;  // 0 fine, 1 regression or failed check, 3 can't tell
  GateReason reason = GateReason::kInconclusive;
  std::string summary;    // one line
  std::string candidate;  // "commit 1a2b3c4d5e6f (HEAD)"
  // What the candidate lacks, a sentence each: a suite that its past has.
  std::vector<std::string> missing;

  // A change for the worse that nobody has answered, in a series that a window
  // is taken from: what `changes` says today.
  struct OpenChange {
    SeriesKey key;
    std::string state;  // as `changes` has it: "provisional, new"
    // A creep never is, and the others only once no point to come may withdraw
    // them.
    bool is_confirmed = false;
    // An alert of `changes` (Change::IsAlert) that no more points must confirm:
    // confirmed, or a creep.
    bool is_unanswered = false;
    bool is_norm = false;  // the baseline is of the level since then
    double relative_change = 0, worse_by = 0;
    std::string good, first;  // commits: the last before it and its first
    int points_since = 0;
    absl::optional<int> points_to_answer;  // Change::points_to_answer
    std::string suspects, next;            // commits, and a command
  };
  std::vector<OpenChange> open_changes;  // the largest first

  std::vector<GateRow> rows;  // what matters first
  std::vector<std::string> notes;

  // With a quorum of the policy: its hardware, and each benchmark on it.
  std::vector<std::string> hardware;
  struct MatrixCell {
    absl::optional<Verdict> verdict;  // absent: not measured there
    absl::optional<double> ratio;     // candidate / baseline
  };
  struct MatrixRow {
    std::string suite, name, metric, baseline;
    std::vector<MatrixCell> cells;  // as `hardware`
    std::string slower_on;          // "2 of 3 hardware"
    bool is_red = false;
  };
  std::vector<MatrixRow> matrix;

  // The flags by which `bisect` measures as this gate did, if it did.
  std::string measured_by = "--build=... --run=...";
  int rounds = 0;  // that such a gate has measured
  // The flag by which other commands find the runs (HistoryFlag); absent where
  // they are in no history.
  absl::optional<std::string> history_flag;

  std::vector<RunInfo> candidate_runs;
  struct ResolvedBaseline {
    std::string text;
    std::string suite, hardware_id;  // of the runs that it judges
    std::vector<RunInfo> runs;
    std::string problem;  // why it is no baseline, if it is none
    // How its runs were measured, other than the candidate: "min sample 100 us
    // -> 500 us"; "" if alike, as far as is known.
    std::string measured_differently;
  };
  std::vector<ResolvedBaseline> baselines;
  double run_false_alarm_rate = 0;

  // The candidate lacks runs, which may come still.
  bool IsIncomplete() const {
    return reason == GateReason::kNoCandidate ||
           reason == GateReason::kMissing || !missing.empty();
  }

  // Rows whose action is FAIL: those that are red, and those where it is only
  // that nothing can be told.
  int CountRed() const;
  int CountCannotTell() const;
};

absl::StatusOr<GateReport> Gate(const History& history, const Policy& policy,
                                const GateOptions& options);

// The judgement without a history: what Gate does for each baseline once runs
// are read. Adds rows and notes; Conclude() says what follows. A note is added
// once.
void Judge(const Policy& policy, const Comparison& comparison,
           absl::string_view baseline_text, int64_t now_unix_s,
           GateReport* report);

// Suites and the hardware of a quorum on which the candidate has no run of them
// though it should.
using LackingRuns = std::set<std::pair<std::string, std::string>>;

// Lets the hardware of a quorum judge each benchmark together: where it is
// slower on too little of it, no row fails for that. Where runs of `lacking`
// (suite, hardware), or rows that can't be told, could decide it, nothing is
// red yet. Fills in the report's matrix.
void JudgeTogether(const proto::Quorum& quorum, const LackingRuns& lacking,
                   GateReport* report);

// Adds a note that is not there yet.
void AddNote(std::string note, GateReport* report);

// Sorts rows, sets exit code, reason and summary.
void Conclude(GateReport* report);

// How a policy makes two sets of runs be compared, in one of `comparisons` that
// share the false-alarm rate, as do the `looks`, which share 1 - power, too.
CompareOptions CompareOptionsFor(const Policy& policy, int comparisons,
                                 int looks = 1);

// Benchmarks to measure again, as regular expression for --benchmark_filter,
// and how many processes per side would tell: in all, and beyond those there
// are. Empty if there is nothing to repeat.
struct Remeasure {
  std::string filter;
  int processes = 0;
  int additional_processes = 0;
};
absl::optional<Remeasure> RemeasureRequest(const GateReport& report);

// A regular expression for --benchmark_filter that matches these names alone.
std::string BenchmarkFilter(const std::set<std::string>& names);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_GATE_H_
