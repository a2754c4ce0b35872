#include "reports/page_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "reports/inert_json.h"
#include "reports/knob_effects.h"
#include "reports/overview.h"
#include "reports/pick_points.h"

namespace optrail::reports {
namespace {

using Json = nlohmann::ordered_json;

// How much of the data the page may carry.
struct Limits {
  int points_per_series = 0;
  int trials_per_session = 0;
  int trend_points = 0;
};

constexpr int kMaxProcessMedians = 9;
constexpr int kFewestPoints = 16;
constexpr int kFewestTrials = 24;

Json Number(absl::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

// Five significant digits: finer than any measurement, and short as text.
Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  const int digits =
      4 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
  if (digits <= 0) {
    const double unit = std::pow(10.0, -digits);
    const double rounded = std::round(value / unit) * unit;
    if (std::fabs(rounded) < 1e15) return static_cast<int64_t>(rounded);
    return rounded;
  }
  if (digits > 300) return value;
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

Json Rounded(absl::optional<double> value) {
  return value ? Rounded(*value) : Json(nullptr);
}

// As hundredths of a percent away from the point's value: short integers. Of
// many processes only order statistics, the extremes among them.
Json ProcessMedians(const tracker::Point& point) {
  Json out = Json::array();
  const double value = point.value.value_or(0);
  if (!(value > 0)) return out;
  std::vector<double> sorted;
  for (const tracker::ProcessReading& process : point.processes) {
    if (std::isfinite(process.value)) sorted.push_back(process.value);
  }
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  const int shown = std::min(n, kMaxProcessMedians);
  for (int i = 0; i < shown; ++i) {
    const int at = shown == n ? i : i * (n - 1) / (shown - 1);
    const double off = (sorted[at] / value - 1) * 1e4;
    out.push_back(
        static_cast<int64_t>(std::round(std::max(-1e9, std::min(1e9, off)))));
  }
  return out;
}

Json CommitJson(const Commit& commit) {
  return {commit.id.substr(0, 12),
          commit.subject.substr(0, 160),
          commit.unix_ns / 1000000000,
          commit.position ? Json(*commit.position) : Json(nullptr),
          commit.dirty ? 1 : 0,
          commit.branch};
}

Json HardwareJson(const Hardware& hardware) {
  return {
      {"id", hardware.id},
      {"device", hardware.device},
      {"model", hardware.model},
      {"cores", hardware.cores ? Json(*hardware.cores) : Json(nullptr)},
      {"memory",
       hardware.memory_bytes ? Json(*hardware.memory_bytes) : Json(nullptr)},
      {"vm", hardware.virtual_machine},
      {"compiler", hardware.compiler},
      {"flags", hardware.compiler_flags},
      {"os", hardware.os},
      {"driver", hardware.driver},
      {"flops", Number(hardware.flop_per_s)},
      {"bandwidth", Number(hardware.memory_bytes_per_s)},
  };
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
    const bool new_config = i > 0 && points[i].config != points[i - 1].config;
    if (OutcomeText(points[i]).empty() && !new_config) continue;
    keep.push_back(i);
    ++others;
  }
  return keep;
}

Json SeriesJson(const SeriesView& series, int operator_index, int limit) {
  std::vector<double> values;
  for (const tracker::Point& point : series.points()) {
    values.push_back(
        point.value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  const std::vector<int> picked =
      PickPoints(values, PointsToKeep(series), limit);
  // Where a point of the series stands among those that were picked.
  const auto place = [&](int point) {
    return std::lower_bound(picked.begin(), picked.end(), point) -
           picked.begin();
  };

  Json commits = Json::array();
  Json medians = Json::array();
  Json processes = Json::array();
  Json configs = Json::array();
  Json minutes = Json::array();
  Json failures = Json::object();
  // Configs are told by their place in a list, -1 where there is none.
  std::vector<std::string> config_names;
  const auto config_index = [&](const std::string& config) {
    if (config.empty()) return -1;
    const auto found =
        std::find(config_names.begin(), config_names.end(), config);
    const int index = static_cast<int>(found - config_names.begin());
    if (found == config_names.end()) config_names.push_back(config);
    return index;
  };
  int64_t last_minute = 0;
  for (size_t i = 0; i < picked.size(); ++i) {
    const tracker::Point& point = series.points()[picked[i]];
    commits.push_back(series.commits[picked[i]]);
    medians.push_back(Rounded(point.value));
    processes.push_back(ProcessMedians(point));
    configs.push_back(config_index(point.config));
    const int64_t minute = point.first_started_unix_ns / 60000000000;
    minutes.push_back(minute - last_minute);
    last_minute = minute;
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
                       change.state.substr(0, 400)});
  }
  Json epochs = Json::array();
  for (const int i : series.EpochStarts()) {
    const int epoch = series.points()[i].epoch;
    epochs.push_back({place(i), series.of->epochs[epoch].change});
  }
  return {
      {"n", series.name},
      {"o", operator_index},
      {"s", series.shape},
      {"x", series.selection},
      {"k", series.variant},
      {"h", series.hardware},
      {"b", series.of->key.branch},
      {"m", series.of->key.metric},
      {"u", series.of->key.unit},
      {"l", series.of->direction == proto::HIGHER_IS_BETTER ? 0 : 1},
      {"v", tracker::VerdictRank(series.verdict)},
      {"d", series.verdict_detail},
      {"r",
       {Rounded(series.ratio), Rounded(series.ratio_low),
        Rounded(series.ratio_high)}},
      {"e", Rounded(series.minimum_detectable_effect)},
      {"f", Rounded(series.roofline_fraction)},
      {"t", series.points().size()},
      {"c", std::move(commits)},
      {"y", std::move(medians)},
      {"p", std::move(processes)},
      {"g", std::move(configs)},
      {"w", std::move(minutes)},
      {"q", std::move(failures)},
      {"configs", config_names},
      {"cp", std::move(changes)},
      {"ep", std::move(epochs)},
  };
}

Json KnobsJson(const TuningSession& session) {
  Json out = Json::array();
  for (const KnobEffect& effect : KnobEffects(session)) {
    Json levels = Json::array();
    for (const LevelTimes& at : effect.levels) {
      levels.push_back({at.level, at.count, Rounded(at.min_ns),
                        Rounded(at.lower_quartile_ns), Rounded(at.median_ns),
                        Rounded(at.upper_quartile_ns), Rounded(at.max_ns)});
    }
    out.push_back({{"k", effect.knob},
                   {"i", Rounded(effect.importance)},
                   {"l", std::move(levels)}});
  }
  return out;
}

// Trials that are drawn: every improvement, some of every failure, and the
// extremes of the rest.
std::vector<int> PickTrials(const TuningSession& session,
                            const Convergence& convergence, int limit) {
  std::vector<int> keep;
  for (const Improvement& step : convergence.improvements) {
    keep.push_back(step.trial);
  }
  std::vector<double> times;
  std::map<std::string, int> failures;
  for (int i = 0; i < session.trials.size(); ++i) {
    const Trial& trial = session.trials[i];
    times.push_back(trial.time_ns);
    if (trial.outcome != "OK" && ++failures[trial.outcome] <= 6) {
      keep.push_back(i);
    }
  }
  return PickPoints(times, keep, limit);
}

// What a session over schedules tried; null of others.
Json ScheduleJson(const absl::optional<ScheduleView>& view) {
  if (!view.has_value()) return nullptr;
  constexpr size_t kMostSketches = 20;
  Json sketches = Json::array();
  for (const ScheduleView::Sketch& sketch : view->sketches) {
    if (sketches.size() >= kMostSketches && !sketch.of_winner) continue;
    sketches.push_back({sketch.text, sketch.trials, sketch.failed,
                        Rounded(sketch.best_ns), Rounded(sketch.median_ns),
                        sketch.of_winner ? 1 : 0});
  }
  Json rules = Json::array();
  for (const ScheduleView::Rule& rule : view->rules) {
    rules.push_back({rule.name, rule.decisions, Rounded(rule.importance)});
  }
  Json decisions = Json::array();
  for (const ScheduleView::Decision& decision : view->decisions) {
    decisions.push_back({decision.name, decision.stage, decision.rule,
                         decision.value,
                         decision.usual ? Json(*decision.usual) : Json(),
                         Rounded(decision.importance)});
  }
  return {{"note", view->note},
          {"of", view->sketches.size()},
          {"sketches", std::move(sketches)},
          {"rules", std::move(rules)},
          {"decisions", std::move(decisions)},
          {"loops", view->loops}};
}

Json SessionJson(const TuningSession& session, int operator_index, int limit) {
  const Convergence convergence = Converge(session);
  Json knobs = Json::array();
  for (const Knob& knob : session.knobs) {
    knobs.push_back({{"n", knob.name}, {"l", knob.levels}});
  }
  std::vector<std::string> outcome_names;
  for (const auto& [name, count] : convergence.outcomes) {
    outcome_names.push_back(name);
  }
  const auto outcome_index = [&](const std::string& name) {
    return std::lower_bound(outcome_names.begin(), outcome_names.end(), name) -
           outcome_names.begin();
  };
  Json trials = Json::array();
  for (int i : PickTrials(session, convergence, limit)) {
    const Trial& trial = session.trials[i];
    Json row = {i, outcome_index(trial.outcome), Rounded(trial.time_ns),
                trial.levels, trial.elapsed_ns / 1000000};
    row.push_back(trial.detail.substr(0, 200));
    Json values = Json::array();
    for (const double value : trial.values) values.push_back(Rounded(value));
    if (!values.empty()) row.push_back(std::move(values));
    trials.push_back(std::move(row));
  }
  Json best = Json::array();
  for (const Improvement& step : convergence.improvements) {
    best.push_back({step.trial, Rounded(step.time_ns)});
  }
  Json finalists = Json::array();
  for (const Finalist& finalist : session.finalists) {
    finalists.push_back({finalist.config, Rounded(finalist.first_time_ns),
                         Rounded(finalist.verified_time_ns), finalist.outcome,
                         finalist.is_default ? 1 : 0,
                         finalist.is_winner ? 1 : 0});
  }
  Json objectives = Json::array();
  for (const Objective& objective : session.objectives) {
    objectives.push_back({{"metric", objective.metric},
                          {"unit", objective.unit},
                          {"lower", objective.lower_is_better},
                          {"limit", Rounded(objective.limit)}});
  }
  // Whole, also where trials are left out.
  Json front = Json::array();
  for (const int i : session.front) {
    const Trial& trial = session.trials[i];
    Json values = Json::array();
    for (const double value : trial.values) values.push_back(Rounded(value));
    front.push_back({i, trial.levels, std::move(values)});
  }
  return {
      {"id", session.id},
      {"objectives", std::move(objectives)},
      {"front", std::move(front)},
      {"o", operator_index},
      {"task", session.task},
      {"h", session.hardware},
      {"strategy", session.strategy},
      // A JavaScript number does not hold 64 bits.
      {"seed", std::to_string(session.seed)},
      {"stop", session.stop_reason},
      {"start", session.started_unix_ns / 1000000000},
      {"elapsed", session.elapsed_ns / 1000000},
      {"valid", session.valid_config_count ? Json(*session.valid_config_count)
                                           : Json(nullptr)},
      {"commit", CommitJson(session.commit)},
      {"knobs", std::move(knobs)},
      {"effects", KnobsJson(session)},
      {"total", session.trials.size()},
      {"warm", session.warm_start_trial_count},
      {"outcomes", outcome_names},
      {"counts",
       [&] {
         Json counts = Json::array();
         for (const auto& [name, count] : convergence.outcomes) {
           counts.push_back(count);
         }
         return counts;
       }()},
      {"trials", std::move(trials)},
      {"best", std::move(best)},
      {"t95", convergence.trials_to_95_percent
                  ? Json(*convergence.trials_to_95_percent)
                  : Json(nullptr)},
      {"t99", convergence.trials_to_99_percent
                  ? Json(*convergence.trials_to_99_percent)
                  : Json(nullptr)},
      {"curse", Rounded(WinnersCurse(session))},
      {"speedup", Rounded(VerifiedSpeedup(session))},
      {"finalists", std::move(finalists)},
      {"findings", session.findings},
      {"schedule", ScheduleJson(session.schedule)},
  };
}

// Times in ns, 0 where there are none.
Json WorkloadJson(const WorkloadView& workload) {
  const tracker::WorkloadTime& time = workload.time;
  Json layers = Json::array();
  for (const tracker::LayerTime& layer : time.layers) {
    layers.push_back({layer.layer.operator_name(), layer.layer.shape(),
                      layer.layer.count(), Rounded(layer.default_ns),
                      Rounded(layer.tuned_ns), Rounded(layer.best_ns),
                      layer.best_backend, Rounded(layer.share),
                      layer.counts ? "" : layer.layer.part(),
                      layer.counts ? "" : layer.layer.way(),
                      layer.layer.doc().substr(0, 200)});
  }
  Json libraries = Json::array();
  for (const tracker::LibraryTime& library : time.libraries) {
    libraries.push_back(
        {library.library, library.layers, Rounded(library.time_ns)});
  }
  Json parts = Json::array();
  for (const tracker::PartTime& part : time.parts) {
    Json ways = Json::array();
    for (const tracker::PartTime::Way& way : part.ways) {
      ways.push_back({way.way, Rounded(way.best_ns)});
    }
    parts.push_back({part.part, std::move(ways)});
  }
  return {{"n", time.name},
          {"h", workload.hardware},
          {"threads", time.threads},
          {"start", workload.started_unix_ns / 1000000000},
          {"commit", CommitJson(workload.commit)},
          {"counted", time.counted},
          {"measured", time.measured},
          {"tuned", time.tuned},
          {"total",
           {Rounded(time.default_ns), Rounded(time.tuned_ns),
            Rounded(time.best_ns), Rounded(time.limit_ns)}},
          {"libraries", std::move(libraries)},
          {"layers", std::move(layers)},
          {"parts", std::move(parts)},
          {"missing", time.missing}};
}

Json OverviewJson(const Overview& overview, const Limits& limits) {
  Json cells = Json::array();
  // An import may bring 100,000 operators.
  std::unordered_map<std::string, int> operator_index;
  for (const std::string& name : overview.operators) {
    operator_index.emplace(name, static_cast<int>(operator_index.size()));
  }
  for (const OverviewCell& cell : overview.cells) {
    Json at = Json::array();
    Json trend = Json::array();
    for (int i : PickPoints(cell.trend, {}, limits.trend_points)) {
      if (std::isnan(cell.trend[i])) continue;
      at.push_back(i);
      trend.push_back(Rounded(cell.trend[i]));
    }
    Json verdicts = Json::array();
    for (const auto& [verdict, count] : cell.verdicts) {
      verdicts.push_back({tracker::VerdictRank(verdict), count});
    }
    cells.push_back({{"o", operator_index.at(cell.operator_name)},
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
  return {{"operators", overview.operators},
          {"cells", std::move(cells)},
          {"pairs", std::move(pairs)},
          {"attention", overview.attention}};
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

std::string Write(const ReportData& data, const Overview& overview,
                  const Limits& limits) {
  // Sessions may be of operators that no series has.
  std::vector<std::string> operators;
  std::unordered_map<std::string, int> known;
  const auto operator_index = [&](const std::string& name) {
    const auto [at, is_new] =
        known.emplace(name, static_cast<int>(operators.size()));
    if (is_new) operators.push_back(name);
    return at->second;
  };
  for (const std::string& name : overview.operators) operator_index(name);

  Json commits = Json::array();
  for (const Commit& commit : data.commits) {
    commits.push_back(CommitJson(commit));
  }
  Json hardware = Json::array();
  for (const Hardware& each : data.hardware) {
    hardware.push_back(HardwareJson(each));
  }
  Json series = Json::array();
  for (const SeriesView& each : data.series) {
    series.push_back(SeriesJson(each, operator_index(each.operator_name),
                                limits.points_per_series));
  }
  Json sessions = Json::array();
  for (const TuningSession& session : data.sessions) {
    sessions.push_back(SessionJson(session,
                                   operator_index(session.operator_name),
                                   limits.trials_per_session));
  }
  Json workloads = Json::array();
  for (const WorkloadView& workload : data.workloads) {
    workloads.push_back(WorkloadJson(workload));
  }
  return DumpInert({
      {"title", data.title},
      {"source", data.source},
      {"synthetic", data.synthetic},
      {"runs", data.run_count},
      {"verdicts", VerdictsJson()},
      {"operators", operators},
      {"commits", std::move(commits)},
      {"hardware", std::move(hardware)},
      {"overview", OverviewJson(overview, limits)},
      {"series", std::move(series)},
      {"sessions", std::move(sessions)},
      {"workloads", std::move(workloads)},
      {"warnings", data.warnings},
  });
}

}  // namespace

std::string PageJson(const ReportData& data, int64_t max_bytes) {
  const Overview overview = Summarize(data);
  const double series_count = std::max<double>(data.series.size(), 1);
  const double session_count = std::max<double>(data.sessions.size(), 1);
  int64_t points = 0;
  int64_t processes = 0;
  // More than there are is no limit that could be lowered.
  double most_points = kFewestPoints, most_trials = kFewestTrials;
  for (const TuningSession& session : data.sessions) {
    most_trials = std::max<double>(most_trials, session.trials.size());
  }
  for (const SeriesView& series : data.series) {
    points += series.points().size();
    most_points = std::max<double>(most_points, series.points().size());
    for (const tracker::Point& point : series.points()) {
      processes +=
          std::min<int64_t>(point.processes.size(), kMaxProcessMedians);
    }
  }
  // A first guess from what trials, series and points take as text, so that one
  // pass is enough as a rule.
  constexpr double kTrialBytes = 50;
  constexpr double kSeriesBytes = 700;
  const double point_bytes =
      20 + 5.0 * processes / std::max<int64_t>(points, 1);
  const auto between = [](double low, double value, double high) {
    return static_cast<int>(std::min(high, std::max(low, value)));
  };
  Limits limits;
  limits.trend_points = 80;
  limits.trials_per_session =
      between(kFewestTrials, 0.2 * max_bytes / session_count / kTrialBytes,
              std::min(1500., most_trials));
  limits.points_per_series =
      between(kFewestPoints,
              (0.9 * max_bytes / series_count - kSeriesBytes) / point_bytes,
              std::min(500., most_points));

  while (true) {
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
