#ifndef OPTRAIL_OPS_CORE_TESTING_CONFIG_COVERAGE_H_
#define OPTRAIL_OPS_CORE_TESTING_CONFIG_COVERAGE_H_

// Which configs of a space a test should run: few, and yet every value of every
// knob, every two values of two knobs together and every instantiation of the
// compile-time knobs at least once, as far as constraints allow. Most faults of
// a kernel show for one value or for two that meet (Kuhn, Wallace and Gallo,
// "Software fault interactions and implications for software testing", 2004).
//
//   ConfigCoverage coverage;
//   for (const proto::Config& config : coverage.Choose(*space, options, rng)) {
//     Run(config);
//   }
//
// One object goes from shape to shape: what was covered with one shape need not
// be repeated with the next.

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/random.h"
#include "tuning/proto/config.pb.h"
#include "tuning/space/space.h"

namespace optrail::ops {

class ConfigCoverage {
 public:
  struct Options {
    // Random valid configs to choose from.
    int draws = 600;
    int most = 40;
  };

  // The default config first, then those that cover most that is new.
  std::vector<proto::Config> Choose(const tuning::BoundSpace& space,
                                    const Options& options, Rng& rng);

  // Pairs of values and instantiations that some chosen config has.
  int covered() const;

 private:
  absl::flat_hash_map<std::string, int> items_;
  std::vector<bool> covered_;  // by item
};

// Returns what a config covers: "a=1&b=x" for every pair of knobs, sorted, and
// "instantiation a=1,c=2" for the knobs in `compile_time` together.
std::set<std::string> CoveredBy(const proto::Config& config,
                                const std::set<std::string>& compile_time);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_TESTING_CONFIG_COVERAGE_H_
