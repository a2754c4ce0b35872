#include "reports/report_data.h"

#include "tuning/proto/canonical.h"

namespace optrail::reports {

std::vector<int> SeriesView::EpochStarts() const {
  std::vector<int> starts;
  for (size_t i = 1; i < points().size(); ++i) {
    if (points()[i].epoch != points()[i - 1].epoch) {
      starts.push_back(static_cast<int>(i));
    }
  }
  return starts;
}

std::string OutcomeText(const tracker::Point& point) {
  return point.outcome == proto::OK ||
                 point.outcome == proto::OUTCOME_UNSPECIFIED
             ? ""
             : std::string(tuning::OutcomeName(point.outcome));
}

}  // namespace optrail::reports
