#ifndef OPTRAIL_TRACKER_IMPORT_COLLECTED_H_
#define OPTRAIL_TRACKER_IMPORT_COLLECTED_H_

// What a file says of each benchmark, while an importer reads it.
//
//   CollectedResults results;
//   Collected& sort = results.Of("BM_Sort");
//   sort.AddMetric("B/op", 16);
//   results.MoveTo(&run);
//
// Benchmarks keep the order in which they were first mentioned.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// Rates ("items_per_second", "MB/s", "GFLOPS") are better the higher; of other
// names nothing is known: a rule of the policy says which way is good.
proto::Direction DirectionOfName(absl::string_view metric);
// "B/s", "1/s" or "".
std::string UnitOfName(absl::string_view metric);

struct Collected {
  void AddMetric(const std::string& name, double value);
  void AddMetric(const std::string& name, const std::string& unit,
                 proto::Direction direction, double value);

  proto::Outcome outcome = proto::OK;
  std::string detail;
  std::vector<double> times_ns;  // per call, one for each sample
  int64_t calls_per_sample = 1;
  // Each time is of a fresh process, not a repetition within one.
  bool times_are_processes = false;
  std::map<std::string, proto::MetricSamples> metrics;
  // Where the file has no samples: its median or mean, and which it is.
  absl::optional<double> aggregate_ns;
  std::string aggregate;
  std::set<std::string> labels;
};

class CollectedResults {
 public:
  Collected& Of(const std::string& name);
  bool empty() const { return order_.empty(); }

  // Under which all of them were measured.
  proto::Conditions conditions;

  // Adds one result per benchmark; empty afterwards.
  void MoveTo(proto::Run* run);

 private:
  std::vector<std::string> order_;
  std::map<std::string, Collected> by_name_;
};

// Whether `count` calls of `time_ns` fit a stored time (280 years).
bool FitsStoredTime(double time_ns, double count);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_COLLECTED_H_
