#ifndef OPTRAIL_TRACKER_COMPARE_ROW_TABLE_H_
#define OPTRAIL_TRACKER_COMPARE_ROW_TABLE_H_

// Rows of a comparison, or of a gate that adds what follows from them, as
// tables.
//
//   out << FormatComparison(comparison, /*only_changes=*/false,
//                           OutputFormat::kTable, TerminalWidth());

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/text/table.h"
#include "tracker/compare/compare.h"
#include "tracker/compare/judged_row.h"

namespace optrail::tracker {

using Rows = std::vector<const JudgedRow*>;

// Returns pointers to rows, which must outlive the result.
template <typename T>
Rows Pointers(const std::vector<T>& rows) {
  Rows pointers;
  for (const T& row : rows) pointers.push_back(&row);
  return pointers;
}

// The rows of a comparison; `only_changes` leaves out what is unchanged.
Table ComparisonTable(const Comparison& comparison, bool only_changes);
// The same as text that fits `width` (0: any): with little room, reasons follow
// the table.
std::string FormatComparison(const Comparison& comparison, bool only_changes,
                             OutputFormat format, int width = 0);

// A column and what it shows of a row.
enum class Field {
  kAction,
  kSuite,
  kHardware,
  kAgainst,
  kVerdict,
  kBenchmark,
  kMetric,
  kBaseline,
  kCandidate,
  kRatio,
  kRatioOf,
  kInterval,
  kDetectable,
  kWhy,
  kMeasuredDifferently,
  kRatioLow,  // the interval, for programs
  kRatioHigh,
};

Table BuildTable(const std::vector<Field>& fields, const Rows& rows);

// The table as text of `width`, without the fields that tell nothing in it: the
// metric if it is always the time, what the ratio is of if the medians say it.
// The benchmark heads its row if columns have to go below it.
std::string FittingTable(std::vector<Field> fields, const Rows& rows,
                         int width);

// `first`, then every field that rows of any kind can fill.
std::vector<Field> AllFields(std::vector<Field> first = {});
void Remove(Field field, std::vector<Field>* fields);

// The rows are all of the time, so that the metric needs no column.
bool AllAreTimes(const Rows& rows);

// The policy lets the row fail, and it is worse; or it can't be told.
bool IsRed(const JudgedRow& row);
bool IsUnclear(const JudgedRow& row);
// Returns the consequence of a row, in tables and in JSON: FAIL if red, RERUN
// or UNCLEAR where it is unclear (RERUN where more processes would tell), else
// the policy's WARN or IGNORE.
std::string ActionName(const JudgedRow& row);

// Why rows that are not red are what they are; of many the first. Wrapped at
// `width` (0: any).
std::string Reasons(const Rows& rows, int width);

std::string RatioText(const Row& row);
// The numbers that the ratio is of: "levels of fastest samples 2.1 ms ->
// 2.31 ms". A row's own values are medians, which may differ by a little.
std::string RatioOfText(const Row& row);
std::string IntervalText(const Row& row);
// A baseline without the digits of a full hash that nobody reads.
std::string BaselineName(absl::string_view text);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMPARE_ROW_TABLE_H_
