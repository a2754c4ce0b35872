#include "tracker/history/index/export.h"

#include <ostream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "nlohmann/json.hpp"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

struct Column {
  const char* name;
  const char* type;  // of XML Schema, as CSVW names them
  const char* meaning;
};

constexpr Column kColumns[] = {
    {"id", "string", "the series: benchmark, metric, unit, hardware, branch"},
    {"t", "integer", "the place of the point in its series, from 0"},
    {"value", "double", "median of the processes, in the unit of the row"},
    {"low", "double", "the smallest of the processes"},
    {"high", "double", "the largest of the processes"},
    {"processes", "integer", "how many processes measured the point"},
    {"outcome", "string", "the worst outcome of its runs"},
    {"unit", "string", "the unit of value, low and high"},
    {"commit", "string", "full hash"},
    {"position", "integer", "commits from the root along first parents"},
    {"started_utc", "dateTime", "when its first run began"},
    {"epoch", "integer", "counts changes of hardware, toolchain and settings"},
    {"config", "string", "the config that was measured"},
};

// Enough digits to read the same number back.
std::string Exact(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace

absl::StatusOr<int64_t> ExportCsv(HistoryIndex& index,
                                  const ExportOptions& options,
                                  std::ostream& out) {
  out << absl::StrJoin(kColumns, ",",
                       [](std::string* text, const Column& column) {
                         text->append(column.name);
                       })
      << "\n";
  int64_t rows = 0;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<SeriesInfo> all,
                           index.ListSeries(options.filter));
  for (const SeriesInfo& info : all) {
    OPTRAIL_ASSIGN_OR_RETURN(const Series series, index.ReadSeries(info.text));
    const std::string id = QuoteForCsv(series.text);
    for (size_t t = 0; t < series.points.size(); ++t) {
      const Point& point = series.points[t];
      if (!point.value.has_value() && !options.failed_points) continue;
      out << id << ',' << t << ',';
      if (point.value.has_value()) {
        out << Exact(*point.value) << ',' << Exact(point.low) << ','
            << Exact(point.high);
      } else {
        out << ",,";
      }
      out << ',' << point.processes.size() << ','
          << tuning::OutcomeName(point.outcome) << ','
          << QuoteForCsv(series.key.unit) << ','
          << QuoteForCsv(point.runs->commit.id()) << ',';
      if (point.runs->commit.has_first_parent_position()) {
        out << point.runs->commit.first_parent_position();
      }
      out << ','
          << absl::FormatTime(
                 "%Y-%m-%dT%H:%M:%SZ",
                 absl::FromUnixNanos(point.runs->first_started_unix_ns),
                 absl::UTCTimeZone())
          << ',' << point.epoch << ',' << QuoteForCsv(point.attributes->config)
          << '\n';
      ++rows;
    }
  }
  if (!out) return absl::UnavailableError("writing CSV: the output is closed");
  return rows;
}

std::string CsvMetadata(absl::string_view file) {
  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  for (const Column& column : kColumns) {
    columns.push_back({{"name", column.name},
                       {"titles", column.name},
                       {"datatype", column.type},
                       {"dc:description", column.meaning}});
  }
  const nlohmann::ordered_json json = {
      {"@context", "http://www.w3.org/ns/csvw"},
      {"url", ReplaceInvalidUtf8(file)},
      {"dialect",
       {{"header", true}, {"delimiter", ","}, {"encoding", "utf-8"}}},
      {"tableSchema",
       {{"columns", columns},
        {"primaryKey", nlohmann::ordered_json::array({"id", "t"})}}}};
  return json.dump(2) + "\n";
}

}  // namespace optrail::tracker
