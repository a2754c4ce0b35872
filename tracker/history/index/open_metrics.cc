#include "tracker/history/index/open_metrics.h"

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace optrail::tracker {
namespace {

// A metric family: all of its samples stand together.
class Family {
 public:
  Family(std::string name, absl::string_view type, absl::string_view unit,
         absl::string_view help)
      : name_(std::move(name)) {
    absl::StrAppend(&text_, "# TYPE ", name_, " ", type, "\n");
    if (!unit.empty()) {
      absl::StrAppend(&text_, "# UNIT ", name_, " ", unit, "\n");
    }
    absl::StrAppend(&text_, "# HELP ", name_, " ", help, "\n");
  }

  void Add(absl::string_view suffix, absl::string_view labels, double value) {
    absl::StrAppend(&text_, name_, suffix, "{", labels, "} ",
                    absl::StrFormat("%.17g", value), "\n");
    has_samples_ = true;
  }

  // "" without samples.
  std::string text() const { return has_samples_ ? text_ : ""; }

 private:
  std::string name_, text_;
  bool has_samples_ = false;
};

std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(
      name, "=\"",
      absl::StrReplaceAll(ReplaceInvalidUtf8(value),
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

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
        Label("benchmark", CanonicalText(key.benchmark)), ",",
        Label("metric", key.metric), ",", Label("hardware", key.hardware_id),
        ",", Label("branch", key.branch));
    // The unit tells series of one metric apart.
    const std::string with_unit =
        absl::StrCat(labels, ",", Label("unit", key.unit));
    if (key.unit == "ns") {
      seconds.Add("", labels, *point->value / 1e9);
    } else if (key.unit == "B") {
      bytes.Add("", labels, *point->value);
    } else {
      other.Add("", with_unit, *point->value);
    }
    measured.Add("", with_unit,
                 static_cast<double>(point->first_started_unix_ns) / 1e9);
    commit.Add(
        "_info",
        absl::StrCat(with_unit, ",", Label("commit", point->commit.id())), 1);
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
