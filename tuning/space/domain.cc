#include "tuning/space/domain.h"

namespace optrail::tuning {

std::vector<Levels> Domain::Neighbours(absl::Span<const uint16_t> levels,
                                       Neighbourhood kind) const {
  std::vector<Levels> result;
  Levels candidate(levels.begin(), levels.end());
  for (size_t k = 0; k < knobs().size(); ++k) {
    const uint16_t own = levels[k];
    for (int level = 0; level < knobs()[k].size(); ++level) {
      if (level == own) continue;
      const bool adjacent = level + 1 == own || own + 1 == level;
      if (kind == Neighbourhood::kAdjacent && knobs()[k].ordinal && !adjacent)
        continue;
      candidate[k] = static_cast<uint16_t>(level);
      if (IsValid(candidate)) result.push_back(candidate);
    }
    candidate[k] = own;
  }
  return result;
}

}  // namespace optrail::tuning
