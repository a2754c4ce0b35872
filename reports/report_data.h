#ifndef OPTRAIL_REPORTS_REPORT_DATA_H_
#define OPTRAIL_REPORTS_REPORT_DATA_H_

// What a report shows, as plain values: the one model that the HTML, Markdown
// and JSON writers read.
//
//   const ReportData data = BuildReportData(runs, sessions, {});
//   std::string page = WriteHtmlReport(data, {});
//
// Series, points and epochs are the tracker's (tracker/series/series.h), and so
// are sessions (tracker/convergence/convergence.h); this adds
// their names, their places on the page and their verdicts. It holds facts and
// verdicts, not layout, and nothing here computes a verdict:
// reports/build_report_data.h fills it from a history with the tracker's
// analysis, and another program can fill it from data of its own. Text may be
// anything (benchmark names come from strangers); writers make it inert.
//
// A number that is not known is nullopt or NaN and is shown as "not measured",
// never as zero.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "reports/proof_sides.h"
#include "tracker/compare/verdict.h"
#include "tracker/convergence/convergence.h"
#include "tracker/judge/judge.h"
#include "tracker/proto/diagnosis.pb.h"
#include "tracker/proto/made_up.h"
#include "tracker/series/series.h"
#include "tracker/workload/workload_time.h"
#include "tuning/proto/context.pb.h"

namespace optrail::reports {

using tracker::kMadeUpSource;

// How the newest point of a series stands against its past.
using tracker::Verdict;

struct Commit {
  std::string id;  // full hash; empty outside a git repository
  std::string branch;
  std::string subject;
  absl::optional<int64_t> position;  // along first parents
  int64_t unix_ns = 0;
  bool dirty = false;  // the work tree had changes that the commit lacks
};

struct Hardware {
  std::string id;      // "amd-epyc-zen4-2c"
  std::string device;  // "cpu", "cuda"
  std::string model;
  absl::optional<int32_t> cores;
  absl::optional<int64_t> memory_bytes;
  bool virtual_machine = false;
  // The toolchain of the newest run.
  std::string compiler;
  std::string compiler_flags;
  std::string os;
  std::string driver;
  proto::Hardware record;
  proto::Ceilings ceilings;  // of the newest run that holds any
};

// A change of a series' level, in words.
struct ChangeView {
  int point = 0;               // index of the first point of the new level
  double relative_change = 0;  // +0.07: the value rose by 7%
  absl::optional<double> relative_change_low;
  absl::optional<double> relative_change_high;
  absl::optional<double> confidence;  // 0..1
  bool provisional = false;
  bool for_the_worse = false;
  std::string state;      // "new", "acknowledged: the new codec", ...
  bool answered = false;  // ChangeCounts count it as answered or muted
};

// A series of the tracker with its name, its place and its verdict.
struct SeriesView {
  // Its key, direction, points and epochs; one of ReportData::tracked.
  const tracker::Series* of = nullptr;

  // "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot" or, for an imported
  // benchmark, its whole name.
  std::string name;
  std::string operator_name;
  // The page groups by it: the operator or, for an imported benchmark, the
  // beginning of its name ("BM_Sort" of "BM_Sort/1024").
  std::string family;
  bool imported = false;  // no operator of Optrail: a benchmark
  std::string shape;      // empty for an imported benchmark
  std::string selection;  // "default", "tuned", a name; empty if imported
  std::string variant;    // threads, cache mode: "threads=1/hot"
  int hardware = 0;       // index into ReportData::hardware
  // By point: index into ReportData::commits.
  std::vector<int> commits;
  // Points before which a run of the series' suites has none of it.
  std::vector<int> gaps;
  // How many points it has, and how many processes of them a page may draw
  // (kMostProcesses of each).
  int64_t point_count = 0;
  int64_t process_count = 0;
  // Set if `of` has only the points that a page of `limit` points a series
  // shows (reports/digest.h): those that are drawn, and what a trend needs of
  // all. Places elsewhere are those among the points that are there.
  struct Drawn {
    int limit = 0;
    std::vector<int> points;  // ascending
    // Commit and value of the first point and of those at the newest commits.
    std::vector<std::pair<int, double>> trend;
  };
  absl::optional<Drawn> drawn;
  std::vector<ChangeView> changes;
  std::vector<tracker::Level> levels;

  Verdict verdict = Verdict::kNoBaseline;
  std::string verdict_detail;  // why, one line
  // The counts of the judgement (tracker/judge).
  int known_points = 0;
  int needed_points = 0;
  // Counted and listed among what wants attention (tracker::MainSeries).
  bool main = true;
  // The change that decided the verdict; absent if none did.
  absl::optional<tracker::Change> decided_by;
  // An alert's explanation (tracker/explain).
  std::vector<std::string> changed;
  // The newest level against the one before it, as a ratio of values.
  absl::optional<double> ratio;
  absl::optional<double> ratio_low;
  absl::optional<double> ratio_high;
  // Smallest relative change that this series' noise lets one see.
  absl::optional<double> minimum_detectable_effect;
  absl::optional<double> roofline_fraction;  // of the newest point, 0..1

  const std::vector<tracker::Point>& points() const { return of->points; }
  // Indices of the points with which an epoch begins, the first one's left out.
  std::vector<int> EpochStarts() const;
};

// A page draws at most so many processes of a point, the extremes among them.
inline constexpr int kMostProcesses = 9;
// Trends are shown over so many commits, the newest.
inline constexpr int kTrendCommits = 80;

// "" of an outcome that is OK, else "CRASHED", "CONTENDED", ...
std::string OutcomeText(const tracker::Point& point);

struct Knob {
  std::string name;
  std::vector<std::string> levels;  // in their natural order
};

// A session over schedules: what the programs were that it tried.
struct ScheduleView {
  // Programs that share their structure and differ in sizes.
  struct Sketch {
    std::string text;
    int trials = 0;
    int failed = 0;
    double best_ns = 0;    // NaN: none had a time
    double median_ns = 0;  // NaN likewise
    bool of_winner = false;
  };
  struct Rule {
    std::string name;
    int decisions = 0;  // of the winner that it asked for
    // Sum over its decisions of the variance of log(time) that each explains
    // alone; absent if none can be estimated.
    absl::optional<double> importance;
  };
  struct Decision {
    std::string name;
    std::string stage;
    std::string rule;
    int64_t value = 0;
    absl::optional<int64_t> usual;  // of the rules' own program
    absl::optional<double> importance;
  };
  std::string note;  // why it is not told what the programs were; empty: it is
  std::vector<Sketch> sketches;     // the fastest first
  std::vector<Rule> rules;          // the most important first
  std::vector<Decision> decisions;  // of the winner, by stage
  std::string loops;                // of the winner, C-like
};

// The tracker's account of a session, and what the page adds to it.
struct TuningSession {
  tracker::SessionAnalysis of;
  int hardware = 0;  // index into ReportData::hardware
  Commit commit;
  std::vector<Knob> knobs;
  // By trial of `of` and by knob: an index into Knob::levels; -1: unset.
  std::vector<std::vector<int>> levels;
  std::vector<std::string> findings;  // of the convergence analysis
  absl::optional<ScheduleView> schedule;
  std::vector<ProofSide> sides;  // of the proof
};

// The time that a run of a whole model takes, by its newest measurement.
struct WorkloadView {
  int hardware = 0;  // index into ReportData::hardware
  Commit commit;
  int64_t started_unix_ns = 0;
  tracker::WorkloadTime time;
};

struct ReportData {
  std::string title;
  std::string source;  // where it comes from, for the page's foot
  // Commands of the report need it to read the same history:
  // "--history=optrail_demo/history"; empty: nothing.
  std::string history_flag;
  bool synthetic = false;  // a run is kMadeUpSource's: every page says so
  int64_t run_count = 0;
  std::vector<Commit> commits;  // in order; points refer to them
  std::vector<Hardware> hardware;
  std::vector<SeriesView> series;
  std::shared_ptr<const std::vector<tracker::Series>> tracked;
  // Changes of kLeastEffect and more in the main series, as `changes` counts.
  tracker::ChangeCounts changes;
  std::vector<TuningSession> sessions;
  std::vector<WorkloadView> workloads;      // by name, hardware, threads
  std::vector<proto::Diagnosis> diagnoses;  // the newest first
  // They name what was skipped or could not be read.
  std::vector<std::string> warnings;
};

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_REPORT_DATA_H_
