#include "tracker/history/index/export.h"

#include <ostream>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/quote.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

// Enough digits to read the same number back.
std::string Exact(double value) { return absl::StrFormat("%.17g", value); }

}  // namespace

absl::StatusOr<int64_t> ExportCsv(HistoryIndex& index,
                                  const ExportOptions& options,
                                  std::ostream& out) {
  out << "id,t,value,low,high,processes,outcome,unit,commit,position,"
         "started_utc,epoch,config\n";
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
          << QuoteForCsv(point.commit.id()) << ',';
      if (point.commit.has_first_parent_position()) {
        out << point.commit.first_parent_position();
      }
      out << ','
          << absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                              absl::FromUnixNanos(point.first_started_unix_ns),
                              absl::UTCTimeZone())
          << ',' << point.epoch << ',' << QuoteForCsv(point.config) << '\n';
      ++rows;
    }
  }
  if (!out) return absl::UnavailableError("writing CSV: the output is closed");
  return rows;
}

}  // namespace optrail::tracker
