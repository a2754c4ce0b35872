#ifndef OPTRAIL_TRACKER_IMPORT_COLLECTED_H_
#define OPTRAIL_TRACKER_IMPORT_COLLECTED_H_

// What a file says of each benchmark, while an importer reads it.
//
//   CollectedResults results;
//   Collected& sort = results.Of("BM_Sort");
//   sort.AddMetric("B/op", 16);
//   results.Of("BM_Merge", 2).times_ns = {12.5, 12.75};  // of its third
//   process results.MoveTo(&run);
//
// Benchmarks keep the order in which they were first mentioned. Times are in
// nanoseconds per call.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// Rates ("items_per_second", "MB/s", "GFLOPS") are better the higher; of other
// names nothing is known: a rule of the policy says which way is good.
proto::Direction DirectionOfName(absl::string_view metric);
// "B/s", "1/s" or "".
std::string UnitOfName(absl::string_view metric);
// The nanoseconds of "ns", "us", "ms" or "s"; 0 for any other unit.
double NsOfUnit(absl::string_view unit);

// One process of a benchmark.
struct Collected {
  void AddMetric(const std::string& name, double value);
  void AddMetric(const std::string& name, const std::string& unit,
                 proto::Direction direction, double value);

  proto::Outcome outcome = proto::OK;
  std::string detail;
  std::vector<double> times_ns;  // one for each sample
  int64_t calls_per_sample = 0;  // 0: the file does not say
  std::map<std::string, proto::MetricSamples> metrics;
  // Where the file has no samples: its median or mean, and which it is.
  absl::optional<double> aggregate_ns;
  std::string aggregate;
  std::set<std::string> labels;
};

class CollectedResults {
 public:
  // Creates it if it is new.
  Collected& Of(const std::string& name, int64_t process = 0);
  bool Has(const std::string& name) const { return by_name_.count(name) > 0; }
  // Its first process; Has(name).
  Collected& First(const std::string& name);

  // The conditions under which all of them were measured.
  proto::Conditions conditions;

  // Skips each process whose times are mostly 0, because of `detail`.
  void SkipTimesOfZero(absl::string_view detail);

  // InvalidArgument for the first time that is not more than 0, which nothing
  // takes: `path` and the benchmark are named.
  absl::Status CheckTimes(absl::string_view path) const;

  // Adds one result per benchmark, which has failed if one of its processes
  // has; empty afterwards.
  void MoveTo(proto::Run* run);

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::map<int64_t, Collected>> by_name_;
};

// Sets what a file says of the machine: model "" and nullopt where it says
// nothing. The id becomes "imported-MODEL-8c".
void SetMachine(const std::string& model, absl::optional<int64_t> cores,
                proto::Run& run);

// Whether `count` calls of `time_ns` fit a stored time (280 years).
bool FitsStoredTime(double time_ns, double count);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_COLLECTED_H_
