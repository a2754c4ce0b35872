#ifndef OPTRAIL_TRACKER_GATE_GATE_TABLE_H_
#define OPTRAIL_TRACKER_GATE_GATE_TABLE_H_

// Rows of a gate or a comparison as tables, for gate_report.cc.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/table.h"
#include "tracker/gate/gate.h"

namespace optrail::tracker {

using Rows = std::vector<const GateRow*>;

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
};

Table BuildTable(const std::vector<Field>& fields, const Rows& rows);

// The table with the fields that fit `width`: names come before numbers that
// the ratio already tells. Names that leave no room for anything are not cut
// but come last, where the terminal wraps them.
std::string FittingTable(std::vector<Field> fields, const Rows& rows,
                         int width);

// The columns of a gate: those that tell its rows apart, then all others.
std::vector<Field> GateFields(const GateReport& report);
void Remove(Field field, std::vector<Field>* fields);

// The rows are all of the time, so that the metric needs no column.
bool AllAreTimes(const Rows& rows);

Rows Pointers(const std::vector<GateRow>& rows);
bool IsRed(const GateRow& row);

// Why rows that are not red are what they are; of many the first.
std::string Reasons(const Rows& rows);

std::string RatioText(const Row& row);
// The numbers that the ratio is of: "fastest samples 2.1 ms -> 2.31 ms".
std::string RatioOfText(const Row& row);
std::string IntervalText(const Row& row);
// A baseline without the digits of a full hash that nobody reads.
std::string BaselineName(absl::string_view text);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_GATE_TABLE_H_
