#include "reports/report_data.h"

#include "tuning/proto/canonical.h"

namespace optrail::reports {

std::string OutcomeText(const tracker::Point& point) {
  return point.outcome == proto::OK ||
                 point.outcome == proto::OUTCOME_UNSPECIFIED
             ? ""
             : std::string(tuning::OutcomeName(point.outcome));
}

}  // namespace optrail::reports
