#ifndef OPTRAIL_BASE_TEXT_OPEN_METRICS_H_
#define OPTRAIL_BASE_TEXT_OPEN_METRICS_H_

// OpenMetrics text, which Prometheus and other monitoring systems read.
//
//   OpenMetricsFamily tasks("optrail_tasks", "gauge", "", "Tasks by state");
//   tasks.Add("", OpenMetricsLabel("state", "queued"), 3);
//   std::cout << tasks.text() << "# EOF\n";
//
// Source: https://github.com/prometheus/OpenMetrics, specification 1.0.0.

#include <string>

#include "absl/strings/string_view.h"

namespace optrail {

// A metric family: all of its samples stand together.
class OpenMetricsFamily {
 public:
  OpenMetricsFamily(std::string name, absl::string_view type,
                    absl::string_view unit, absl::string_view help);

  // `suffix` is that of the type ("_info"), `labels` a comma between each.
  void Add(absl::string_view suffix, absl::string_view labels, double value);

  // "" without samples.
  std::string text() const { return has_samples_ ? text_ : ""; }

 private:
  std::string name_, text_;
  bool has_samples_ = false;
};

// `name="value"`, escaped.
std::string OpenMetricsLabel(absl::string_view name, absl::string_view value);

}  // namespace optrail

#endif  // OPTRAIL_BASE_TEXT_OPEN_METRICS_H_
