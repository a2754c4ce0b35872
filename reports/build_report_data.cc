#include "reports/build_report_data.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "reports/session_view.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename T>
absl::optional<T> If(bool present, T value) {
  return present ? absl::optional<T>(value) : absl::nullopt;
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
    result.record = hardware;
    if (ceilings != nullptr) result.ceilings = *ceilings;
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

// Tells the commits of points apart. Outside of git each time is its own.
using CommitKey = std::tuple<std::string, bool, int64_t>;

CommitKey KeyOf(const tracker::PointRuns& runs) {
  return {runs.commit.id(), runs.commit.dirty(),
          runs.commit.id().empty() ? runs.first_started_unix_ns : 0};
}

// The places of commits in the report.
struct CommitPlaces {
  std::map<CommitKey, int> by_key;
  // Points share their runs: most need not be looked up by text.
  std::unordered_map<const tracker::PointRuns*, int> by_runs;
};

// All commits that points refer to, in the order of series: by position where
// all know it, else by time.
CommitPlaces OrderCommits(const std::vector<tracker::Series>& all,
                          std::vector<Commit>& commits) {
  struct Found {
    const tracker::Point* point;
    int64_t first_unix_ns;
  };
  std::map<CommitKey, Found> found;
  CommitPlaces places;
  bool positions_known = true;
  for (const tracker::Series& series : all) {
    for (const tracker::Point& point : series.points) {
      if (!places.by_runs.emplace(point.runs.get(), 0).second) continue;
      auto [it, inserted] = found.emplace(
          KeyOf(*point.runs), Found{&point, point.runs->first_started_unix_ns});
      it->second.first_unix_ns =
          std::min(it->second.first_unix_ns, point.runs->first_started_unix_ns);
      positions_known &= point.runs->commit.has_first_parent_position();
    }
  }
  std::vector<std::pair<CommitKey, Found>> ordered(found.begin(), found.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const auto& a, const auto& b) {
                     if (positions_known) {
                       const int64_t pa =
                           a.second.point->runs->commit.first_parent_position();
                       const int64_t pb =
                           b.second.point->runs->commit.first_parent_position();
                       if (pa != pb) return pa < pb;
                     }
                     return a.second.first_unix_ns < b.second.first_unix_ns;
                   });
  for (const auto& [key, each] : ordered) {
    places.by_key[key] = static_cast<int>(commits.size());
    commits.push_back(ConvertCommit(each.point->runs->commit));
    if (commits.back().unix_ns == 0) {
      commits.back().unix_ns = each.first_unix_ns;
    }
  }
  for (auto& [runs, place] : places.by_runs) {
    place = places.by_key.at(KeyOf(*runs));
  }
  return places;
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

// "BM_Sort" of "BM_Sort/1024", "io/test_a.py" of "io/test_a.py::test_b[1]".
std::string FamilyOf(const std::string& imported) {
  const size_t file = imported.find(".py::");
  const size_t end =
      file != std::string::npos ? file + 3 : imported.find_first_of("/[(<");
  return end == 0 ? imported : imported.substr(0, end);
}

SeriesView ConvertSeries(const tracker::Series& series,
                         const CommitPlaces& commits, int hardware) {
  const proto::BenchmarkKey& key = series.key.benchmark;
  SeriesView result;
  result.of = &series;
  result.name = tracker::DisplayName(key);
  if (series.key.metric != "time") {
    absl::StrAppend(&result.name, " ", series.key.metric);
  }
  result.operator_name = key.operator_name();
  result.imported = key.selection() == proto::CONFIG_SELECTION_UNSPECIFIED &&
                    key.shape().dims_size() == 0;
  result.family =
      result.imported ? FamilyOf(key.operator_name()) : key.operator_name();
  if (key.shape().dims_size() > 0 || key.shape().data_types_size() > 0) {
    result.shape = tuning::CanonicalText(key.shape());
  }
  result.selection = tracker::SelectionName(key);
  result.variant = VariantText(key);
  result.hardware = hardware;
  for (const tracker::Point& point : series.points) {
    result.commits.push_back(commits.by_runs.at(point.runs.get()));
    if (point.roofline_fraction && series.key.metric == "time") {
      result.roofline_fraction = *point.roofline_fraction;
    }
  }
  return result;
}

bool IsAnswered(const tracker::Change& change) {
  tracker::ChangeCounts one;
  if (IsListed(change, tracker::kLeastEffect)) one.Add(change);
  return one.muted + one.answered > 0;
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
    point.provisional =
        change.provisional ||
        (change.kind == tracker::ChangeKind::kCreep && !change.stands_apart);
    point.for_the_worse = change.worse_by > 0;
    point.answered = IsAnswered(change);
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
  result.levels = judgement.levels;
  result.known_points = judgement.known_points;
  result.needed_points = judgement.needed_points;
  result.minimum_detectable_effect = judgement.minimum_detectable_effect;
  if (judgement.decided_by >= 0) {
    const tracker::ChangePoint& change =
        judgement.changes[judgement.decided_by].change;
    result.ratio = 1 + change.relative_change;
    result.ratio_low = 1 + change.relative_change_low;
    result.ratio_high = 1 + change.relative_change_high;
    result.decided_by = judgement.changes[judgement.decided_by];
  }
}

// At which commits the suites of a series ran.
class SuiteCommits {
 public:
  SuiteCommits(const std::vector<proto::Run>& runs,
               const std::map<CommitKey, int>& commits) {
    std::map<std::tuple<std::string, std::string, std::string>, int> suites;
    for (const proto::Run& run : runs) {
      const auto commit =
          commits.find({run.commit().id(), run.commit().dirty(),
                        run.commit().id().empty() ? run.started_unix_ns() : 0});
      if (commit == commits.end()) continue;
      const auto [suite, is_new] =
          suites.emplace(std::make_tuple(run.suite(), run.hardware().id(),
                                         run.commit().branch()),
                         static_cast<int>(commits_.size()));
      if (is_new) commits_.emplace_back();
      commits_[suite->second].insert(commit->second);
      suite_of_run_[run.run_id()] = suite->second;
    }
  }

  // Points of `series` before which one of its suites ran without it; `at` has
  // their commits.
  std::vector<int> GapsOf(const tracker::Series& series,
                          const std::vector<int>& at) const {
    std::set<int> suites;
    for (const tracker::Point& point : series.points) {
      for (const std::string& id : point.runs->ids) {
        const auto suite = suite_of_run_.find(id);
        if (suite != suite_of_run_.end()) suites.insert(suite->second);
      }
    }
    std::vector<int> gaps;
    for (size_t i = 1; i < at.size(); ++i) {
      for (const int suite : suites) {
        const auto next = commits_[suite].upper_bound(at[i - 1]);
        if (next == commits_[suite].end() || *next >= at[i]) continue;
        gaps.push_back(static_cast<int>(i));
        break;
      }
    }
    return gaps;
  }

 private:
  std::vector<std::set<int>> commits_;  // by suite, hardware and branch
  absl::flat_hash_map<std::string, int> suite_of_run_;
};

// Only the worst alerts are explained: each reads two runs.
void ExplainAlerts(
    const std::function<std::vector<std::string>(const tracker::Change&)>&
        explain,
    std::vector<SeriesView>& series) {
  constexpr size_t kMostExplained = 50;
  std::vector<SeriesView*> alerts;
  for (SeriesView& each : series) {
    if (each.decided_by && each.decided_by->IsAlert()) alerts.push_back(&each);
  }
  absl::c_stable_sort(alerts, [](const SeriesView* a, const SeriesView* b) {
    return a->decided_by->worse_by > b->decided_by->worse_by;
  });
  if (alerts.size() > kMostExplained) alerts.resize(kMostExplained);
  for (SeriesView* const each : alerts) {
    each->changed = explain(*each->decided_by);
  }
}

}  // namespace

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
  data.history_flag = options.history_flag;
  data.synthetic = absl::c_any_of(runs, [](const proto::Run& run) {
    return run.source() == kMadeUpSource;
  });
  data.run_count = static_cast<int64_t>(runs.size());

  HardwareTable hardware;
  for (const proto::Run& run : runs) {
    hardware.Add(run.hardware(), run.toolchain(),
                 run.has_ceilings() ? &run.ceilings() : nullptr,
                 run.started_unix_ns());
  }
  for (const proto::Session& session : sessions) {
    hardware.Add(session.hardware(), session.toolchain(), nullptr,
                 session.started_unix_ns());
  }
  data.hardware = hardware.Take();

  const CommitPlaces commits = OrderCommits(all, data.commits);
  tracker::JudgeOptions judge;
  judge.recent_points = options.recent_points;
  judge.runs = &runs;
  judge.folds = options.folds;
  const std::vector<tracker::Judgement> judgements = tracker::JudgeAll(
      all, tracker::TriageBook(options.triage, options.now_unix_ns), judge);
  const std::vector<bool> main = tracker::MainSeries(all);
  const SuiteCommits suites(runs, commits.by_key);
  for (size_t i = 0; i < all.size(); ++i) {
    const tracker::Series& series = all[i];
    SeriesView converted = ConvertSeries(
        series, commits, hardware.IndexOf(series.key.hardware_id));
    ConvertJudgement(judgements[i], converted);
    converted.gaps = suites.GapsOf(series, converted.commits);
    converted.main = main[i];
    for (const tracker::Change& change : judgements[i].changes) {
      if (main[i] && IsListed(change, tracker::kLeastEffect)) {
        data.changes.Add(change);
      }
    }
    data.series.push_back(std::move(converted));
  }

  if (options.explain != nullptr) ExplainAlerts(options.explain, data.series);

  for (const proto::Run& run : options.workload_runs) {
    for (tracker::WorkloadTime& time : tracker::WorkloadTimes(run)) {
      data.workloads.push_back({hardware.IndexOf(run.hardware().id()),
                                ConvertCommit(run.commit()),
                                run.started_unix_ns(), std::move(time)});
    }
  }

  data.diagnoses = options.diagnoses;
  absl::c_stable_sort(data.diagnoses, [](const auto& a, const auto& b) {
    return a.created_unix_ns() > b.created_unix_ns();
  });

  data.sessions = ConvertSessions(sessions);
  for (TuningSession& session : data.sessions) {
    session.hardware = hardware.IndexOf(session.of.header.hardware().id());
  }
  return data;
}

}  // namespace optrail::reports
