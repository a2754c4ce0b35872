#ifndef OPTRAIL_TRACKER_CONVERGENCE_SPACE_EVIDENCE_H_
#define OPTRAIL_TRACKER_CONVERGENCE_SPACE_EVIDENCE_H_

// What a session's own space says about it: knobs whose best value sits at the
// end of its range, how much of the space was looked at, whether the prior
// ranked configs as they turned out.
//
//   const std::unique_ptr<tuning::BoundSpace> space = SpaceOf(analysis);
//   if (space != nullptr) const double coverage = *Coverage(analysis, *space);

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "tracker/convergence/convergence.h"
#include "tuning/space/space.h"

namespace optrail::tracker {

// The space as it was, bound to the session's shape and hardware; null if the
// session holds none, or one that this version can't read.
std::unique_ptr<tuning::BoundSpace> SpaceOf(const SessionAnalysis& session);

// A knob whose best value is the first or last of a range that the author of
// the space chose (not one that ends by nature, such as all divisors).
struct KnobEdge {
  std::string knob;
  int64_t value = 0;
  bool at_maximum = false;
  std::string range;  // "8..256"
};

// Edges that the best config and most of the five best readings share.
std::vector<KnobEdge> EdgesOf(const SessionAnalysis& session,
                              const tuning::BoundSpace& space);

// Levels of knobs that the trials visited, over the number that as many uniform
// draws would have visited: about 1 for a search that looks around, small for
// one that stayed where it began. nullopt without trials of this space.
absl::optional<double> Coverage(const SessionAnalysis& session,
                                const tuning::BoundSpace& space);

struct PriorEvidence {
  // Spearman's rank correlation of prior and speed over readings: 1 if the
  // prior ranked them as they turned out.
  double correlation = 0;
  int readings = 0;
  // The share of the space that the prior ranks below the best config.
  double best_percentile = 0;
  // Integer knobs that the prior pushes one way and the readings the other,
  // strongest first.
  std::vector<std::string> contradicting_knobs;
};

// nullopt if the space has no prior or there are fewer than `min_readings`.
absl::optional<PriorEvidence> JudgePrior(const SessionAnalysis& session,
                                         const tuning::BoundSpace& space,
                                         int min_readings);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_CONVERGENCE_SPACE_EVIDENCE_H_
