#include "reports/roofline_view.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuning/proto/canonical.h"

namespace optrail::reports {
namespace {

// The counts of the newest point that has them.
struct Work {
  double flop = 0;
  double bytes = 0;
};

absl::optional<Work> WorkOf(const SeriesView& series) {
  for (auto it = series.points().rbegin(); it != series.points().rend(); ++it) {
    if (it->attributes->flop && it->attributes->moved_bytes)
      return Work{*it->attributes->flop, *it->attributes->moved_bytes};
  }
  return absl::nullopt;
}

// Why the series has no place; "" if it has one.
std::string WhyNotPlaced(const ReportData& data, const SeriesView& series) {
  const Hardware& hardware = data.hardware[series.hardware];
  if (series.imported) {
    return "results of other tools hold neither FLOP nor bytes";
  }
  if (!NewestValue(series)) return "no time was measured";
  const absl::optional<Work> work = WorkOf(series);
  if (!work) return "the records hold no FLOP or no bytes";
  if (!(work->flop > 0)) return "the operator moves data and counts no FLOP";
  if (!(work->bytes > 0)) return "the operator counts no bytes";
  const tuning::RooflineCeilings ceilings = tuning::CeilingsOfThreads(
      hardware.record, hardware.ceilings, series.of->key.benchmark.threads(),
      hardware.record.cores());
  if (ceilings.flop_per_s <= 0 || ceilings.levels.empty()) {
    return absl::StrCat("no run holds the ceilings of ", hardware.id, " for ",
                        series.of->key.benchmark.threads(),
                        " threads; next: optrail bench --record measures them");
  }
  return "";
}

// "matmul/cpu/m=512/f32/threads=1/hot on amd-epyc-zen4-2c": what a series and
// a diagnosis are of, whatever the config.
std::string SubjectOf(const proto::Task& task) {
  return absl::StrCat(tuning::TaskText(task), " on ", task.hardware_id());
}

std::string SubjectOf(const SeriesView& series) {
  const proto::BenchmarkKey& key = series.of->key.benchmark;
  proto::Task task;
  task.set_operator_name(key.operator_name());
  task.set_device_kind(key.device_kind());
  task.set_backend(key.backend());
  *task.mutable_shape() = key.shape();
  task.set_threads(key.threads());
  task.set_cache_mode(key.cache_mode());
  task.set_launch_mode(key.launch_mode());
  task.set_devices(key.devices());
  task.set_hardware_id(series.of->key.hardware_id);
  return SubjectOf(task);
}

double SlowestOf(const RooflinePoint& point, const ReportData& data) {
  const int series =
      point.default_series >= 0 ? point.default_series : point.tuned_series;
  return NewestValue(data.series[series]).value_or(0);
}

// Charts under construction.
class Charts {
 public:
  Charts(const ReportData& data, RooflineView& view)
      : data_(data), view_(view) {
    // The newest comes first.
    for (int i = 0; i < static_cast<int>(data.diagnoses.size()); ++i) {
      diagnoses_.emplace(SubjectOf(data.diagnoses[i].task()), i);
    }
  }

  void Add(int default_series, int tuned_series) {
    const SeriesView& series =
        data_.series[default_series >= 0 ? default_series : tuned_series];
    if (const std::string why = WhyNotPlaced(data_, series); !why.empty()) {
      const auto [at, is_new] =
          reasons_.emplace(why, static_cast<int>(view_.not_placed.size()));
      if (is_new) view_.not_placed.push_back({why, 0, series.name});
      view_.not_placed[at->second].series +=
          (default_series >= 0) + (tuned_series >= 0);
      return;
    }
    const Work work = *WorkOf(series);
    RooflinePoint point;
    point.default_series = default_series;
    point.tuned_series = tuned_series;
    point.flop_per_byte = work.flop / work.bytes;
    const auto rate = [&](int index) -> absl::optional<double> {
      if (index < 0) return absl::nullopt;
      const absl::optional<double> ns = NewestValue(data_.series[index]);
      if (!ns || !(*ns > 0)) return absl::nullopt;
      return work.flop / *ns * 1e9;
    };
    point.default_flop_per_s = rate(default_series);
    point.tuned_flop_per_s = rate(tuned_series);
    const auto diagnosis = diagnoses_.find(SubjectOf(series));
    if (diagnosis != diagnoses_.end()) point.diagnosis = diagnosis->second;
    RooflineChart& chart = ChartOf(series);
    point.limit = LimitOf(series, work, data_.hardware[series.hardware]);
    chart.points.push_back(std::move(point));
  }

 private:
  static std::string LimitOf(const SeriesView& series, const Work& work,
                             const Hardware& hardware) {
    const proto::BenchmarkKey& key = series.of->key.benchmark;
    const bool hot = key.cache_mode() == proto::HOT;
    const tuning::Roofline roofline = tuning::RooflineOf(
        work.flop, work.bytes, hot ? work.bytes : 0, hardware.record,
        hardware.ceilings, key.threads(), hardware.record.cores());
    if (roofline.time_ns <= 0) return "";
    return roofline.memory_bound ? roofline.level : "arithmetic";
  }

  RooflineChart& ChartOf(const SeriesView& series) {
    const int threads = series.of->key.benchmark.threads();
    const auto [at, is_new] =
        charts_.emplace(std::make_pair(series.hardware, threads),
                        static_cast<int>(view_.charts.size()));
    if (is_new) {
      const Hardware& hardware = data_.hardware[series.hardware];
      RooflineChart chart;
      chart.hardware = series.hardware;
      chart.threads = threads;
      chart.flop_of = hardware.ceilings.flop_of().empty()
                          ? "f32"
                          : hardware.ceilings.flop_of();
      chart.ceilings = tuning::CeilingsOfThreads(
          hardware.record, hardware.ceilings, threads, hardware.record.cores());
      view_.charts.push_back(std::move(chart));
    }
    return view_.charts[at->second];
  }

  const ReportData& data_;
  RooflineView& view_;
  std::map<std::pair<int, int>, int> charts_;  // by hardware and threads
  std::map<std::string, int> reasons_;
  std::map<std::string, int> diagnoses_;
};

}  // namespace

RooflineView ViewRoofline(const ReportData& data, const Overview& overview) {
  RooflineView view;
  Charts charts(data, view);
  std::vector<bool> paired(data.series.size());
  for (const TunedPair& pair : overview.pairs) {
    paired[pair.default_series] = paired[pair.tuned_series] = true;
    charts.Add(pair.default_series, pair.tuned_series);
  }
  for (int i = 0; i < static_cast<int>(data.series.size()); ++i) {
    const SeriesView& series = data.series[i];
    if (paired[i] || series.of->key.metric != "time") continue;
    const bool tuned = series.selection == "tuned";
    charts.Add(tuned ? -1 : i, tuned ? i : -1);
  }
  for (RooflineChart& chart : view.charts) {
    std::stable_sort(chart.points.begin(), chart.points.end(),
                     [&](const RooflinePoint& a, const RooflinePoint& b) {
                       return SlowestOf(a, data) > SlowestOf(b, data);
                     });
    const int beyond = static_cast<int>(chart.points.size()) - kMostPoints;
    if (beyond <= 0) continue;
    chart.left_out = beyond;
    chart.points.resize(kMostPoints);
  }
  std::sort(view.charts.begin(), view.charts.end(),
            [](const RooflineChart& a, const RooflineChart& b) {
              return std::make_tuple(b.points.size(), a.hardware, a.threads) <
                     std::make_tuple(a.points.size(), b.hardware, b.threads);
            });
  return view;
}

}  // namespace optrail::reports
