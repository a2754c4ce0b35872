#include "tuning/search/exhaustive.h"

namespace optrail::tuning {

std::vector<Levels> Exhaustive::Propose(int count) {
  std::vector<Levels> round;
  while (static_cast<int>(round.size()) < count && next_ < *domain().size()) {
    Levels levels = domain().At(next_++);
    if (!Seen(levels)) round.push_back(std::move(levels));
  }
  return round;
}

}  // namespace optrail::tuning
