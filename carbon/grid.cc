#include "carbon/grid.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"
#include "base/text/quote.h"

namespace optrail::carbon {
namespace {

constexpr double kMostPerKwh = 1e6;
constexpr double kPi = 3.14159265358979323846;

// The columns of a kind of file.
struct Layout {
  absl::string_view value;
  absl::string_view kind;
  bool negative = false;  // prices may be
};

struct Row {
  std::string zone;
  GridInterval interval;
  int64_t line = 0;
};

absl::StatusOr<Row> ParseRow(const CsvReader& reader, const Layout& layout,
                             const std::vector<absl::string_view>& fields,
                             std::string* kind) {
  if (fields.size() != 5) {
    return reader.ErrorHere(absl::StrCat(fields.size(),
                                         " fields, expected zone, start, end, ",
                                         layout.value, " and ", layout.kind));
  }
  Row row;
  row.zone = std::string(fields[0]);
  row.line = reader.line();
  if (row.zone.empty()) return reader.ErrorHere("zone is empty");
  for (const int i : {1, 2}) {
    const absl::StatusOr<int64_t> time = ParseTime(fields[i]);
    if (!time.ok()) return reader.ErrorHere(time.status().message());
    (i == 1 ? row.interval.start_unix_s : row.interval.end_unix_s) = *time;
  }
  if (row.interval.end_unix_s <= row.interval.start_unix_s) {
    return reader.ErrorHere(absl::StrCat(
        "end is ", fields[2], ", expected it after start ", fields[1]));
  }
  double value = 0;
  if (!absl::SimpleAtod(fields[3], &value) || !std::isfinite(value) ||
      value > kMostPerKwh || value < (layout.negative ? -kMostPerKwh : 0)) {
    return reader.ErrorHere(absl::StrCat(
        layout.value, " is ", QuoteCsvField(fields[3]), ", expected a number",
        layout.negative ? "" : " from 0 on"));
  }
  row.interval.value = value;
  if (layout.kind == "kind" && fields[4] != "average" &&
      fields[4] != "marginal" && fields[4] != kMadeUpKind) {
    return reader.ErrorHere(absl::StrCat("kind is ", QuoteCsvField(fields[4]),
                                         ", expected average or marginal, or ",
                                         kMadeUpKind));
  }
  if (kind->empty()) *kind = std::string(fields[4]);
  if (*kind != fields[4]) {
    return reader.ErrorHere(
        absl::StrCat(layout.kind, " is ", QuoteCsvField(fields[4]),
                     ", expected ", QuoteCsvField(*kind),
                     " as in the lines before: one file, one of them"));
  }
  return row;
}

absl::StatusOr<Grid> Parse(absl::string_view csv, const std::string& name,
                           const Layout& layout) {
  CsvReader reader(csv, name);
  std::vector<absl::string_view> fields;
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_header, reader.Next(fields));
  const std::string header =
      absl::StrCat("zone,start,end,", layout.value, ",", layout.kind);
  if (!has_header || absl::StrJoin(fields, ",") != header) {
    return reader.ErrorHere(
        absl::StrCat("expected the line \"", header, "\" first"));
  }
  Grid grid;
  grid.path = name;
  std::map<std::string, std::vector<Row>> rows;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) break;
    OPTRAIL_ASSIGN_OR_RETURN(Row row,
                             ParseRow(reader, layout, fields, &grid.kind));
    rows[row.zone].push_back(std::move(row));
  }
  if (rows.empty()) return reader.ErrorHere("there is no line but the header");
  for (auto& [zone, intervals] : rows) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Row& a, const Row& b) {
                return a.interval.start_unix_s < b.interval.start_unix_s;
              });
    for (size_t i = 0; i < intervals.size(); ++i) {
      if (i > 0 && intervals[i].interval.start_unix_s <
                       intervals[i - 1].interval.end_unix_s) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ":", intervals[i].line, ": overlaps line ",
                         intervals[i - 1].line, " of zone ", zone,
                         ", expected intervals apart"));
      }
      grid.zones[zone].push_back(intervals[i].interval);
    }
  }
  return grid;
}

constexpr Layout kIntensity = {"gco2e_per_kwh", "kind", false};
constexpr Layout kTariff = {"price_per_kwh", "currency", true};

}  // namespace

absl::StatusOr<std::vector<GridInterval>> Grid::Between(
    const std::string& zone, int64_t from_unix_s, int64_t to_unix_s) const {
  const auto found = zones.find(zone);
  if (found == zones.end()) {
    return absl::NotFoundError(absl::StrCat(
        path, " has no zone \"", zone, "\", expected one of ",
        absl::StrJoin(zones, ", ", [](std::string* out, const auto& known) {
          out->append(known.first);
        })));
  }
  const std::vector<GridInterval>& all = found->second;
  auto at = std::upper_bound(all.begin(), all.end(), from_unix_s,
                             [](int64_t time, const GridInterval& interval) {
                               return time < interval.end_unix_s;
                             });
  std::vector<GridInterval> parts;
  for (int64_t time = from_unix_s; time < to_unix_s; ++at) {
    if (at == all.end() || at->start_unix_s > time) {
      return absl::NotFoundError(absl::StrCat(path, " says nothing of zone ",
                                              zone, " at ", TimeText(time)));
    }
    const int64_t end = std::min(at->end_unix_s, to_unix_s);
    parts.push_back({time, end, at->value});
    time = end;
  }
  return parts;
}

absl::StatusOr<double> Grid::Mean(const std::string& zone, int64_t from_unix_s,
                                  int64_t to_unix_s) const {
  // A span of no length has the value of its moment.
  const int64_t to = std::max(to_unix_s, from_unix_s + 1);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<GridInterval> parts,
                           Between(zone, from_unix_s, to));
  double sum = 0;
  for (const GridInterval& part : parts) {
    sum +=
        part.value * static_cast<double>(part.end_unix_s - part.start_unix_s);
  }
  return sum / static_cast<double>(to - from_unix_s);
}

int64_t Grid::HourPhaseS(const std::string& zone) const {
  const auto found = zones.find(zone);
  if (found == zones.end()) return 0;
  int64_t phase = -1;
  for (const GridInterval& interval : found->second) {
    if ((interval.end_unix_s - interval.start_unix_s) % kHourS != 0) continue;
    const int64_t here = interval.start_unix_s % kHourS;
    if (phase >= 0 && here != phase) return 0;
    phase = here;
  }
  return std::max<int64_t>(phase, 0);
}

int64_t Grid::EndOf(const std::string& zone) const {
  const auto found = zones.find(zone);
  return found == zones.end() ? 0 : found->second.back().end_unix_s;
}

absl::StatusOr<std::vector<double>> Grid::Hourly(const std::string& zone,
                                                 int64_t from_unix_s,
                                                 int hours) const {
  std::vector<double> means;
  for (int i = 0; i < hours; ++i) {
    const int64_t from = from_unix_s + i * kHourS;
    OPTRAIL_ASSIGN_OR_RETURN(const double mean,
                             Mean(zone, from, from + kHourS));
    means.push_back(mean);
  }
  return means;
}

absl::StatusOr<Grid> ParseIntensity(absl::string_view csv,
                                    const std::string& name) {
  return Parse(csv, name, kIntensity);
}

absl::StatusOr<Grid> ParseTariff(absl::string_view csv,
                                 const std::string& name) {
  return Parse(csv, name, kTariff);
}

absl::StatusOr<Grid> ReadIntensity(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv, ReadRegularFile(path));
  return ParseIntensity(csv, path);
}

absl::StatusOr<Grid> ReadTariff(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv, ReadRegularFile(path));
  return ParseTariff(csv, path);
}

std::string TimeText(int64_t unix_s) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(unix_s),
                          absl::UTCTimeZone());
}

absl::StatusOr<int64_t> ParseTime(absl::string_view text) {
  absl::Time time;
  std::string error;
  if (text.size() < 40 &&
      absl::ParseTime(absl::RFC3339_full, text, &time, &error) &&
      time > absl::UnixEpoch() && time < absl::FromUnixSeconds(1LL << 36)) {
    return absl::ToUnixSeconds(time);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(QuoteCsvField(text),
                   " is no time, expected one like 2026-01-01T00:00:00Z"));
}

std::string ExampleIntensity(const std::string& zone, int64_t from_unix_s,
                             int hours, uint64_t seed) {
  Rng rng(seed);
  std::string csv = "zone,start,end,gco2e_per_kwh,kind\n";
  double wind = 0;
  for (int i = 0; i < hours; ++i) {
    const int64_t start = from_unix_s + i * kHourS;
    const double day = static_cast<double>(start % (24 * kHourS)) / kHourS;
    const double year = static_cast<double>(start) / (365.25 * 24 * kHourS);
    // A first-order autoregression that forgets within two days or so.
    wind = .98 * wind + .2 * rng.Gaussian();
    const double season = -std::cos(2 * kPi * year);  // 1 at midsummer
    const double sun = std::max(0.0, std::cos((day - 12) * kPi / 12));
    const double evening = std::exp(-std::pow(day - 19, 2) / 8);
    const double grams = 360 - (90 + 60 * season) * sun + 70 * evening -
                         90 * wind + 12 * rng.Gaussian();
    absl::StrAppendFormat(&csv, "%s,%s,%s,%.1f,%s\n", QuoteForCsv(zone),
                          TimeText(start), TimeText(start + kHourS),
                          std::clamp(grams, 40.0, 800.0), kMadeUpKind);
  }
  return csv;
}

}  // namespace optrail::carbon
