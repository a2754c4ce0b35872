#ifndef OPTRAIL_REPORTS_ROOFLINE_VIEW_H_
#define OPTRAIL_REPORTS_ROOFLINE_VIEW_H_

// The places of benchmarks under the roofline: FLOP per byte against FLOP/s,
// the default joined with the tuned config, under the measured ceilings
// (tuning/proto/roofline.h).
//
//   const RooflineView view = ViewRoofline(data, Summarize(data));
//   for (const RooflineChart& chart : view.charts) Draw(chart);
//
// A time series that can't be placed is counted under the reason.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "reports/overview.h"
#include "reports/report_data.h"
#include "tuning/proto/roofline.h"

namespace optrail::reports {

// A benchmark by its default config, its tuned one, or both.
struct RooflinePoint {
  int default_series = -1;  // index into ReportData::series; -1: none
  int tuned_series = -1;
  double flop_per_byte = 0;
  absl::optional<double> default_flop_per_s;
  absl::optional<double> tuned_flop_per_s;
  std::string limit;   // "arithmetic", "L2", "memory"; "" if not known
  int diagnosis = -1;  // index into ReportData::diagnoses, the newest of it
};

// All benchmarks that the same ceilings bound.
struct RooflineChart {
  int hardware = 0;  // index into ReportData::hardware
  int threads = 0;
  std::string flop_of;  // the operations of the peak: "f32"
  tuning::RooflineCeilings ceilings;
  std::vector<RooflinePoint> points;  // those that take longest first
  int left_out = 0;                   // points beyond kMostPoints
};
constexpr int kMostPoints = 200;

struct NotPlaced {
  std::string why;
  int series = 0;       // how many
  std::string example;  // the name of one
};

struct RooflineView {
  std::vector<RooflineChart> charts;  // most points first
  std::vector<NotPlaced> not_placed;
};

RooflineView ViewRoofline(const ReportData& data, const Overview& overview);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_ROOFLINE_VIEW_H_
