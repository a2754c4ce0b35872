#include "reports/build_report_data.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/process/parallel_for.h"
#include "reports/session_view.h"
#include "tracker/history/history.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

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
  // Alerts of the same runs come together: a run is read once for all of them.
  absl::c_stable_sort(alerts, [](const SeriesView* a, const SeriesView* b) {
    const auto place = [](const SeriesView* view) {
      return std::make_tuple(
          view->hardware,
          view->decided_by->after().runs->first_started_unix_ns);
    };
    return place(a) < place(b);
  });
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
  std::vector<const proto::Run*> ordered;
  for (const proto::Run& run : runs) ordered.push_back(&run);
  tracker::SortInSeriesOrder(ordered);
  const RunTables tables(ordered);
  const tracker::TriageBook book(options.triage, options.now_unix_ns);
  tracker::JudgeOptions judge;
  judge.recent_points = options.recent_points;
  judge.runs = &runs;
  judge.folds = options.folds;
  JudgedSeries judged;
  judged.all =
      std::make_shared<const std::vector<tracker::Series>>(std::move(series));
  judged.judgements = tracker::JudgeAll(*judged.all, book, judge);
  return BuildReportData(runs, tables, std::move(judged), sessions, options);
}

ReportData BuildReportData(const std::vector<proto::Run>& runs,
                           const RunTables& tables, JudgedSeries judged,
                           const std::vector<proto::Session>& sessions,
                           const BuildOptions& options) {
  ReportData data;
  data.tracked = judged.all;
  const std::vector<tracker::Series>& all = *data.tracked;
  data.title = options.title;
  data.source = options.source;
  data.history_flag = options.history_flag;
  data.synthetic = absl::c_any_of(runs, [](const proto::Run& run) {
    return run.source() == kMadeUpSource;
  });
  data.run_count = static_cast<int64_t>(runs.size());
  data.commits = tables.commits();

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

  const std::vector<bool> main = tracker::MainSeries(all);
  data.series.resize(all.size());
  ParallelFor(static_cast<int64_t>(all.size()), /*threads=*/0, [&](int64_t i) {
    SeriesView view =
        ViewOf(all[i], tables, hardware.IndexOf(all[i].key.hardware_id));
    AddJudgement(judged.judgements[i], view);
    view.main = main[i];
    const auto digested = judged.digested.find(i);
    if (digested != judged.digested.end()) {
      view.gaps = std::move(digested->second.gaps);
      view.point_count = digested->second.point_count;
      view.process_count = digested->second.process_count;
      view.drawn = std::move(digested->second.drawn);
    }
    data.series[i] = std::move(view);
  });
  for (size_t i = 0; i < all.size(); ++i) {
    for (const tracker::Change& change : judged.judgements[i].changes) {
      if (main[i] && IsListed(change, tracker::kLeastEffect)) {
        data.changes.Add(change);
      }
    }
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
