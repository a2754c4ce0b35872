#include "reports/overview.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace optrail::reports {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool IsTime(const Series& series) { return series.metric == "time"; }

// Adds the series' log ratios to its first value, per commit.
void AddTrend(const Series& series, std::vector<double>& log_sum,
              std::vector<int>& count) {
  double first = kNaN;
  std::vector<double> at_commit(log_sum.size(), kNaN);
  for (const Point& point : series.points) {
    if (!(point.value > 0) || !std::isfinite(point.value)) continue;
    if (std::isnan(first)) first = point.value;
    if (point.commit < 0 || point.commit >= at_commit.size()) continue;
    at_commit[point.commit] = std::log(point.value / first);
  }
  double carried = kNaN;
  for (size_t i = 0; i < log_sum.size(); ++i) {
    if (!std::isnan(at_commit[i])) carried = at_commit[i];
    if (std::isnan(carried)) continue;
    log_sum[i] += carried;
    ++count[i];
  }
}

double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) /
         2;
}

std::vector<TunedPair> FindPairs(const ReportData& data) {
  using Key = std::tuple<std::string, std::string, std::string, int,
                         std::string, std::string>;
  const auto key = [](const Series& series) {
    return Key(series.operator_name, series.shape, series.variant,
               series.hardware, series.branch, series.metric);
  };
  std::map<Key, int> defaults;
  for (int i = 0; i < data.series.size(); ++i) {
    if (data.series[i].selection == "default") {
      defaults.emplace(key(data.series[i]), i);
    }
  }
  std::vector<TunedPair> pairs;
  for (int i = 0; i < data.series.size(); ++i) {
    const Series& tuned = data.series[i];
    if (tuned.selection != "tuned" || !IsTime(tuned)) continue;
    const auto found = defaults.find(key(tuned));
    if (found == defaults.end()) continue;
    const Point* tuned_point = NewestValue(tuned);
    const Point* default_point = NewestValue(data.series[found->second]);
    if (tuned_point == nullptr || default_point == nullptr) continue;
    if (!(tuned_point->value > 0)) continue;
    pairs.push_back({found->second, i, default_point->value, tuned_point->value,
                     default_point->value / tuned_point->value});
  }
  return pairs;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNoBaseline:
      return "no baseline";
    case Verdict::kUnchanged:
      return "unchanged";
    case Verdict::kImproved:
      return "faster";
    case Verdict::kRegressed:
      return "slower";
    case Verdict::kProvisional:
      return "maybe slower";
    case Verdict::kCannotTell:
      return "can't tell";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kMissing:
      return "missing";
  }
  return "unknown";
}

int VerdictRank(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFailed:
      return 0;
    case Verdict::kRegressed:
      return 1;
    case Verdict::kMissing:
      return 2;
    case Verdict::kProvisional:
      return 3;
    case Verdict::kCannotTell:
      return 4;
    case Verdict::kImproved:
      return 5;
    case Verdict::kNoBaseline:
      return 6;
    case Verdict::kUnchanged:
      return 7;
  }
  return 8;
}

const Point* NewestValue(const Series& series) {
  for (auto it = series.points.rbegin(); it != series.points.rend(); ++it) {
    if (std::isfinite(it->value)) return &*it;
  }
  return nullptr;
}

Overview Summarize(const ReportData& data) {
  Overview overview;
  overview.pairs = FindPairs(data);

  std::map<std::string, int> operator_index;
  std::map<std::pair<int, int>, OverviewCell> cells;
  for (int i = 0; i < data.series.size(); ++i) {
    const Series& series = data.series[i];
    ++overview.verdicts[series.verdict];
    // Noise is no news: what can't be told is counted, not called for.
    if (series.verdict != Verdict::kUnchanged &&
        series.verdict != Verdict::kNoBaseline &&
        series.verdict != Verdict::kCannotTell) {
      overview.attention.push_back(i);
    }
    const auto [it, inserted] = operator_index.emplace(
        series.operator_name, static_cast<int>(overview.operators.size()));
    if (inserted) overview.operators.push_back(series.operator_name);
    OverviewCell& cell = cells[{it->second, series.hardware}];
    if (cell.series.empty()) {
      cell.operator_name = series.operator_name;
      cell.hardware = series.hardware;
      cell.worst = series.verdict;
    }
    cell.series.push_back(i);
    ++cell.verdicts[series.verdict];
    if (VerdictRank(series.verdict) < VerdictRank(cell.worst)) {
      cell.worst = series.verdict;
    }
  }

  std::map<std::pair<int, int>, std::pair<double, int>> speedups;
  for (const TunedPair& pair : overview.pairs) {
    const Series& tuned = data.series[pair.tuned_series];
    auto& [log_sum, count] =
        speedups[{operator_index[tuned.operator_name], tuned.hardware}];
    log_sum += std::log(pair.speedup);
    ++count;
  }

  for (auto& [key, cell] : cells) {
    std::vector<double> log_sum(data.commits.size(), 0);
    std::vector<int> count(data.commits.size(), 0);
    std::vector<double> roofline;
    for (int i : cell.series) {
      const Series& series = data.series[i];
      if (!IsTime(series)) continue;
      AddTrend(series, log_sum, count);
      if (series.roofline_fraction && series.selection != "default") {
        roofline.push_back(*series.roofline_fraction);
      }
    }
    for (size_t i = 0; i < log_sum.size(); ++i) {
      cell.trend.push_back(count[i] == 0 ? kNaN
                                         : std::exp(log_sum[i] / count[i]));
    }
    if (!roofline.empty()) cell.roofline_fraction = Median(roofline);
    if (const auto it = speedups.find(key); it != speedups.end()) {
      cell.tuned_speedup = std::exp(it->second.first / it->second.second);
    }
    overview.cells.push_back(std::move(cell));
  }

  // The size of a change breaks ties: a log ratio, so that both signs count.
  const auto weight = [&](int i) {
    const absl::optional<double>& ratio = data.series[i].ratio;
    return ratio && *ratio > 0 ? std::fabs(std::log(*ratio)) : 0;
  };
  std::stable_sort(overview.attention.begin(), overview.attention.end(),
                   [&](int a, int b) {
                     const int rank_a = VerdictRank(data.series[a].verdict);
                     const int rank_b = VerdictRank(data.series[b].verdict);
                     if (rank_a != rank_b) return rank_a < rank_b;
                     return weight(a) > weight(b);
                   });
  return overview;
}

}  // namespace optrail::reports
