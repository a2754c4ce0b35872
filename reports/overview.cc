#include "reports/overview.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/stats/statistics.h"

namespace optrail::reports {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool IsTime(const SeriesView& series) {
  return series.of->key.metric == "time";
}

// The ratios of a cell's series at each commit.
struct Trend {
  explicit Trend(size_t commits)
      : log_sum(commits), count(commits), ran(commits) {}
  std::vector<double> log_sum;
  std::vector<int> count;
  std::vector<bool> ran;
};

// Adds the series' log ratios to its first value.
void AddTrend(const SeriesView& series, Trend& trend) {
  std::vector<double>& log_sum = trend.log_sum;
  double first = kNaN;
  std::vector<double> at_commit(log_sum.size(), kNaN);
  const auto add = [&](int commit, double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    if (std::isnan(first)) first = value;
    if (commit < 0 || commit >= at_commit.size()) return;
    at_commit[commit] = std::log(value / first);
    trend.ran[commit] = true;
  };
  if (series.drawn) {
    for (const auto& [commit, value] : series.drawn->trend) add(commit, value);
  } else {
    for (size_t i = 0; i < series.points().size(); ++i) {
      const absl::optional<double>& value = series.points()[i].value;
      if (value) add(series.commits[i], *value);
    }
  }
  double carried = kNaN;
  for (size_t i = 0; i < log_sum.size(); ++i) {
    if (!std::isnan(at_commit[i])) carried = at_commit[i];
    if (std::isnan(carried)) continue;
    log_sum[i] += carried;
    ++trend.count[i];
  }
}

std::string NewestConfig(const SeriesView& series) {
  return series.points().empty() ? ""
                                 : series.points().back().attributes->config;
}

std::vector<TunedPair> FindPairs(const ReportData& data) {
  using Key = std::tuple<std::string, std::string, std::string, int,
                         std::string, std::string>;
  const auto key = [](const SeriesView& series) {
    return Key(series.operator_name, series.shape, series.variant,
               series.hardware, series.of->key.branch, series.of->key.metric);
  };
  std::map<Key, int> defaults;
  for (int i = 0; i < data.series.size(); ++i) {
    if (data.series[i].selection == "default") {
      defaults.emplace(key(data.series[i]), i);
    }
  }
  std::vector<TunedPair> pairs;
  for (int i = 0; i < data.series.size(); ++i) {
    const SeriesView& tuned = data.series[i];
    if (tuned.selection != "tuned" || !IsTime(tuned)) continue;
    const auto found = defaults.find(key(tuned));
    if (found == defaults.end()) continue;
    const absl::optional<double> tuned_ns = NewestValue(tuned);
    const absl::optional<double> default_ns =
        NewestValue(data.series[found->second]);
    if (!tuned_ns || !default_ns || !(*tuned_ns > 0)) continue;
    const SeriesView& by_default = data.series[found->second];
    const bool same_config = !NewestConfig(tuned).empty() &&
                             NewestConfig(tuned) == NewestConfig(by_default);
    pairs.push_back({found->second, i, *default_ns, *tuned_ns,
                     same_config ? 1.0 : *default_ns / *tuned_ns, same_config});
  }
  return pairs;
}

HardwareMatrix FindMatrix(const ReportData& data) {
  // By name and branch: from hardware to series.
  std::map<std::pair<std::string, std::string>, std::map<int, int>> benchmarks;
  for (int i = 0; i < data.series.size(); ++i) {
    const SeriesView& series = data.series[i];
    if (!series.main) continue;
    benchmarks[{series.name, series.of->key.branch}].emplace(series.hardware,
                                                             i);
  }
  HardwareMatrix matrix;
  std::set<int> hardware;
  for (const auto& [name, series] : benchmarks) {
    if (series.size() < 2) continue;
    for (const auto& [column, index] : series) hardware.insert(column);
  }
  matrix.hardware.assign(hardware.begin(), hardware.end());
  for (const auto& [name, series] : benchmarks) {
    if (series.size() < 2) continue;
    HardwareMatrix::Row row;
    row.worst = data.series[series.begin()->second].verdict;
    bool is_notable = false;
    for (const int column : matrix.hardware) {
      const auto here = series.find(column);
      row.series.push_back(here == series.end() ? HardwareMatrix::kNotThere
                                                : here->second);
      if (here == series.end()) continue;
      const Verdict verdict = data.series[here->second].verdict;
      const tracker::VerdictInfo& info = tracker::InfoOf(verdict);
      is_notable |= info.is_change || info.wants_attention;
      if (tracker::VerdictRank(verdict) < tracker::VerdictRank(row.worst)) {
        row.worst = verdict;
      }
    }
    if (is_notable) {
      matrix.rows.push_back(std::move(row));
    } else {
      ++matrix.quiet;
    }
  }
  std::stable_sort(
      matrix.rows.begin(), matrix.rows.end(),
      [](const HardwareMatrix::Row& a, const HardwareMatrix::Row& b) {
        return tracker::VerdictRank(a.worst) < tracker::VerdictRank(b.worst);
      });
  return matrix;
}

}  // namespace

absl::optional<double> NewestValue(const SeriesView& series) {
  for (auto it = series.points().rbegin(); it != series.points().rend(); ++it) {
    if (it->value && std::isfinite(*it->value)) return it->value;
  }
  return absl::nullopt;
}

Overview Summarize(const ReportData& data) {
  Overview overview;
  overview.pairs = FindPairs(data);

  std::map<std::string, int> family_index;
  std::map<std::pair<int, int>, OverviewCell> cells;
  for (int i = 0; i < data.series.size(); ++i) {
    const SeriesView& series = data.series[i];
    if (!series.main) continue;
    ++overview.series;
    ++overview.verdicts[series.verdict];
    const auto [it, inserted] = family_index.emplace(
        series.family, static_cast<int>(overview.families.size()));
    if (inserted) overview.families.push_back(series.family);
    OverviewCell& cell = cells[{it->second, series.hardware}];
    if (cell.series.empty()) {
      cell.family = series.family;
      cell.hardware = series.hardware;
      cell.worst = series.verdict;
    }
    cell.series.push_back(i);
    ++cell.verdicts[series.verdict];
    if (tracker::VerdictRank(series.verdict) <
        tracker::VerdictRank(cell.worst)) {
      cell.worst = series.verdict;
    }
  }

  std::map<std::pair<int, int>, std::pair<double, int>> speedups;
  for (const TunedPair& pair : overview.pairs) {
    const SeriesView& tuned = data.series[pair.tuned_series];
    auto& [log_sum, count] =
        speedups[{family_index[tuned.family], tuned.hardware}];
    log_sum += std::log(pair.speedup);
    ++count;
  }

  for (auto& [key, cell] : cells) {
    Trend trend(data.commits.size());
    std::vector<double> roofline;
    for (int i : cell.series) {
      const SeriesView& series = data.series[i];
      if (!IsTime(series)) continue;
      AddTrend(series, trend);
      if (series.roofline_fraction && series.selection != "default" &&
          tracker::IsBoundByRoofline(*series.roofline_fraction)) {
        roofline.push_back(*series.roofline_fraction);
      }
    }
    for (size_t i = 0; i < trend.ran.size(); ++i) {
      cell.trend.push_back(
          trend.ran[i] ? std::exp(trend.log_sum[i] / trend.count[i]) : kNaN);
    }
    if (!roofline.empty()) cell.roofline_fraction = Median(roofline);
    if (const auto it = speedups.find(key); it != speedups.end()) {
      cell.tuned_speedup = std::exp(it->second.first / it->second.second);
    }
    overview.cells.push_back(std::move(cell));
  }

  overview.matrix = FindMatrix(data);
  overview.attention = AttentionRows(data);
  return overview;
}

}  // namespace optrail::reports
