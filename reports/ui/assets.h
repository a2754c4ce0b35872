#ifndef OPTRAIL_REPORTS_UI_ASSETS_H_
#define OPTRAIL_REPORTS_UI_ASSETS_H_

// The page's parts, put into the program when it is built (see BUILD).

#include "absl/strings/string_view.h"

namespace optrail::reports::assets {

extern const absl::string_view kTemplate;        // report.html
extern const absl::string_view kStyle;           // report.css
extern const absl::string_view kScript;          // all of ui/*.js
extern const absl::string_view kEcharts;         // Apache ECharts
extern const absl::string_view kEchartsLicense;  // its licence

// SHA-256 of the two scripts, for the content security policy.
extern const absl::string_view kScriptSha256Hex;
extern const absl::string_view kEchartsSha256Hex;

}  // namespace optrail::reports::assets

#endif  // OPTRAIL_REPORTS_UI_ASSETS_H_
