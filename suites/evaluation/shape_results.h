#ifndef OPTRAIL_SUITES_EVALUATION_SHAPE_RESULTS_H_
#define OPTRAIL_SUITES_EVALUATION_SHAPE_RESULTS_H_

// The tables of any_shape compare our default and tuned configs with the best
// peer of each shape, and sum up each operator.
//
//   std::cout << SummaryTable(results).ToText() << WorstTable(results,
//   10).ToText();
//
// Ratios are the other's time over ours: above 1, ours is faster.

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "base/text/table.h"

namespace optrail::suites {

// A library's backend, or another program, on one shape.
struct PeerResult {
  std::string name;
  double us = 0;
  absl::optional<double> over_default, over_tuned;
};

// A config of ours beside the default and the tuned one.
struct ConfigResult {
  std::string config;
  absl::optional<double> us;
};

struct ShapeResult {
  std::string op, shape;
  // Absent: not measured, and `troubles` says why where it was tried.
  absl::optional<double> default_us, tuned_us;
  absl::optional<double> default_over_tuned;
  bool default_failed = false;  // not merely disturbed
  std::string default_config, tuned_config;
  std::vector<PeerResult> peers;
  std::vector<ConfigResult> configs;
  std::vector<std::string> troubles;

  // The fastest peer's time over that of our default, or tuned, config.
  absl::optional<double> BestOverDefault() const;
  absl::optional<double> BestOverTuned() const;
  // The name of the fastest peer; "" if there is none.
  std::string BestPeer() const;
};

struct RatioSummary {
  int count = 0;
  double geometric_mean = 0;
  double lowest = 0;
  double share_below_90 = 0;  // of `count`
};
RatioSummary Summarise(const std::vector<double>& ratios);

// A row for each operator, in order of first appearance, and one for all of
// them where there are several.
Table SummaryTable(const std::vector<ShapeResult>& results);

// The shapes at which our default stands lowest, at most `count`.
Table WorstTable(const std::vector<ShapeResult>& results, int count);

// An object with "operators" (the summaries) and "shapes" (all results), and
// `header`, a JSON object's text, under "run".
std::string ResultsJson(const std::string& header,
                        const std::vector<ShapeResult>& results);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_EVALUATION_SHAPE_RESULTS_H_
