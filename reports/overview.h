#ifndef OPTRAIL_REPORTS_OVERVIEW_H_
#define OPTRAIL_REPORTS_OVERVIEW_H_

// What all formats of a report say first: counts of verdicts, what wants
// attention, operators x hardware, benchmarks x hardware, default against
// tuned.
//
//   const Overview overview = Summarize(data);
//
// Everything refers to the series by index and is in a fixed order.

#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "reports/attention.h"
#include "reports/report_data.h"

namespace optrail::reports {

// The value of the newest point that has one.
absl::optional<double> NewestValue(const SeriesView& series);

// One operator, or family of imported benchmarks, on one hardware.
struct OverviewCell {
  std::string family;
  int hardware = 0;
  std::vector<int> series;
  std::map<Verdict, int> verdicts;
  Verdict worst = Verdict::kNoBaseline;
  // Per commit of ReportData the geometric mean, over this cell's time series,
  // of value / first value; NaN where nothing ran. A value is carried forward
  // from the last commit at which its series ran, so that a series that joins
  // or pauses does not bend the line. Only the newest kTrendCommits count where
  // series have not all of their points.
  std::vector<double> trend;
  absl::optional<double> tuned_speedup;  // geometric mean, default / tuned
  absl::optional<double>
      roofline_fraction;  // median over tuned series that it bounds
};

// The same operator, shape, variant, hardware and branch with the default and
// with the tuned config. Where tuning kept the default, both series measure one
// config: the speedup is 1, whatever noise makes of two readings.
struct TunedPair {
  int default_series = 0;
  int tuned_series = 0;
  double default_ns = 0;
  double tuned_ns = 0;
  double speedup = 0;
  bool same_config = false;
};

// A benchmark that several hardware measure on one branch: how it stands on
// each. Benchmarks whose verdicts say nothing new are only counted.
struct HardwareMatrix {
  struct Row {
    std::vector<int> series;  // by `hardware`; kNotThere
    Verdict worst = Verdict::kNoBaseline;
  };
  static constexpr int kNotThere = -1;

  std::vector<int> hardware;  // columns: of ReportData, ascending
  std::vector<Row> rows;      // the worst first, then in the order of series
  int quiet = 0;              // benchmarks without a row
};

struct Overview {
  // Counts, cells and attention cover the main series (SeriesView::main) alone.
  int series = 0;
  std::map<Verdict, int> verdicts;
  std::vector<std::string> families;  // in order of first appearance
  std::vector<OverviewCell> cells;    // by family, then hardware
  std::vector<TunedPair> pairs;       // in the order of the tuned series
  HardwareMatrix matrix;
  std::vector<AttentionRow> attention;
};

Overview Summarize(const ReportData& data);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_OVERVIEW_H_
