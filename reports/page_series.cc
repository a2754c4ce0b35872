#include "reports/page_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/process/parallel_for.h"
#include "reports/inert_json.h"
#include "reports/pick_points.h"
#include "tracker/judge/evidence.h"

namespace optrail::reports {
namespace {

constexpr int64_t kSeriesAtATime = 16;

// Hundredths of a percent away from the point's value, as short integers. Many
// processes are cut to order statistics, the extremes among them.
Json ProcessMedians(const tracker::Point& point, int most) {
  Json out = Json::array();
  const double value = point.value.value_or(0);
  if (!(value > 0)) return out;
  std::vector<double> sorted;
  for (const tracker::ProcessReading& process : point.processes) {
    if (std::isfinite(process.value)) sorted.push_back(process.value);
  }
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  const int shown = std::min(n, most);
  for (int i = 0; i < shown; ++i) {
    const int at = shown == n ? i : i * (n - 1) / (shown - 1);
    const double off = (sorted[at] / value - 1) * 1e4;
    out.push_back(
        static_cast<int64_t>(std::round(std::max(-1e9, std::min(1e9, off)))));
  }
  return out;
}

// The points that a reader would miss.
std::vector<int> PointsToKeep(const SeriesView& series) {
  std::vector<int> keep;
  for (const ChangeView& change : series.changes) {
    if (change.point > 0) keep.push_back(change.point - 1);
    keep.push_back(change.point);
  }
  const std::vector<tracker::Point>& points = series.points();
  const int n = static_cast<int>(points.size());
  for (const int i : series.EpochStarts()) keep.push_back(i);
  for (int i = std::max(0, n - 8); i < n; ++i) keep.push_back(i);
  // Failures and changes of config can be many: the newest of them.
  int others = 0;
  for (int i = n - 1; i >= 0 && others < 8; --i) {
    const bool new_config = i > 0 && points[i].attributes->config !=
                                         points[i - 1].attributes->config;
    if (OutcomeText(points[i]).empty() && !new_config) continue;
    keep.push_back(i);
    ++others;
  }
  return keep;
}

// The sentence, the command and what changed with it; null where no change
// decided the verdict.
Json EvidenceJson(const ReportData& data, const SeriesView& series) {
  if (!series.decided_by) return nullptr;
  const tracker::Evidence evidence = tracker::EvidenceOf(*series.decided_by);
  return {tracker::EvidenceText(*series.decided_by, evidence),
          tracker::NarrowingCommand(*series.decided_by, evidence,
                                    data.history_flag),
          series.changed};
}

// Levels as the judge has them: [first point drawn, last, value].
template <typename Place>
Json LevelsJson(const SeriesView& series, const Place& place) {
  Json levels = Json::array();
  for (const tracker::Level& level : series.levels) {
    levels.push_back(
        {place(level.begin), place(level.end) - 1, Rounded(level.value)});
  }
  return levels;
}

// The points that are drawn before which the line breaks.
template <typename Place>
Json GapsJson(const SeriesView& series, const Place& place) {
  std::set<int64_t> gaps;
  for (const int i : series.gaps) gaps.insert(place(i));
  return gaps;
}

// Minutes between the starts of points, for pages that know no better date;
// empty where commits have one.
Json MinutesJson(const ReportData& data, const SeriesView& series,
                 const std::vector<int>& picked) {
  const bool wanted = std::any_of(picked.begin(), picked.end(), [&](int i) {
    return data.commits[series.commits[i]].unix_ns <= 0;
  });
  Json minutes = Json::array();
  if (!wanted) return minutes;
  int64_t last_minute = 0;
  for (const int i : picked) {
    const int64_t minute =
        series.points()[i].runs->first_started_unix_ns / 60000000000;
    minutes.push_back(minute - last_minute);
    last_minute = minute;
  }
  return minutes;
}

// An object without those of UsualMembers that are as usual.
class Members {
 public:
  Members() { members_.get_ref<Json::object_t&>().reserve(32); }
  void Add(const char* name, Json value) {
    const auto usual = UsualMembers().find(name);
    if (usual != UsualMembers().end() && *usual == value) return;
    members_.get_ref<Json::object_t&>().emplace_back(name, std::move(value));
  }
  Json Take() { return std::move(members_); }

 private:
  Json members_ = Json::object();
};

Json ArrayOf(size_t size) {
  Json array = Json::array();
  array.get_ref<Json::array_t&>().reserve(size);
  return array;
}

// The points of a series that are shown, and the places of its texts.
struct Shown {
  std::vector<int> points;   // ascending
  std::vector<int> configs;  // by point; -1: none
  int family = 0, shape = 0, selection = 0, variant = 0;
};

void PickPointsOf(const SeriesView& series, int limit, Shown* shown) {
  shown->points = series.drawn && (series.drawn->limit <= limit ||
                                   PointCount(series) <= limit)
                      ? series.drawn->points
                      : DrawnPoints(series, limit);
}

// In the order in which the text names them.
void PlaceTexts(const SeriesView& series, SharedTexts* families,
                SharedTexts* texts, Shown* shown) {
  shown->family = families->PlaceOf(series.family);
  shown->configs.reserve(shown->points.size());
  for (const int i : shown->points) {
    const std::string& config = series.points()[i].attributes->config;
    shown->configs.push_back(config.empty() ? -1 : texts->PlaceOf(config));
  }
  shown->shape = texts->PlaceOf(series.shape);
  shown->selection = texts->PlaceOf(series.selection);
  shown->variant = texts->PlaceOf(series.variant);
}

Json SeriesJson(const ReportData& data, const SeriesView& series,
                const Shown& shown, int processes_per_point) {
  const std::vector<int>& picked = shown.points;
  // The place of a point of the series among the points that were picked.
  const auto place = [&](int point) {
    return static_cast<int64_t>(
        std::lower_bound(picked.begin(), picked.end(), point) - picked.begin());
  };

  Json commits = ArrayOf(picked.size());
  Json medians = ArrayOf(picked.size());
  Json processes = ArrayOf(picked.size());
  Json failures = Json::object();
  for (size_t i = 0; i < picked.size(); ++i) {
    const tracker::Point& point = series.points()[picked[i]];
    commits.push_back(series.commits[picked[i]]);
    medians.push_back(Rounded(point.value));
    const bool many = processes_per_point > kFewestProcesses;
    processes.push_back(many || i + kPointsWithProcesses >= picked.size()
                            ? ProcessMedians(point, processes_per_point)
                            : Json::array());
    if (std::string outcome = OutcomeText(point); !outcome.empty()) {
      failures[std::to_string(i)] = {std::move(outcome),
                                     point.detail.substr(0, 400)};
    }
  }
  Json changes = Json::array();
  for (const ChangeView& change : series.changes) {
    changes.push_back({place(change.point), Rounded(change.relative_change),
                       Rounded(change.relative_change_low),
                       Rounded(change.relative_change_high),
                       Rounded(change.confidence), change.provisional ? 1 : 0,
                       change.for_the_worse ? 1 : 0,
                       change.state.substr(0, 400), change.answered ? 1 : 0});
  }
  Json epochs = Json::array();
  for (const int i : series.EpochStarts()) {
    const int epoch = series.points()[i].epoch;
    epochs.push_back({place(i), series.of->epochs[epoch].change});
  }
  const std::vector<int>& configs = shown.configs;
  const bool one_config =
      std::all_of(configs.begin(), configs.end(),
                  [&](int config) { return config == configs[0]; });
  Members members;
  members.Add("n", series.name);
  members.Add("o", shown.family);
  members.Add("i", series.imported ? 1 : 0);
  members.Add("s", shown.shape);
  members.Add("x", shown.selection);
  members.Add("k", shown.variant);
  members.Add("h", series.hardware);
  members.Add("b", series.of->key.branch);
  members.Add("m", series.of->key.metric);
  members.Add("u", series.of->key.unit);
  members.Add("l", series.of->direction == proto::HIGHER_IS_BETTER ? 0 : 1);
  members.Add("v", tracker::VerdictRank(series.verdict));
  members.Add("d", series.verdict_detail);
  members.Add("j", series.main ? 1 : 0);
  members.Add("ev", EvidenceJson(data, series));
  members.Add("r", {Rounded(series.ratio), Rounded(series.ratio_low),
                    Rounded(series.ratio_high)});
  members.Add("e", Rounded(series.minimum_detectable_effect));
  members.Add("f", Rounded(series.roofline_fraction));
  members.Add("t", PointCount(series));
  members.Add("c", std::move(commits));
  members.Add("y", std::move(medians));
  members.Add("p", std::move(processes));
  members.Add("g", configs.empty() ? Json(-1)
                   : one_config    ? Json(configs[0])
                                   : Json(configs));
  members.Add("w", MinutesJson(data, series, picked));
  members.Add("q", std::move(failures));
  members.Add("cp", std::move(changes));
  members.Add("ep", std::move(epochs));
  members.Add("lv", LevelsJson(series, place));
  members.Add("a", GapsJson(series, place));
  members.Add("z", {series.known_points, series.needed_points});
  return members.Take();
}

}  // namespace

const Json& UsualMembers() {
  static const Json* const usual = new Json({
      {"i", 0},
      {"d", ""},
      {"j", 1},
      {"l", 1},
      {"ev", nullptr},
      {"r", {nullptr, nullptr, nullptr}},
      {"e", nullptr},
      {"f", nullptr},
      {"g", -1},
      {"w", Json::array()},
      {"q", Json::object()},
      {"cp", Json::array()},
      {"ep", Json::array()},
      {"a", Json::array()},
      {"m", "time"},
      {"u", "ns"},
  });
  return *usual;
}

int64_t PointCount(const SeriesView& series) {
  return series.drawn ? series.point_count
                      : static_cast<int64_t>(series.points().size());
}

std::vector<int> DrawnPoints(const SeriesView& series, int limit) {
  std::vector<double> values;
  values.reserve(series.points().size());
  for (const tracker::Point& point : series.points()) {
    values.push_back(
        point.value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return PickPoints(values, PointsToKeep(series), limit);
}

std::vector<std::string> PageSeriesTexts(const ReportData& data,
                                         const SeriesLimits& limits,
                                         SharedTexts* families,
                                         SharedTexts* texts) {
  const auto count = static_cast<int64_t>(data.series.size());
  std::vector<Shown> shown(data.series.size());
  ParallelFor(
      count, /*threads=*/0,
      [&](int64_t i) {
        PickPointsOf(data.series[i], limits.points_per_series, &shown[i]);
      },
      kSeriesAtATime);
  for (int64_t i = 0; i < count; ++i) {
    PlaceTexts(data.series[i], families, texts, &shown[i]);
  }
  std::vector<std::string> written(data.series.size());
  ParallelFor(
      count, /*threads=*/0,
      [&](int64_t i) {
        written[i] = DumpInert(SeriesJson(data, data.series[i], shown[i],
                                          limits.processes_per_point));
      },
      kSeriesAtATime);
  return written;
}

}  // namespace optrail::reports
