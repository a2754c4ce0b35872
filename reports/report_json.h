#ifndef OPTRAIL_REPORTS_REPORT_JSON_H_
#define OPTRAIL_REPORTS_REPORT_JSON_H_

// Sessions, workloads and hardware as JSON, for the JSON report (json_report.h)
// and, rounded, for the data of the page (page_data.h).
//
//   Json all = ListOf(data.hardware, HardwareJson);
//
// Thread-safe: nothing here has state.

#include "absl/types/optional.h"
#include "nlohmann/json.hpp"
#include "reports/attention.h"
#include "reports/report_data.h"

namespace optrail::reports {

using Json = nlohmann::ordered_json;

// null for what is not known.
template <typename T>
Json Optional(const absl::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
// null for infinity and what is no number.
Json Number(double value);

// Five significant digits: finer than any measurement, and short as text.
Json Rounded(double value);
Json Rounded(absl::optional<double> value);
// Every number of `json` that is no integer.
Json AllRounded(Json json);

template <typename Range, typename ToJson>
Json ListOf(const Range& range, const ToJson& to_json) {
  Json list = Json::array();
  for (const auto& each : range) list.push_back(to_json(each));
  return list;
}

Json CommitJson(const Commit& commit);
Json HardwareJson(const Hardware& hardware);

// What each does, and how it is typed.
Json NextCommandsJson(const AttentionRow& row);

// Without its knobs, schedule and trials.
Json SessionJson(const ReportData& data, const TuningSession& session);

// null of a session that is not over schedules.
Json ScheduleJson(const absl::optional<ScheduleView>& view);

// Times in ns, null where there are none.
Json WorkloadJson(const ReportData& data, const WorkloadView& workload);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_REPORT_JSON_H_
