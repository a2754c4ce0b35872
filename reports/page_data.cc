#include "reports/page_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reports/inert_json.h"
#include "reports/overview.h"
#include "reports/page_overview.h"
#include "reports/page_roofline.h"
#include "reports/page_sessions.h"
#include "reports/pick_points.h"
#include "reports/report_json.h"
#include "tracker/judge/evidence.h"

namespace optrail::reports {
namespace {

// How much of the data the page may carry.
struct Limits {
  int points_per_series = 0;
  int trials_per_session = 0;
  int processes_per_point = 0;
};

// If points must be few, the newest keep their fastest and slowest process.
constexpr int kFewestProcesses = 2;
constexpr size_t kPointsWithProcesses = 4;
constexpr int kFewestPoints = 16;
constexpr int kFewestTrials = 24;

Json PageCommitJson(const Commit& commit) {
  return {commit.id.substr(0, 12),
          commit.subject.substr(0, 160),
          commit.unix_ns / 1000000000,
          commit.position ? Json(*commit.position) : Json(nullptr),
          commit.dirty ? 1 : 0,
          commit.branch};
}

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

// Texts that many series share, told by their place in a list.
class SharedTexts {
 public:
  int PlaceOf(const std::string& text) {
    const auto [at, is_new] =
        places_.emplace(text, static_cast<int>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, int> places_;
  std::vector<std::string> texts_;
};

// Minutes between the starts of points, for pages that know no better date;
// empty where commits have one.
Json MinutesJson(const ReportData& data, const SeriesView& series,
                 const std::vector<int>& picked) {
  Json minutes = Json::array();
  bool wanted = false;
  int64_t last_minute = 0;
  for (const int i : picked) {
    wanted = wanted || data.commits[series.commits[i]].unix_ns <= 0;
    const int64_t minute =
        series.points()[i].runs->first_started_unix_ns / 60000000000;
    minutes.push_back(minute - last_minute);
    last_minute = minute;
  }
  return wanted ? minutes : Json::array();
}

// Members that most series lack; core.js adds them where they are left out.
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

Json WithoutUsualMembers(Json series) {
  for (const auto& [name, value] : UsualMembers().items()) {
    if (series[name] == value) series.erase(name);
  }
  return series;
}

// How many points the series has, be they there or not.
int64_t PointCount(const SeriesView& series) {
  return series.drawn ? series.point_count
                      : static_cast<int64_t>(series.points().size());
}

int64_t ProcessCount(const SeriesView& series) {
  if (series.drawn) return series.process_count;
  int64_t processes = 0;
  for (const tracker::Point& point : series.points()) {
    processes += std::min<int64_t>(point.processes.size(), kMostProcesses);
  }
  return processes;
}

Json SeriesJson(const ReportData& data, const SeriesView& series,
                int family_index, const Limits& limits, SharedTexts* shared) {
  const std::vector<int> picked =
      series.drawn && (series.drawn->limit <= limits.points_per_series ||
                       PointCount(series) <= limits.points_per_series)
          ? series.drawn->points
          : DrawnPoints(series, limits.points_per_series);
  // The place of a point of the series among the points that were picked.
  const auto place = [&](int point) {
    return static_cast<int64_t>(
        std::lower_bound(picked.begin(), picked.end(), point) - picked.begin());
  };

  Json commits = Json::array();
  Json medians = Json::array();
  Json processes = Json::array();
  Json configs = Json::array();
  Json failures = Json::object();
  for (size_t i = 0; i < picked.size(); ++i) {
    const tracker::Point& point = series.points()[picked[i]];
    commits.push_back(series.commits[picked[i]]);
    medians.push_back(Rounded(point.value));
    const bool many = limits.processes_per_point > kFewestProcesses;
    processes.push_back(many || i + kPointsWithProcesses >= picked.size()
                            ? ProcessMedians(point, limits.processes_per_point)
                            : Json::array());
    configs.push_back(point.attributes->config.empty()
                          ? -1
                          : shared->PlaceOf(point.attributes->config));
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
  const bool one_config =
      std::all_of(configs.begin(), configs.end(),
                  [&](const Json& config) { return config == configs[0]; });
  return WithoutUsualMembers({
      {"n", series.name},
      {"o", family_index},
      {"i", series.imported ? 1 : 0},
      {"s", shared->PlaceOf(series.shape)},
      {"x", shared->PlaceOf(series.selection)},
      {"k", shared->PlaceOf(series.variant)},
      {"h", series.hardware},
      {"b", series.of->key.branch},
      {"m", series.of->key.metric},
      {"u", series.of->key.unit},
      {"l", series.of->direction == proto::HIGHER_IS_BETTER ? 0 : 1},
      {"v", tracker::VerdictRank(series.verdict)},
      {"d", series.verdict_detail},
      {"j", series.main ? 1 : 0},
      {"ev", EvidenceJson(data, series)},
      {"r",
       {Rounded(series.ratio), Rounded(series.ratio_low),
        Rounded(series.ratio_high)}},
      {"e", Rounded(series.minimum_detectable_effect)},
      {"f", Rounded(series.roofline_fraction)},
      {"t", PointCount(series)},
      {"c", std::move(commits)},
      {"y", std::move(medians)},
      {"p", std::move(processes)},
      {"g", configs.empty() ? Json(-1)
            : one_config    ? configs[0]
                            : configs},
      {"w", MinutesJson(data, series, picked)},
      {"q", std::move(failures)},
      {"cp", std::move(changes)},
      {"ep", std::move(epochs)},
      {"lv", LevelsJson(series, place)},
      {"a", GapsJson(series, place)},
      {"z", {series.known_points, series.needed_points}},
  });
}

// Verdicts are told by their place in this list, worst first.
Json VerdictsJson() {
  Json verdicts = Json::array();
  for (const tracker::VerdictInfo& info : tracker::Verdicts()) {
    verdicts.push_back({{"name", std::string(info.name)},
                        {"tone", std::string(tracker::ToneName(info.tone))},
                        {"icon", std::string(info.icon)},
                        {"meaning", std::string(info.meaning)},
                        {"change", info.is_change},
                        {"attention", info.wants_attention},
                        {"series", info.of_series}});
  }
  return verdicts;
}

// Unix minutes of the first point and the last one; 0 where none is known.
Json RecordedJson(const ReportData& data) {
  int64_t first = 0, last = 0;
  for (const SeriesView& series : data.series) {
    for (const tracker::Point& point : series.points()) {
      const int64_t minute = point.runs->first_started_unix_ns / 60000000000;
      if (minute <= 0) continue;
      first = first == 0 ? minute : std::min(first, minute);
      last = std::max(last, minute);
    }
  }
  return {first, last};
}

std::string Write(const ReportData& data, const Overview& overview,
                  const Limits& limits) {
  // Sessions may be of operators that no series has.
  std::vector<std::string> families;
  std::unordered_map<std::string, int> known;
  const auto family_index = [&](const std::string& name) {
    const auto [at, is_new] =
        known.emplace(name, static_cast<int>(families.size()));
    if (is_new) families.push_back(name);
    return at->second;
  };
  for (const std::string& name : overview.families) family_index(name);

  SharedTexts texts;
  Json series = Json::array();
  for (const SeriesView& each : data.series) {
    series.push_back(
        SeriesJson(data, each, family_index(each.family), limits, &texts));
  }
  Json sessions = Json::array();
  for (const TuningSession& session : data.sessions) {
    sessions.push_back(PageSessionJson(
        data, session, family_index(session.of.header.task().operator_name()),
        limits.trials_per_session));
  }
  return DumpInert({
      {"title", data.title},
      {"source", data.source},
      {"synthetic", data.synthetic},
      {"runs", data.run_count},
      {"verdicts", VerdictsJson()},
      {"changes", data.changes.Text(tracker::kLeastEffect)},
      {"families", families},
      {"commits", ListOf(data.commits, PageCommitJson)},
      {"hardware", AllRounded(ListOf(data.hardware, HardwareJson))},
      {"overview", PageOverviewJson(overview)},
      {"recorded", RecordedJson(data)},
      {"texts", texts.texts()},
      {"usual", UsualMembers()},
      {"series", std::move(series)},
      {"sessions", std::move(sessions)},
      {"workloads", ListOf(data.workloads,
                           [&](const WorkloadView& each) {
                             return PageWorkloadJson(data, each);
                           })},
      {"roofline", PageRooflineJson(ViewRoofline(data, overview))},
      {"diagnoses", ListOf(data.diagnoses, PageDiagnosisJson)},
      {"calibration", PageCalibrationJson(data.diagnoses)},
      {"warnings", data.warnings},
  });
}

// The width of a step of PointsPerSeries: an eighth of the power of two below.
int Step(int limit) {
  int step = 1;
  while (16 * step <= limit) step *= 2;
  return step;
}

}  // namespace

PageCounts CountsOf(const ReportData& data) {
  PageCounts counts;
  counts.series = static_cast<int64_t>(data.series.size());
  for (const SeriesView& series : data.series) {
    counts.points += PointCount(series);
    counts.processes += ProcessCount(series);
  }
  return counts;
}

int PointsPerSeries(const PageCounts& counts, int64_t max_bytes) {
  // A first guess from what series and points take as text, so that one pass is
  // enough as a rule.
  constexpr double kSeriesBytes = 500;
  constexpr int kMost = 500;
  const double point_bytes =
      20 + 5.0 * counts.processes / std::max<int64_t>(counts.points, 1);
  const double fit =
      (0.9 * max_bytes / std::max<int64_t>(counts.series, 1) - kSeriesBytes) /
      point_bytes;
  int limit = kFewestPoints;
  // In steps of 6 to 12%: a history that grows seldom gets another one, which
  // makes what was kept of its series useless.
  while (limit < kMost && limit + Step(limit) <= fit) limit += Step(limit);
  return std::min(limit, kMost);
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

std::string PageJson(const ReportData& data, int64_t max_bytes) {
  const Overview overview = Summarize(data);
  const double session_count = std::max<double>(data.sessions.size(), 1);
  // More than there are is no limit that could be lowered.
  double most_points = kFewestPoints, most_trials = kFewestTrials;
  for (const TuningSession& session : data.sessions) {
    most_trials = std::max<double>(most_trials, session.of.trial_count());
  }
  for (const SeriesView& series : data.series) {
    most_points = std::max<double>(most_points, PointCount(series));
  }
  constexpr double kTrialBytes = 50;
  const auto between = [](double low, double value, double high) {
    return static_cast<int>(std::min(high, std::max(low, value)));
  };
  Limits limits;
  limits.trials_per_session =
      between(kFewestTrials, 0.2 * max_bytes / session_count / kTrialBytes,
              std::min(1500., most_trials));
  limits.points_per_series = static_cast<int>(std::min<double>(
      most_points, PointsPerSeries(CountsOf(data), max_bytes)));
  limits.processes_per_point = kMostProcesses;

  while (true) {
    if (limits.points_per_series == kFewestPoints) {
      limits.processes_per_point = kFewestProcesses;
    }
    std::string text = Write(data, overview, limits);
    const int64_t size = static_cast<int64_t>(text.size());
    const bool smallest = limits.points_per_series == kFewestPoints &&
                          limits.trials_per_session == kFewestTrials;
    if (size <= max_bytes || smallest) return text;
    const double shrink = std::min(0.9, 0.95 * max_bytes / size);
    limits.points_per_series =
        between(kFewestPoints, shrink * limits.points_per_series, 500);
    limits.trials_per_session =
        between(kFewestTrials, shrink * limits.trials_per_session, 1500);
  }
}

}  // namespace optrail::reports
