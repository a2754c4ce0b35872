#include "tracker/detect/detect_csv.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/parallel_for.h"
#include "base/status_macros.h"
#include "base/table.h"
#include "base/units.h"
#include "tracker/detect/online.h"

namespace optrail::tracker {
namespace {

// Work is handed out in pieces that are large beside the handing out.
constexpr int64_t kSeriesPerPiece = 16;

DetectedSeries DetectOne(const CsvSeries& series, DetectMode mode) {
  DetectedSeries detected;
  if (mode == DetectMode::kOffline) {
    detected.changes = DetectOffline(series.values);
    return detected;
  }
  OnlineResult online = DetectOnline(series.values);
  detected.changes = std::move(online.confirmed);
  if (online.provisional) {
    detected.changes.push_back(*online.provisional);
    detected.last_is_provisional = true;
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
  if (text == "offline") {
    *mode = DetectMode::kOffline;
  } else if (text == "online") {
    *mode = DetectMode::kOnline;
  } else {
    *error = absl::StrCat("\"", text, "\" is not one of offline, online");
    return false;
  }
  return true;
}

std::string AbslUnparseFlag(DetectMode mode) {
  return mode == DetectMode::kOffline ? "offline" : "online";
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
