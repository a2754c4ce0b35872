#include "tracker/detect/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/compression.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/csv_reader.h"

namespace optrail::tracker {
namespace {

// A gzip file can grow a thousandfold; this much is more than any history.
constexpr size_t kMostBytes = size_t{4} << 30;

absl::StatusOr<double> ParseFinite(absl::string_view field,
                                   absl::string_view column,
                                   const CsvReader& reader) {
  const absl::string_view text = absl::StripAsciiWhitespace(field);
  double value = 0;
  const char* const end = text.data() + text.size();
  const char* begin = text.data();
  if (absl::StartsWith(text, "+")) ++begin;  // from_chars knows no plus
  const std::from_chars_result result = std::from_chars(begin, end, value);
  if (result.ec == std::errc::result_out_of_range) {
    return reader.ErrorHere(absl::StrCat(column, " ", QuoteCsvField(field),
                                         " is too large or too small for a "
                                         "double"));
  }
  if (text.empty() || result.ec != std::errc() || result.ptr != end) {
    return reader.ErrorHere(
        absl::StrCat(column, " ", QuoteCsvField(field), " is not a number"));
  }
  if (!std::isfinite(value)) {
    return reader.ErrorHere(absl::StrCat(column, " ", QuoteCsvField(field),
                                         " is not a finite number"));
  }
  return value;
}

constexpr size_t kNoColumn = static_cast<size_t>(-1);

struct Columns {
  size_t id, t, value;
  // Columns of an export; else kNoColumn.
  size_t epoch = kNoColumn, commit = kNoColumn;
};

absl::StatusOr<size_t> ColumnOf(const std::vector<absl::string_view>& header,
                                absl::string_view column,
                                const CsvReader& reader) {
  const auto is_column = [&](absl::string_view field) {
    return absl::StripAsciiWhitespace(field) == column;
  };
  const auto found = std::find_if(header.begin(), header.end(), is_column);
  if (found == header.end()) {
    return reader.ErrorHere(
        absl::StrCat("no column \"", column, "\" in the header ",
                     QuoteCsvField(absl::StrJoin(header, ",")),
                     "; expected id, t and value"));
  }
  if (std::count_if(header.begin(), header.end(), is_column) > 1) {
    return reader.ErrorHere(
        absl::StrCat("the column \"", column, "\" comes twice"));
  }
  return static_cast<size_t>(found - header.begin());
}

absl::StatusOr<Columns> ColumnsOf(const std::vector<absl::string_view>& header,
                                  const CsvReader& reader) {
  Columns columns;
  OPTRAIL_ASSIGN_OR_RETURN(columns.id, ColumnOf(header, "id", reader));
  OPTRAIL_ASSIGN_OR_RETURN(columns.t, ColumnOf(header, "t", reader));
  OPTRAIL_ASSIGN_OR_RETURN(columns.value, ColumnOf(header, "value", reader));
  const bool is_export = std::all_of(
      std::begin(kExportColumns), std::end(kExportColumns),
      [&](absl::string_view column) {
        return std::find(header.begin(), header.end(), column) != header.end();
      });
  if (!is_export) return columns;
  OPTRAIL_ASSIGN_OR_RETURN(columns.epoch, ColumnOf(header, "epoch", reader));
  OPTRAIL_ASSIGN_OR_RETURN(columns.commit, ColumnOf(header, "commit", reader));
  return columns;
}

// A count that an export wrote.
absl::StatusOr<int> ParseCount(absl::string_view field,
                               absl::string_view column,
                               const CsvReader& reader) {
  int count;
  if (!absl::SimpleAtoi(field, &count) || count < 0) {
    return reader.ErrorHere(
        absl::StrCat(column, " ", QuoteCsvField(field),
                     " is no count: expected what `history export` writes"));
  }
  return count;
}

absl::Status AddRow(const Columns& columns,
                    const std::vector<absl::string_view>& fields,
                    const CsvReader& reader, CsvSeries& one) {
  const bool is_export = columns.epoch != kNoColumn;
  OPTRAIL_ASSIGN_OR_RETURN(const double t,
                           ParseFinite(fields[columns.t], "t", reader));
  double value = std::numeric_limits<double>::quiet_NaN();
  if (!is_export || !fields[columns.value].empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(
        value, ParseFinite(fields[columns.value], "value", reader));
  }
  if (!one.t.empty() && !(t > one.t.back())) {
    return reader.ErrorHere(absl::StrCat(
        "t ", t, t == one.t.back() ? " comes twice" : " comes after ",
        t == one.t.back() ? "" : absl::StrCat(one.t.back()), " in series ",
        QuoteCsvField(one.id), "; sort each series by t, one row per t"));
  }
  if (is_export) {
    OPTRAIL_RETURN_IF_ERROR(
        ParseCount(fields[columns.t], "t", reader).status());
    OPTRAIL_ASSIGN_OR_RETURN(
        const int epoch, ParseCount(fields[columns.epoch], "epoch", reader));
    one.epochs.push_back(epoch);
    one.commits.emplace_back(fields[columns.commit]);
  }
  one.t.push_back(t);
  one.values.push_back(value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CsvSeries>> ParseSeriesCsv(absl::string_view text,
                                                      absl::string_view name) {
  CsvReader reader(text, name);
  std::vector<absl::string_view> fields;
  OPTRAIL_ASSIGN_OR_RETURN(const bool has_header, reader.Next(fields));
  if (!has_header) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": empty; expected a header with the columns id, t and value"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const Columns columns, ColumnsOf(fields, reader));
  const size_t num_columns = fields.size();

  std::vector<CsvSeries> series;
  std::unordered_map<std::string, size_t> places;
  size_t current = 0;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, reader.Next(fields));
    if (!more) break;
    if (fields.size() != num_columns) {
      return reader.ErrorHere(absl::StrCat(
          fields.size(), " fields where the header has ", num_columns));
    }
    const absl::string_view id = fields[columns.id];
    // Mostly the series of the row before.
    if (series.empty() || series[current].id != id) {
      const auto [place, is_new] =
          places.emplace(std::string(id), series.size());
      if (is_new) {
        series.emplace_back();
        series.back().id = std::string(id);
      }
      current = place->second;
    }
    OPTRAIL_RETURN_IF_ERROR(AddRow(columns, fields, reader, series[current]));
  }
  return series;
}

absl::StatusOr<std::vector<CsvSeries>> ReadSeriesCsv(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(std::string data, ReadFile(path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                           Decompress(std::move(data), path, kMostBytes));
  return ParseSeriesCsv(text, path);
}

}  // namespace optrail::tracker
