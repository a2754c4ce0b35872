#ifndef OPTRAIL_TRACKER_EXPLAIN_EVALUATION_PLANTED_REGRESSIONS_H_
#define OPTRAIL_TRACKER_EXPLAIN_EVALUATION_PLANTED_REGRESSIONS_H_

// Made-up regressions with one known cause each, among noise and differences
// that are not the cause, to score what explain.h names first.
//
//   for (const std::string& cause : PlantedCauses()) {
//     const PlantedRegression planted = PlantRegression(cause, /*seed=*/1);
//     right += IsExplained(planted);
//   }

#include <cstdint>
#include <string>
#include <vector>

#include "tracker/explain/explain.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct PlantedRegression {
  std::string cause;
  std::string expected;  // what the right line begins with
  double time_ratio = 1;
  proto::Run before, after;  // with one result each
  std::vector<proto::Fact> facts_before, facts_after;
};

std::vector<std::string> PlantedCauses();

PlantedRegression PlantRegression(const std::string& cause, uint64_t seed);

std::vector<std::string> ExplanationOf(const PlantedRegression& planted);

// True if the first line is the right one.
bool IsExplained(const PlantedRegression& planted);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_EXPLAIN_EVALUATION_PLANTED_REGRESSIONS_H_
