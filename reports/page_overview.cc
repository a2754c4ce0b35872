#include "reports/page_overview.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "reports/attention.h"
#include "reports/report_data.h"

namespace optrail::reports {
namespace {

constexpr int kMostMatrixRows = 200;

Json AttentionRowJson(const AttentionRow& row) {
  return {{"v", tracker::VerdictRank(row.verdict)},
          {"series", row.series},
          {"hardware", row.hardware},
          {"low", Rounded(row.change_low)},
          {"high", Rounded(row.change_high)},
          {"good", row.good},
          {"bad", row.bad},
          {"suspects", row.suspects},
          {"count", Optional(row.suspect_count)},
          {"range", row.range},
          {"text", row.text},
          {"commands", NextCommandsJson(row)}};
}

// A row is the places of its series; null: not measured on that hardware.
Json MatrixJson(const HardwareMatrix& matrix) {
  Json rows = Json::array();
  for (const HardwareMatrix::Row& row : matrix.rows) {
    if (static_cast<int>(rows.size()) == kMostMatrixRows) break;
    Json series = Json::array();
    for (const int i : row.series) {
      series.push_back(i == HardwareMatrix::kNotThere ? Json(nullptr)
                                                      : Json(i));
    }
    rows.push_back(std::move(series));
  }
  return {{"h", matrix.hardware},
          {"rows", std::move(rows)},
          {"all", matrix.rows.size()},
          {"quiet", matrix.quiet}};
}

}  // namespace

Json PageOverviewJson(const Overview& overview) {
  Json cells = Json::array();
  // An import may bring 100,000 families.
  std::unordered_map<std::string, int> family_index;
  for (const std::string& name : overview.families) {
    family_index.emplace(name, static_cast<int>(family_index.size()));
  }
  for (const OverviewCell& cell : overview.cells) {
    Json at = Json::array();
    Json trend = Json::array();
    const int commits = static_cast<int>(cell.trend.size());
    for (int i = std::max(0, commits - kTrendCommits); i < commits; ++i) {
      if (std::isnan(cell.trend[i])) continue;
      at.push_back(i);
      trend.push_back(Rounded(cell.trend[i]));
    }
    Json verdicts = Json::array();
    for (const auto& [verdict, count] : cell.verdicts) {
      verdicts.push_back({tracker::VerdictRank(verdict), count});
    }
    cells.push_back({{"o", family_index.at(cell.family)},
                     {"h", cell.hardware},
                     {"n", cell.series.size()},
                     {"v", std::move(verdicts)},
                     {"w", tracker::VerdictRank(cell.worst)},
                     {"c", std::move(at)},
                     {"y", std::move(trend)},
                     {"s", Rounded(cell.tuned_speedup)},
                     {"f", Rounded(cell.roofline_fraction)}});
  }
  Json pairs = Json::array();
  for (const TunedPair& pair : overview.pairs) {
    pairs.push_back({pair.default_series, pair.tuned_series,
                     Rounded(pair.default_ns), Rounded(pair.tuned_ns),
                     Rounded(pair.speedup), pair.same_config});
  }
  return {{"cells", std::move(cells)},
          {"pairs", std::move(pairs)},
          {"matrix", MatrixJson(overview.matrix)},
          {"attention", ListOf(overview.attention, AttentionRowJson)}};
}

}  // namespace optrail::reports
