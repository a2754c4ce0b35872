#include "tuning/search/random_search.h"

namespace optrail::tuning {

std::vector<Levels> RandomSearch::Propose(int count) {
  std::vector<Levels> round;
  for (int i = 0; i < count; ++i) {
    Levels levels = RandomUnseen();
    if (levels.empty()) break;
    round.push_back(std::move(levels));  // a repeat within the round is dropped
  }
  return round;
}

}  // namespace optrail::tuning
