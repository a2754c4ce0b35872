#include "reports/build_report_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/pareto.h"
#include "reports/schedule_view.h"
#include "tracker/convergence/convergence.h"
#include "tracker/convergence/findings.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/objective.h"

namespace optrail::reports {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename T>
absl::optional<T> If(bool present, T value) {
  return present ? absl::optional<T>(value) : absl::nullopt;
}

Commit ConvertCommit(const proto::Commit& commit) {
  Commit result;
  result.id = commit.id();
  result.branch = commit.branch();
  result.subject = commit.subject();
  result.position = If<int64_t>(commit.has_first_parent_position(),
                                commit.first_parent_position());
  result.unix_ns = commit.commit_unix_ns();
  result.dirty = commit.dirty();
  return result;
}

// The hardware of a report, in order of their ids.
class HardwareTable {
 public:
  void Add(const proto::Hardware& hardware, const proto::Toolchain& toolchain,
           const proto::Ceilings* ceilings, int64_t unix_ns) {
    auto [it, inserted] = newest_.emplace(hardware.id(), Entry());
    if (!inserted && unix_ns < it->second.unix_ns) return;
    Hardware& result = it->second.hardware;
    it->second.unix_ns = unix_ns;
    result.id = hardware.id();
    result.device = tuning::DeviceName(hardware.device_kind());
    result.model = hardware.model();
    result.cores = If<int32_t>(hardware.has_cores(), hardware.cores());
    result.memory_bytes =
        If<int64_t>(hardware.has_memory_bytes(), hardware.memory_bytes());
    result.virtual_machine = hardware.virtual_machine();
    result.compiler = toolchain.compiler();
    result.compiler_flags = toolchain.flags();
    result.os = toolchain.os();
    result.driver = toolchain.driver();
    if (ceilings == nullptr) return;
    if (ceilings->has_flop_per_s_all_threads()) {
      result.flop_per_s = ceilings->flop_per_s_all_threads();
    }
    if (ceilings->has_memory_read_bytes_per_s_all_threads()) {
      result.memory_bytes_per_s =
          ceilings->memory_read_bytes_per_s_all_threads();
    }
  }

  // Call once, after the last Add.
  std::vector<Hardware> Take() {
    std::vector<Hardware> all;
    for (auto& [id, entry] : newest_) {
      index_[id] = static_cast<int>(all.size());
      all.push_back(std::move(entry.hardware));
    }
    return all;
  }
  int IndexOf(const std::string& id) const { return index_.at(id); }

 private:
  struct Entry {
    Hardware hardware;
    int64_t unix_ns = 0;
  };
  std::map<std::string, Entry> newest_;
  std::map<std::string, int> index_;
};

// What a point's commit is told apart by. Outside of git each time is its own.
using CommitKey = std::tuple<std::string, bool, int64_t>;

CommitKey KeyOf(const tracker::Point& point) {
  return {point.commit.id(), point.commit.dirty(),
          point.commit.id().empty() ? point.first_started_unix_ns : 0};
}

// All commits that points refer to, in the order of series: by position where
// all know it, else by time.
std::map<CommitKey, int> OrderCommits(const std::vector<tracker::Series>& all,
                                      std::vector<Commit>& commits) {
  struct Found {
    const tracker::Point* point;
    int64_t first_unix_ns;
  };
  std::map<CommitKey, Found> found;
  bool positions_known = true;
  for (const tracker::Series& series : all) {
    for (const tracker::Point& point : series.points) {
      auto [it, inserted] = found.emplace(
          KeyOf(point), Found{&point, point.first_started_unix_ns});
      it->second.first_unix_ns =
          std::min(it->second.first_unix_ns, point.first_started_unix_ns);
      positions_known &= point.commit.has_first_parent_position();
    }
  }
  std::vector<std::pair<CommitKey, Found>> ordered(found.begin(), found.end());
  std::stable_sort(
      ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
        if (positions_known) {
          const int64_t pa = a.second.point->commit.first_parent_position();
          const int64_t pb = b.second.point->commit.first_parent_position();
          if (pa != pb) return pa < pb;
        }
        return a.second.first_unix_ns < b.second.first_unix_ns;
      });
  std::map<CommitKey, int> index;
  for (const auto& [key, each] : ordered) {
    index[key] = static_cast<int>(commits.size());
    commits.push_back(ConvertCommit(each.point->commit));
    if (commits.back().unix_ns == 0) {
      commits.back().unix_ns = each.first_unix_ns;
    }
  }
  return index;
}

// "threads=1/hot/v2": what the key holds beyond operator, shape and selection.
std::string VariantText(const proto::BenchmarkKey& key) {
  std::vector<std::string> parts;
  if (key.device_kind() != proto::DEVICE_KIND_UNSPECIFIED) {
    parts.push_back(tuning::DeviceAndBackend(key.device_kind(), key.backend()));
  }
  if (key.threads() > 0) {
    parts.push_back(absl::StrCat(key.threads(),
                                 key.threads() == 1 ? " thread" : " threads"));
  }
  if (key.cache_mode() != proto::CACHE_MODE_UNSPECIFIED) {
    parts.push_back(tuning::CacheModeName(key.cache_mode()));
  }
  if (key.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    parts.push_back(tuning::LaunchModeName(key.launch_mode()));
  }
  if (key.devices() > 0) {
    parts.push_back(absl::StrCat(key.devices(), " devices"));
  }
  if (key.version() != 0) parts.push_back(absl::StrCat("v", key.version()));
  return absl::StrJoin(parts, ", ");
}

std::string SelectionText(const proto::BenchmarkKey& key) {
  switch (key.selection()) {
    case proto::DEFAULT:
      return "default";
    case proto::TUNED:
      return key.objective().empty()
                 ? "tuned"
                 : absl::StrCat("tuned for ", key.objective());
    case proto::NAMED:
      return key.config_name();
    default:
      return "";
  }
}

SeriesView ConvertSeries(const tracker::Series& series,
                         const std::map<CommitKey, int>& commits,
                         int hardware) {
  const proto::BenchmarkKey& key = series.key.benchmark;
  SeriesView result;
  result.of = &series;
  result.name = tracker::DisplayName(key);
  if (series.key.metric != "time") {
    absl::StrAppend(&result.name, " ", series.key.metric);
  }
  result.operator_name = key.operator_name();
  if (key.shape().dims_size() > 0 || key.shape().data_types_size() > 0) {
    result.shape = tuning::CanonicalText(key.shape());
  }
  result.selection = SelectionText(key);
  result.variant = VariantText(key);
  result.hardware = hardware;
  for (const tracker::Point& point : series.points) {
    result.commits.push_back(commits.at(KeyOf(point)));
    if (point.roofline_fraction && series.key.metric == "time") {
      result.roofline_fraction = *point.roofline_fraction;
    }
  }
  return result;
}

void ConvertJudgement(const tracker::Judgement& judgement, SeriesView& result) {
  for (const tracker::Change& change : judgement.changes) {
    // Epochs are told by themselves; a return is no news.
    if (change.kind == tracker::ChangeKind::kEpoch ||
        change.kind == tracker::ChangeKind::kReturn) {
      continue;
    }
    ChangeView point;
    point.point = change.change.index;
    point.relative_change = change.change.relative_change;
    point.relative_change_low = change.change.relative_change_low;
    point.relative_change_high = change.change.relative_change_high;
    point.confidence = change.change.confidence;
    point.provisional = change.kind == tracker::ChangeKind::kProvisional ||
                        change.kind == tracker::ChangeKind::kCreep;
    point.for_the_worse = change.worse_by > 0;
    point.state = tracker::ChangeText(change);
    if (change.kind == tracker::ChangeKind::kRenamed) {
      absl::StrAppend(&point.state, ": called ", change.cause, " before");
    } else if (!change.cause.empty()) {
      absl::StrAppend(&point.state, ": ", change.cause);
    }
    if (!change.opinion.reason.empty()) {
      absl::StrAppend(&point.state, ": ", change.opinion.reason);
    }
    result.changes.push_back(std::move(point));
  }
  result.verdict = judgement.standing;
  result.verdict_detail = judgement.why;
  result.minimum_detectable_effect = judgement.minimum_detectable_effect;
  if (judgement.decided_by >= 0) {
    const tracker::ChangePoint& change =
        judgement.changes[judgement.decided_by].change;
    result.ratio = 1 + change.relative_change;
    result.ratio_low = 1 + change.relative_change_low;
    result.ratio_high = 1 + change.relative_change_high;
  }
}

// (suite, hardware, branch) -> id of its newest run.
using NewestRuns =
    std::map<std::tuple<std::string, std::string, std::string>, std::string>;

NewestRuns FindNewestRuns(const std::vector<proto::Run>& runs) {
  std::map<NewestRuns::key_type, const proto::Run*> newest;
  for (const proto::Run& run : runs) {
    const proto::Run*& known =
        newest[{run.suite(), run.hardware().id(), run.commit().branch()}];
    if (known == nullptr || run.started_unix_ns() > known->started_unix_ns()) {
      known = &run;
    }
  }
  NewestRuns ids;
  for (const auto& [key, run] : newest) ids[key] = run->run_id();
  return ids;
}

void JudgeMissing(const tracker::Series& series,
                  const std::map<std::string, const proto::Run*>& runs_by_id,
                  const NewestRuns& newest, const std::string& renamed_to,
                  SeriesView& result) {
  if (series.points.empty()) return;
  for (const std::string& id : series.points.back().run_ids) {
    const auto run = runs_by_id.find(id);
    if (run == runs_by_id.end()) continue;
    const proto::Run& own = *run->second;
    const auto last =
        newest.find({own.suite(), own.hardware().id(), own.commit().branch()});
    if (last == newest.end() || last->second == id) return;
  }
  // Points are in the order of commits; a run of an old commit may be newest.
  for (const tracker::Point& point : series.points) {
    for (const std::string& id : point.run_ids) {
      for (const auto& [key, newest_id] : newest) {
        if (newest_id == id) return;
      }
    }
  }
  result.verdict = Verdict::kMissing;
  result.verdict_detail =
      absl::StrCat("the newest run of its suite lacks it",
                   renamed_to.empty() ? "" : "; it may be called ", renamed_to,
                   renamed_to.empty() ? "" : " now");
}

// What the convergence analysis says of each session, in one line: the first
// evidence and the first remedy.
void AddFindings(const std::vector<proto::Session>& sessions,
                 std::vector<TuningSession>& converted) {
  std::vector<tracker::SessionAnalysis> analyses;
  for (const proto::Session& session : sessions) {
    analyses.push_back(tracker::AnalyzeSession(session));
  }
  std::map<std::string, std::vector<std::string>> lines;
  for (const tracker::Finding& finding : tracker::FindFaults(analyses)) {
    std::string line = absl::StrReplaceAll(
        tracker::FindingKindName(finding.kind), {{"_", " "}});
    if (!finding.evidence.empty()) {
      absl::StrAppend(&line, ": ", finding.evidence.front());
    }
    if (!finding.remedies.empty()) {
      absl::StrAppend(&line, ". Remedy: ", finding.remedies.front().text);
    }
    for (const std::string& id : finding.session_ids) {
      lines[id].push_back(line);
    }
  }
  for (TuningSession& session : converted) {
    session.findings = std::move(lines[session.id]);
  }
}

}  // namespace

namespace {

// Trials whose values are all known and that no other beats.
std::vector<int> FrontOf(const TuningSession& session) {
  std::vector<int> known, front;
  std::vector<std::vector<double>> costs;
  for (size_t i = 0; i < session.trials.size(); ++i) {
    const Trial& trial = session.trials[i];
    if (trial.outcome != "OK" || trial.values.empty()) continue;
    if (!std::all_of(trial.values.begin(), trial.values.end(),
                     [](double value) { return std::isfinite(value); })) {
      continue;
    }
    known.push_back(static_cast<int>(i));
    costs.push_back(trial.values);
    for (size_t k = 0; k < session.objectives.size(); ++k) {
      if (!session.objectives[k].lower_is_better) costs.back()[k] *= -1;
    }
  }
  for (const int i : ParetoFront(costs)) front.push_back(known[i]);
  const bool rises = session.objectives[0].lower_is_better;
  std::stable_sort(front.begin(), front.end(), [&](int a, int b) {
    const double x = session.trials[a].values[0];
    const double y = session.trials[b].values[0];
    return rises ? x < y : x > y;
  });
  return front;
}

}  // namespace

TuningSession ConvertSession(const proto::Session& session, int hardware) {
  TuningSession result;
  result.id = session.session_id();
  result.operator_name = session.task().operator_name();
  result.task = tuning::TaskText(session.task());
  result.hardware = hardware;
  result.strategy = session.strategy();
  result.seed = session.seed();
  result.stop_reason = tuning::StopReasonName(session.stop_reason());
  result.started_unix_ns = session.started_unix_ns();
  result.elapsed_ns = session.elapsed_ns();
  result.valid_config_count = If<int64_t>(session.has_valid_config_count(),
                                          session.valid_config_count());
  result.commit = ConvertCommit(session.commit());
  result.warm_start_trial_count = session.warm_start_trial_count();

  const std::vector<proto::Objective> objectives =
      tuning::ObjectivesOf(session);
  const bool is_time = objectives.size() == 1 &&
                       objectives[0].metric() == tuning::kTimeMetric &&
                       objectives[0].unit() == tuning::TimeObjective().unit();
  for (const proto::Objective& objective : objectives) {
    if (is_time) break;
    Objective& converted = result.objectives.emplace_back();
    converted.metric = objective.metric();
    converted.unit = objective.unit();
    converted.lower_is_better =
        objective.direction() != proto::HIGHER_IS_BETTER;
    converted.limit = If<double>(objective.has_limit(), objective.limit());
  }

  // Levels in their natural order: numbers by size, then words by name.
  struct Order {
    bool operator()(const std::string& a, const std::string& b) const {
      int64_t x, y;
      const bool a_is_number = absl::SimpleAtoi(a, &x);
      const bool b_is_number = absl::SimpleAtoi(b, &y);
      if (a_is_number != b_is_number) return a_is_number;
      if (a_is_number && x != y) return x < y;
      return a < b;
    }
  };
  std::map<std::string, std::map<std::string, int, Order>> levels;
  for (const proto::Trial& trial : session.trials()) {
    for (const proto::KnobValue& value : trial.config().set()) {
      levels[value.knob()][tuning::CanonicalText(value)] = 0;
    }
  }
  std::map<std::string, int> knob_index;
  for (auto& [name, values] : levels) {
    Knob knob;
    knob.name = name;
    for (auto& [text, index] : values) {
      index = static_cast<int>(knob.levels.size());
      knob.levels.push_back(text);
    }
    knob_index[name] = static_cast<int>(result.knobs.size());
    result.knobs.push_back(std::move(knob));
  }

  for (const proto::Trial& trial : session.trials()) {
    Trial converted;
    converted.outcome = tuning::OutcomeName(trial.outcome());
    converted.time_ns = trial.has_time_ns() ? trial.time_ns() : kNaN;
    converted.detail = trial.detail();
    converted.elapsed_ns = trial.elapsed_ns();
    if (!is_time) {
      for (const auto& value : tuning::ValuesOf(objectives, trial)) {
        converted.values.push_back(value.value_or(kNaN));
      }
    }
    converted.levels.assign(result.knobs.size(), -1);
    for (const proto::KnobValue& value : trial.config().set()) {
      converted.levels[knob_index[value.knob()]] =
          levels[value.knob()][tuning::CanonicalText(value)];
    }
    result.trials.push_back(std::move(converted));
  }

  if (result.objectives.size() > 1) result.front = FrontOf(result);

  const std::string winner =
      session.has_winner() ? tuning::CanonicalText(session.winner()) : "";
  for (const proto::Finalist& finalist : session.finalists()) {
    Finalist converted;
    converted.config = tuning::CanonicalText(finalist.config());
    converted.first_time_ns = finalist.first_time_ns();
    converted.verified_time_ns =
        finalist.has_time_ns() ? finalist.time_ns() : kNaN;
    converted.outcome = tuning::OutcomeName(finalist.outcome());
    converted.is_default = finalist.is_default();
    converted.is_winner = session.has_winner() && converted.config == winner;
    result.finalists.push_back(std::move(converted));
  }
  result.schedule = ViewOfSchedule(session, result);
  return result;
}

std::vector<std::string> NewestOfWorkloads(
    const std::vector<proto::Run>& runs) {
  std::map<std::pair<std::string, std::string>, const proto::Run*> newest;
  for (const proto::Run& run : runs) {
    if (run.workload_layers().empty()) continue;
    const proto::Run*& known = newest[{run.workload(), run.hardware().id()}];
    if (known == nullptr ||
        std::make_pair(known->started_unix_ns(), known->run_id()) <
            std::make_pair(run.started_unix_ns(), run.run_id())) {
      known = &run;
    }
  }
  std::vector<std::string> ids;
  for (const auto& [key, run] : newest) ids.push_back(run->run_id());
  return ids;
}

ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options) {
  BuildOptions with_workloads = options;
  for (const std::string& id : NewestOfWorkloads(runs)) {
    for (const proto::Run& run : runs) {
      if (run.run_id() == id) with_workloads.workload_runs.push_back(run);
    }
  }
  return BuildReportData(runs, tracker::BuildSeries(runs), sessions,
                         with_workloads);
}

ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           std::vector<tracker::Series> series,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options) {
  ReportData data;
  data.tracked =
      std::make_shared<const std::vector<tracker::Series>>(std::move(series));
  const std::vector<tracker::Series>& all = *data.tracked;
  data.title = options.title;
  data.source = options.source;
  data.synthetic = options.synthetic;
  data.run_count = static_cast<int64_t>(runs.size());

  HardwareTable hardware;
  std::map<std::string, const proto::Run*> runs_by_id;
  for (const proto::Run& run : runs) {
    hardware.Add(run.hardware(), run.toolchain(),
                 run.has_ceilings() ? &run.ceilings() : nullptr,
                 run.started_unix_ns());
    runs_by_id[run.run_id()] = &run;
  }
  for (const proto::Session& session : sessions) {
    hardware.Add(session.hardware(), session.toolchain(), nullptr,
                 session.started_unix_ns());
  }
  data.hardware = hardware.Take();

  const std::map<CommitKey, int> commits = OrderCommits(all, data.commits);
  const NewestRuns newest = FindNewestRuns(runs);
  tracker::JudgeOptions judge;
  judge.min_effect = options.min_effect;
  judge.recent_points = options.recent_points;
  const std::vector<tracker::Judgement> judgements = tracker::JudgeAll(
      all, tracker::TriageBook(options.triage, options.now_unix_ns), judge);
  for (size_t i = 0; i < all.size(); ++i) {
    const tracker::Series& series = all[i];
    SeriesView converted = ConvertSeries(
        series, commits, hardware.IndexOf(series.key.hardware_id));
    ConvertJudgement(judgements[i], converted);
    JudgeMissing(series, runs_by_id, newest, judgements[i].renamed_to,
                 converted);
    data.series.push_back(std::move(converted));
  }

  for (const proto::Run& run : options.workload_runs) {
    for (tracker::WorkloadTime& time : tracker::WorkloadTimes(run)) {
      data.workloads.push_back({hardware.IndexOf(run.hardware().id()),
                                ConvertCommit(run.commit()),
                                run.started_unix_ns(), std::move(time)});
    }
  }

  std::vector<const proto::Session*> ordered;
  for (const proto::Session& session : sessions) ordered.push_back(&session);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const proto::Session* a, const proto::Session* b) {
                     if (a->started_unix_ns() != b->started_unix_ns()) {
                       return a->started_unix_ns() > b->started_unix_ns();
                     }
                     return a->session_id() < b->session_id();
                   });
  for (const proto::Session* session : ordered) {
    data.sessions.push_back(
        ConvertSession(*session, hardware.IndexOf(session->hardware().id())));
  }
  AddFindings(sessions, data.sessions);
  return data;
}

}  // namespace optrail::reports
