#include "reports/page_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "reports/inert_json.h"
#include "reports/overview.h"
#include "reports/page_overview.h"
#include "reports/page_roofline.h"
#include "reports/page_series.h"
#include "reports/page_sessions.h"
#include "reports/report_json.h"

namespace optrail::reports {
namespace {

// How much of the data the page may carry.
struct Limits {
  SeriesLimits series;
  int trials_per_session = 0;
};

constexpr int kFewestTrials = 24;
// About what a large page takes beside its series.
constexpr size_t kOtherBytes = 1 << 20;

Json PageCommitJson(const Commit& commit) {
  return {commit.id.substr(0, 12),
          commit.subject.substr(0, 160),
          commit.unix_ns / 1000000000,
          commit.position ? Json(*commit.position) : Json(nullptr),
          commit.dirty ? 1 : 0,
          commit.branch};
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

int64_t ProcessCount(const SeriesView& series) {
  if (series.drawn) return series.process_count;
  int64_t processes = 0;
  for (const tracker::Point& point : series.points()) {
    processes += std::min<int64_t>(point.processes.size(), kMostProcesses);
  }
  return processes;
}

// The members of an object, each as the text of its value.
class ObjectText {
 public:
  explicit ObjectText(size_t bytes) { text_.reserve(bytes); }
  void Add(const char* name, const Json& value) {
    AddText(name, DumpInert(value));
  }
  void AddList(const char* name, const std::vector<std::string>& texts) {
    AddText(name, "[");
    for (size_t i = 0; i < texts.size(); ++i) {
      absl::StrAppend(&text_, i == 0 ? "" : ",", texts[i]);
    }
    text_.push_back(']');
  }
  std::string Take() {
    text_.push_back('}');
    return std::move(text_);
  }

 private:
  void AddText(const char* name, absl::string_view text) {
    absl::StrAppend(&text_, text_.empty() ? "{" : ",", DumpInert(name), ":",
                    text);
  }

  std::string text_;
};

std::string Write(const ReportData& data, const Overview& overview,
                  const Limits& limits) {
  // Sessions may be of operators that no series has.
  SharedTexts families, texts;
  for (const std::string& name : overview.families) families.PlaceOf(name);
  const std::vector<std::string> series =
      PageSeriesTexts(data, limits.series, &families, &texts);
  size_t bytes = kOtherBytes;
  for (const std::string& each : series) bytes += each.size() + 1;
  Json sessions = Json::array();
  for (const TuningSession& session : data.sessions) {
    sessions.push_back(PageSessionJson(
        data, session,
        families.PlaceOf(session.of.header.task().operator_name()),
        limits.trials_per_session));
  }
  ObjectText page(bytes);
  page.Add("title", data.title);
  page.Add("source", data.source);
  page.Add("synthetic", data.synthetic);
  page.Add("runs", data.run_count);
  page.Add("verdicts", VerdictsJson());
  page.Add("changes", data.changes.Text(tracker::kLeastEffect));
  page.Add("families", families.texts());
  page.Add("commits", ListOf(data.commits, PageCommitJson));
  page.Add("hardware", AllRounded(ListOf(data.hardware, HardwareJson)));
  page.Add("overview", PageOverviewJson(overview));
  page.Add("recorded", RecordedJson(data));
  page.Add("texts", texts.texts());
  page.Add("usual", UsualMembers());
  page.AddList("series", series);
  page.Add("sessions", sessions);
  page.Add("workloads", ListOf(data.workloads, [&](const WorkloadView& each) {
             return PageWorkloadJson(data, each);
           }));
  page.Add("roofline", PageRooflineJson(ViewRoofline(data, overview)));
  page.Add("diagnoses", ListOf(data.diagnoses, PageDiagnosisJson));
  page.Add("calibration", PageCalibrationJson(data.diagnoses));
  page.Add("warnings", data.warnings);
  return page.Take();
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
  limits.series.points_per_series = static_cast<int>(std::min<double>(
      most_points, PointsPerSeries(CountsOf(data), max_bytes)));
  limits.series.processes_per_point = kMostProcesses;

  while (true) {
    if (limits.series.points_per_series == kFewestPoints) {
      limits.series.processes_per_point = kFewestProcesses;
    }
    std::string text = Write(data, overview, limits);
    const int64_t size = static_cast<int64_t>(text.size());
    const bool smallest = limits.series.points_per_series == kFewestPoints &&
                          limits.trials_per_session == kFewestTrials;
    if (size <= max_bytes || smallest) return text;
    const double shrink = std::min(0.9, 0.95 * max_bytes / size);
    limits.series.points_per_series =
        between(kFewestPoints, shrink * limits.series.points_per_series, 500);
    limits.trials_per_session =
        between(kFewestTrials, shrink * limits.trials_per_session, 1500);
  }
}

}  // namespace optrail::reports
