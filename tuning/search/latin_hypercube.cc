#include "tuning/search/latin_hypercube.h"

#include <algorithm>

namespace optrail::tuning {
namespace {

constexpr int kDefaultPoints = 64;
// A design takes time quadratic in its points.
constexpr int kMaxPoints = 1024;

}  // namespace

std::vector<Levels> LatinHypercube::Step(int count) {
  const int points = options().budget > 0 ? options().budget : kDefaultPoints;
  return SpreadSample(std::min(points, kMaxPoints));
}

}  // namespace optrail::tuning
