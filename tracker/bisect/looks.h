#ifndef OPTRAIL_TRACKER_BISECT_LOOKS_H_
#define OPTRAIL_TRACKER_BISECT_LOOKS_H_

// Looks is where a bisection measures: on this machine (local_looks.h), or on
// several at once (fleet/fleet_looks.h). Both sides of a comparison always run
// on one machine.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto slower, looks.CompareEnds(good, bad));
//   if (!slower.has_value()) return 3;
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Look> seen,
//                            looks.LookAt({{commit, /*seed=*/1}}, *slower));
//
// A look passes between machines as a line of JSON (ToJson). One thread at a
// time.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tracker/bisect/noisy_bisection.h"

namespace optrail::tracker {

// The benchmark that is most surely slower at the bad end.
struct SlowerBenchmark {
  std::string name, metric;
  double change = 0;         // of the metric's value there, .08 for 8% more
  BisectMeasurement effect;  // the same for the search, positive for slower
  int rounds = 0;            // that this took
};

struct LookRequest {
  std::string commit;
  uint64_t seed = 1;  // of the order in which the two sides run
  std::string title;  // for people
};

struct Look {
  enum class Kind {
    kMeasured,
    kDoesNotBuild,
    kNotMeasured,  // its program fails, or has no value to compare
    kEqualToGood,  // byte for byte
    kEqualToBad,
  };
  Kind kind = Kind::kMeasured;
  double worse_by = 0;        // kMeasured: .08 for 8% worse than the good end
  double standard_error = 0;  // of its logarithm, for the search
  std::string host;           // "": this machine
};

class Looks {
 public:
  virtual ~Looks() = default;

  // How many commits are measured at the same time.
  virtual int at_once() const { return 1; }
  // nullopt: nothing is slower, and people were told. FailedPrecondition: an
  // end does not build or run.
  virtual absl::StatusOr<absl::optional<SlowerBenchmark>> CompareEnds(
      const std::string& good, const std::string& bad) = 0;
  // Looks at these commits, at most at_once(), after CompareEnds(). In their
  // order.
  virtual absl::StatusOr<std::vector<Look>> LookAt(
      const std::vector<LookRequest>& requests, const SlowerBenchmark& at) = 0;
  // Builds so far, those of the ends included.
  virtual int builds() const = 0;
};

// A line without line break. Reading it back: InvalidArgument for anything
// else.
std::string ToJson(const Look& look);
std::string ToJson(const absl::optional<SlowerBenchmark>& slower);
absl::StatusOr<Look> ParseLook(absl::string_view line);
absl::StatusOr<absl::optional<SlowerBenchmark>> ParseSlower(
    absl::string_view line);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_BISECT_LOOKS_H_
