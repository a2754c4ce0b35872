#include "tracker/detect/detect_csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "base/process/parallel_for.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

// Work is handed out in pieces that are large beside the handing out.
constexpr int64_t kSeriesPerPiece = 16;

// Whether a row from `begin` on has a value.
bool HasValues(const CsvSeries& series, int begin) {
  return std::any_of(series.values.begin() + begin, series.values.end(),
                     [](double value) { return std::isfinite(value); });
}

// From places of a stretch that begins with row `begin` to rows of the file.
template <typename RowOf>
void PlaceInRows(const RowOf& row_of, ChangePoint& change) {
  change.index = row_of(change.index);
  change.earliest = row_of(change.earliest);
  change.latest = row_of(change.latest);
  change.begin = row_of(change.begin);
  change.end = row_of(change.end - 1) + 1;
}

std::vector<ChangePoint> OfflineOfRows(const CsvSeries& series, int begin,
                                       int end) {
  std::vector<ChangePoint> changes = DetectOffline(
      absl::MakeConstSpan(series.values).subspan(begin, end - begin));
  for (ChangePoint& change : changes) {
    PlaceInRows([begin](int place) { return begin + place; }, change);
  }
  return changes;
}

// The rows [begin, end), by the detector of tracker/judge.
OnlineResult OnlineOfRows(const CsvSeries& series, int begin, int end) {
  OnlineDetector detector;
  for (int row = begin; row < end; ++row) {
    // Places that an export leaves out have no value.
    if (series.is_export() && row > begin) {
      detector.Skip(static_cast<int64_t>(series.t[row] - series.t[row - 1]) -
                    1);
    }
    detector.Append(series.values[row]);
  }
  OnlineResult result = {detector.confirmed(), detector.returns(),
                         detector.provisional()};
  const auto row_of = [&](int place) {
    if (!series.is_export()) return begin + place;
    const auto at =
        std::lower_bound(series.t.begin() + begin, series.t.begin() + end - 1,
                         series.t[begin] + place);
    return static_cast<int>(at - series.t.begin());
  };
  for (ChangePoint& change : result.confirmed) PlaceInRows(row_of, change);
  if (result.provisional) PlaceInRows(row_of, *result.provisional);
  return result;
}

DetectedSeries DetectOne(const CsvSeries& series, DetectMode mode) {
  const bool online = mode == DetectMode::kOnline ||
                      (mode == DetectMode::kAuto && series.is_export());
  DetectedSeries detected;
  const int size = static_cast<int>(series.values.size());
  for (int begin = 0, end; begin < size; begin = end) {
    // Levels of two epochs don't compare.
    end = series.is_export() ? begin + 1 : size;
    while (end < size && series.epochs[end] == series.epochs[begin]) ++end;
    std::vector<ChangePoint> changes;
    if (online) {
      OnlineResult result = OnlineOfRows(series, begin, end);
      changes = std::move(result.confirmed);
      // A mark in a past epoch will never be confirmed.
      if (result.provisional && !HasValues(series, end)) {
        changes.push_back(*result.provisional);
        detected.last_is_provisional = true;
      }
    } else {
      changes = OfflineOfRows(series, begin, end);
    }
    detected.changes.insert(detected.changes.end(), changes.begin(),
                            changes.end());
  }
  return detected;
}

void WriteJson(const std::vector<CsvSeries>& series,
               const std::vector<DetectedSeries>& detected, std::ostream& out) {
  out << "[";
  for (size_t i = 0; i < series.size(); ++i) {
    out << (i > 0 ? ",\n " : "") << "{\"id\":" << QuoteForJson(series[i].id)
        << ",\"change_points\":[";
    const std::vector<ChangePoint>& changes = detected[i].changes;
    for (size_t k = 0; k < changes.size(); ++k) {
      const ChangePoint& change = changes[k];
      out << (k > 0 ? "," : "")
          << absl::StrFormat(
                 "{\"index\":%d,\"confidence\":%.9g,\"relative_change\":%.9g",
                 change.index, change.confidence, change.relative_change);
      if (detected[i].last_is_provisional && k + 1 == changes.size()) {
        out << ",\"provisional\":true";
      }
      if (series[i].is_export()) {
        out << ",\"t\":" << static_cast<int64_t>(series[i].t[change.index])
            << ",\"commit\":" << QuoteForJson(series[i].commits[change.index])
            << ",\"epoch\":" << series[i].epochs[change.index];
      }
      out << "}";
    }
    out << "]}";
  }
  out << "]\n";
}

Cell Percent(double ratio) {
  return Cell::Number(ratio, FormatChange(ratio, 2));
}

Table MakeTable(const std::vector<CsvSeries>& series,
                const std::vector<DetectedSeries>& detected) {
  Table table({{"series", Align::kLeft, "id"},
               {"index", Align::kRight},
               {"t", Align::kRight},
               {"before", Align::kRight, "level_before"},
               {"after", Align::kRight, "level_after"},
               {"change", Align::kRight, "relative_change"},
               {"at least", Align::kRight, "relative_change_low"},
               {"at most", Align::kRight, "relative_change_high"},
               {"confidence", Align::kRight},
               {"earliest", Align::kRight},
               {"latest", Align::kRight},
               {"state", Align::kLeft}});
  const auto number = [](double value) {
    return Cell::Number(value, absl::StrFormat("%.6g", value));
  };
  for (size_t i = 0; i < series.size(); ++i) {
    const std::vector<ChangePoint>& changes = detected[i].changes;
    for (size_t k = 0; k < changes.size(); ++k) {
      const ChangePoint& change = changes[k];
      const bool provisional =
          detected[i].last_is_provisional && k + 1 == changes.size();
      table.AddRow(
          {series[i].id, Cell::Integer(change.index),
           number(series[i].t[change.index]), number(change.level_before),
           number(change.level_after), Percent(change.relative_change),
           Percent(change.relative_change_low),
           Percent(change.relative_change_high),
           Cell::Number(change.confidence,
                        absl::StrFormat("%.4f", change.confidence)),
           Cell::Integer(change.earliest), Cell::Integer(change.latest),
           provisional ? "provisional" : "confirmed"});
    }
  }
  return table;
}

}  // namespace

bool AbslParseFlag(absl::string_view text, DetectMode* mode,
                   std::string* error) {
  for (const DetectMode known :
       {DetectMode::kAuto, DetectMode::kOffline, DetectMode::kOnline}) {
    *mode = known;
    if (text == AbslUnparseFlag(known)) return true;
  }
  *error = ExpectedOneOf(text, {"auto", "offline", "online"});
  return false;
}

std::string AbslUnparseFlag(DetectMode mode) {
  return mode == DetectMode::kAuto      ? "auto"
         : mode == DetectMode::kOffline ? "offline"
                                        : "online";
}

std::vector<DetectedSeries> DetectAll(const std::vector<CsvSeries>& series,
                                      DetectMode mode, int num_threads) {
  std::vector<DetectedSeries> detected(series.size());
  ParallelFor(
      static_cast<int64_t>(series.size()), num_threads,
      [&](int64_t i) { detected[i] = DetectOne(series[i], mode); },
      kSeriesPerPiece);
  return detected;
}

absl::Status DetectCsv(const DetectCsvOptions& options, std::ostream& out) {
  OutputFormat format;
  std::string error;
  if (!AbslParseFlag(options.format, &format, &error)) {
    return absl::InvalidArgumentError(absl::StrCat("--format: ", error));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<CsvSeries> series,
                           ReadSeriesCsv(options.csv));
  const std::vector<DetectedSeries> detected =
      DetectAll(series, options.mode, options.num_threads);
  if (format == OutputFormat::kJson) {
    WriteJson(series, detected, out);
  } else {
    out << MakeTable(series, detected).Format(format, TerminalWidth());
  }
  return absl::OkStatus();
}

}  // namespace optrail::tracker
