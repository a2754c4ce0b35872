#ifndef OPTRAIL_REPORTS_PAGE_ROOFLINE_H_
#define OPTRAIL_REPORTS_PAGE_ROOFLINE_H_

// The roofline and the diagnoses to which it leads, as the page's script takes
// them.
//
//   page["roofline"] = PageRooflineJson(ViewRoofline(data, overview));
//   page["diagnoses"] = ListOf(data.diagnoses, PageDiagnosisJson);

#include <vector>

#include "reports/report_json.h"
#include "reports/roofline_view.h"
#include "tracker/proto/diagnosis.pb.h"

namespace optrail::reports {

Json PageRooflineJson(const RooflineView& view);
Json PageDiagnosisJson(const proto::Diagnosis& diagnosis);

// Predicted against realised gains over all diagnoses, a row for each kind of
// advice; empty where no advice was given.
Json PageCalibrationJson(const std::vector<proto::Diagnosis>& diagnoses);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_ROOFLINE_H_
