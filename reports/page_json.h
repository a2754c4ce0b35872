#ifndef OPTRAIL_REPORTS_PAGE_JSON_H_
#define OPTRAIL_REPORTS_PAGE_JSON_H_

// How the page's data writes numbers and commits. A piece of page_data.h.

#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "reports/report_data.h"

namespace optrail::reports {

using Json = nlohmann::ordered_json;

// null for what is not known.
Json Number(absl::optional<double> value);
// Five significant digits: finer than any measurement, and short as text.
Json Rounded(double value);
Json Rounded(absl::optional<double> value);

Json PageCommitJson(const Commit& commit);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_PAGE_JSON_H_
