#ifndef OPTRAIL_TRACKER_SERIES_SERIES_H_
#define OPTRAIL_TRACKER_SERIES_SERIES_H_

// Series assembles what runs measured into what is compared over time: one
// series per benchmark, metric, unit, version, hardware and branch.
//
//   OPTRAIL_ASSIGN_OR_RETURN(LoadedRuns loaded, history.LoadRuns());
//   for (const Series& series : BuildSeries(loaded.runs)) {
//     for (const Point& point : series.points) Plot(point.value);
//   }
//
// A point is one commit: the processes of all its runs together. Points are in
// first-parent order; where that is unknown, in the order of record time.
//
// It is no judgement: see compare.h, gate.h and detect/.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/proto/run.pb.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/measurement_settings.pb.h"
#include "tuning/proto/trial.pb.h"

namespace optrail::tracker {

// The reading of one metric by one process: the median of its clean samples.
struct ProcessReading {
  double value = 0;
  // For time with a few samples or more: the fastest one, disturbed or not,
  // without its waiting for a core, which neighbours that come and go within a
  // process hardly move. Else `value`.
  double fastest = 0;
  // A robust spread of its samples around it: 1.4826 MAD / median.
  double relative_sample_spread = 0;
  int samples = 0;
  bool aggregate_only = false;
  // In a point, the run that the process was of: an index into PointRuns::ids.
  uint16_t run = 0;
};

// The reading of `metric` in a measurement ("time": ns per call); nullopt if it
// has none: no clean sample, or the metric was not measured.
absl::optional<ProcessReading> ReadingOf(const proto::Measurement& measurement,
                                         absl::string_view metric);

struct MetricInfo {
  std::string metric;
  std::string unit;
  proto::Direction direction = proto::LOWER_IS_BETTER;
};

// The metrics of a result, "time" first, then by name.
std::vector<MetricInfo> MetricsOf(const proto::BenchmarkResult& result);

// The time of a calibration loop beside the processes (arithmetic, a cache
// level, memory): the machine by itself.
struct LoopReading {
  std::string loop;
  double log_ns = 0;  // mean of the logarithms
  int processes = 0;
};

// The facts of a result beside what was measured. Points share what they have
// in common: a history has millions.
struct ResultAttributes {
  std::string config;
  proto::ConfigSource config_source = proto::CONFIG_SOURCE_UNSPECIFIED;
  std::string kernel_id;
  std::string tuning_session_id;
  std::string resolved_backend;  // of backend "best": which one it was
  std::string library;
  absl::optional<double> flop;
  absl::optional<double> moved_bytes;
};

// A result of one run for one series, without the samples behind it: an index
// keeps this (tracker/history/index/history_index.h).
struct Observation {
  MetricInfo metric;
  std::vector<ProcessReading> processes;
  std::vector<LoopReading> calibrations;  // by name
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  std::string detail;
  std::shared_ptr<const ResultAttributes> attributes;  // never null
  absl::optional<double> roofline_fraction;
};

// One for each of MetricsOf(result), in its order.
std::vector<Observation> Observe(const proto::BenchmarkResult& result);

// The runs of a point, the same for most series that have it.
struct PointRuns {
  proto::Commit commit;
  std::vector<std::string> ids;
  int64_t first_started_unix_ns = 0;
};

struct Point {
  std::shared_ptr<const PointRuns> runs;  // never null
  // One per process that measured; empty if none did (see outcome).
  std::vector<ProcessReading> processes;
  // Beside them, by name; empty where none were recorded.
  std::vector<LoopReading> calibrations;
  // The worst outcome among the runs: OK only if all are.
  proto::Outcome outcome = proto::OUTCOME_UNSPECIFIED;
  std::string detail;

  // Median of the process medians and their smallest and largest; absent
  // without processes.
  absl::optional<double> value;
  double low = 0;
  double high = 0;

  // Those of the last run of the point; never null.
  std::shared_ptr<const ResultAttributes> attributes;
  absl::optional<double> roofline_fraction;

  // Index into Series::epochs.
  int epoch = 0;
  // Index into Series::settings, of the last run that tells; kUnknownSettings
  // if none does.
  int settings = kUnknownSettings;
  static constexpr int kUnknownSettings = -1;
};

// A stretch of a series over which hardware description and toolchain stayed
// the same. Settings of the measurement that the series has not seen before
// open an epoch, too; going back to known ones does not, so that two suites
// that share benchmarks and differ in settings don't cut the series to pieces.
// And where no tuned config could be used, a series of tuned ones has points of
// the default config: an epoch of their own, lest they look like a regression.
struct Epoch {
  proto::Toolchain toolchain;
  // The difference from the epoch before: "compiler: g++ 12.2.0 -> g++ 13.1.0",
  // "measured differently: min sample 100 us -> 500 us"; empty for the first.
  std::string change;
  // It begins where a tuned config is used after the default ran in its place,
  // or the other way around.
  bool is_of_other_config = false;
};

struct Series {
  SeriesKey key;
  std::string text;  // CanonicalText(key)
  proto::Direction direction = proto::LOWER_IS_BETTER;
  std::vector<Point> points;
  std::vector<Epoch> epochs;  // at least one if there are points
  // How its points were measured, each once, as they came up.
  std::vector<proto::MeasurementSettings> settings;
  // When each point of the series began, if `points` are only those that a
  // report shows; null if all are there.
  std::shared_ptr<const std::vector<int64_t>> times;
};

// "measured differently: min sample 100 us -> 500 us", or "" if two points of
// `series` were measured alike, or one of them does not tell.
std::string DescribeSettingsChange(const Series& series, const Point& before,
                                   const Point& after);
// The same of any two settings.
std::string MeasuredDifferently(const proto::MeasurementSettings& before,
                                const proto::MeasurementSettings& after);

// The series of `runs`, sorted by text. `runs` need not be sorted; runs whose
// clock ran backwards are ordered by commit all the same.
std::vector<Series> BuildSeries(const std::vector<proto::Run>& runs);
std::vector<Series> BuildSeries(const std::vector<const proto::Run*>& runs);

// The runs of a history in the order of series, and what is made of each of
// them once for all its series.
class OrderedRuns {
 public:
  // They need not be sorted, and must outlive this.
  explicit OrderedRuns(std::vector<const proto::Run*> runs);

  int size() const { return static_cast<int>(runs_.size()); }
  const proto::Run& run(int place) const { return *runs_[place]; }
  // Small numbers, equal for runs that are one point.
  int point(int place) const { return points_[place]; }
  // Equal for runs that were measured alike; Point::kUnknownSettings.
  int settings(int place) const { return settings_[place]; }
  // Equal for runs of one toolchain.
  int toolchain(int place) const { return toolchains_[place]; }
  // A point that has that run alone shares this.
  const std::shared_ptr<const PointRuns>& alone(int place) const {
    return alone_[place];
  }

 private:
  std::vector<const proto::Run*> runs_;
  std::vector<int> points_, settings_, toolchains_;
  std::vector<std::shared_ptr<const PointRuns>> alone_;
};

// Assembles one series from what each run says of it: for an index, which has
// no results. BuildSeries gives the same series.
class SeriesBuilder {
 public:
  // `text` is CanonicalText(key). Add will be called about `observations`
  // times.
  SeriesBuilder(SeriesKey key, std::string text, size_t observations = 0);

  // In the order of places, and of one run in the order of its results; of the
  // same `runs` each time.
  void Add(const OrderedRuns& runs, int place, const Observation& observation);

  // Call once, while the runs live.
  Series Take();

 private:
  // From numbers of OrderedRuns to those of the series.
  class Numbers {
   public:
    static constexpr int kNone = -1;
    int Find(int known) const;
    void Set(int known, int own);

   private:
    std::vector<int> own_;
  };

  Point& PointOf(const OrderedRuns& runs, int place);

  Series series_;
  // By point.
  struct PointToolchain {
    int number;
    const proto::Toolchain* of;
  };
  std::vector<PointToolchain> toolchains_;
  Numbers points_, settings_;
};

// Describes the difference of two toolchains, "" if there is none.
std::string DescribeToolchainChange(const proto::Toolchain& before,
                                    const proto::Toolchain& after);

// The share of the roofline, for people: "97%"; or "no bound" where something
// was faster, which kNoBoundText explains.
std::string RooflineText(double fraction);
// Returns whether the roofline bounds it: readings and ceilings both have
// noise.
bool IsBoundByRoofline(double fraction);
inline constexpr char kNoBoundText[] =
    "no bound: faster than the roofline, since the config does less work than "
    "the operator counts (Winograd), or its data lay nearer than was assumed";

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SERIES_H_
