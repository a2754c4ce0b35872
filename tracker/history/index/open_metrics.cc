#include "tracker/history/index/open_metrics.h"

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/open_metrics.h"

namespace optrail::tracker {
namespace {

using Family = OpenMetricsFamily;

const Point* NewestPoint(const Series& series) {
  for (auto point = series.points.rbegin(); point != series.points.rend();
       ++point) {
    if (point->value.has_value()) return &*point;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<int64_t> ExportOpenMetrics(HistoryIndex& index,
                                          const SeriesFilter& filter,
                                          std::ostream& out) {
  constexpr char kHelp[] =
      "Median of the processes that measured the newest commit";
  Family seconds("optrail_benchmark_seconds", "gauge", "seconds", kHelp);
  Family bytes("optrail_benchmark_bytes", "gauge", "bytes", kHelp);
  Family other("optrail_benchmark_value", "gauge", "", kHelp);
  Family measured("optrail_benchmark_measured_timestamp_seconds", "gauge",
                  "seconds", "When the newest commit was measured");
  Family commit("optrail_benchmark_commit", "info", "",
                "The newest commit that was measured");
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<SeriesInfo> all,
                           index.ListSeries(filter));
  int64_t count = 0;
  for (const SeriesInfo& info : all) {
    OPTRAIL_ASSIGN_OR_RETURN(const Series series, index.ReadSeries(info.text));
    const Point* point = NewestPoint(series);
    if (point == nullptr) continue;
    ++count;
    const SeriesKey& key = series.key;
    const std::string labels = absl::StrCat(
        OpenMetricsLabel("benchmark", CanonicalText(key.benchmark)), ",",
        OpenMetricsLabel("metric", key.metric), ",",
        OpenMetricsLabel("hardware", key.hardware_id), ",",
        OpenMetricsLabel("branch", key.branch));
    // The unit tells series of one metric apart.
    const std::string with_unit =
        absl::StrCat(labels, ",", OpenMetricsLabel("unit", key.unit));
    if (key.unit == "ns") {
      seconds.Add("", labels, *point->value / 1e9);
    } else if (key.unit == "B") {
      bytes.Add("", labels, *point->value);
    } else {
      other.Add("", with_unit, *point->value);
    }
    measured.Add("", with_unit,
                 static_cast<double>(point->runs->first_started_unix_ns) / 1e9);
    commit.Add(
        "_info",
        absl::StrCat(with_unit, ",",
                     OpenMetricsLabel("commit", point->runs->commit.id())),
        1);
  }
  for (const Family* family : {&seconds, &bytes, &other, &measured, &commit}) {
    out << family->text();
  }
  out << "# EOF\n";
  if (!out) {
    return absl::UnavailableError("writing OpenMetrics: the output is closed");
  }
  return count;
}

}  // namespace optrail::tracker
