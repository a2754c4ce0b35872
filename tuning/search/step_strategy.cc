#include "tuning/search/step_strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "tuning/search/source_knowledge.h"

namespace optrail::tuning {
namespace {

// Steps in a row that name nothing new before the base tries a random config.
constexpr int kMaxIdleSteps = 50;
// Neighbours of neighbours of ... that UnseenNear goes through.
constexpr int kMaxMoves = 8;
// Random changes per knob before all neighbours are listed.
constexpr int kChangesPerKnob = 4;
// Samples among which the farthest is taken. With very many a design would
// consist of the space's corners.
constexpr int kSpreadSamples = 20;
// Only so many earlier points are kept away from, so that a large design takes
// time linear in its size.
constexpr size_t kSpreadPoints = 64;
// Levels tried between a knob's goal and its own level, at even strides.
constexpr int kMaxStops = 32;

// In knobs: 1 for each that differs altogether.
double Distance(const Levels& a, const Levels& b,
                absl::Span<const KnobLevels> knobs) {
  double distance = 0;
  for (size_t k = 0; k < knobs.size(); ++k) {
    if (a[k] == b[k]) continue;
    distance += knobs[k].ordinal ? std::abs(static_cast<double>(a[k]) - b[k]) /
                                       (knobs[k].size() - 1)
                                 : 1;
  }
  return distance;
}

}  // namespace

std::vector<Levels> StepStrategy::Propose(int count) {
  if (!began_) {
    began_ = true;
    if (!options().sources.empty()) {
      const SourceKnowledge sources(domain(), options().sources);
      queue_.assign(sources.starts().begin(), sources.starts().end());
    }
  }
  std::vector<Levels> round;
  for (int idle = 0; idle < kMaxIdleSteps;) {
    while (!queue_.empty() && static_cast<int>(round.size()) < count) {
      if (!Seen(queue_.front())) round.push_back(queue_.front());
      queue_.pop_front();
    }
    // Answers of this step are still to come, from this round or an earlier
    // one.
    if (!round.empty() || !outstanding().empty()) return round;
    const std::vector<Levels> step = Step(count);
    queue_.assign(step.begin(), step.end());
    ++idle;
  }
  return round;
}

void StepStrategy::Spread(int count, std::vector<Levels>& design) {
  for (int i = 0; i < count; ++i) {
    const size_t first =
        design.size() > kSpreadPoints ? design.size() - kSpreadPoints : 0;
    Levels farthest;
    double most = 0;
    for (int s = 0; s < kSpreadSamples; ++s) {
      Levels levels = domain().Sample(rng());
      double nearest = std::numeric_limits<double>::infinity();
      for (size_t j = first; j < design.size(); ++j) {
        nearest =
            std::min(nearest, Distance(levels, design[j], domain().knobs()));
      }
      if (nearest > most) {
        most = nearest;
        farthest = std::move(levels);
      }
    }
    if (!farthest.empty()) design.push_back(std::move(farthest));
  }
}

std::vector<Levels> StepStrategy::SpreadSample(int count) {
  std::vector<Levels> design;
  Spread(count, design);
  return design;
}

std::vector<Levels> StepStrategy::StartDesign(int count) {
  std::vector<Levels> design = Finalists(count / 2);
  Spread(count - static_cast<int>(design.size()), design);
  return design;
}

std::vector<Levels> StepStrategy::Cheapest(int count,
                                           std::vector<Levels> configs) const {
  const auto cost = [this](const Levels& levels) {
    const double known = CostOf(levels);
    return std::isnan(known) ? std::numeric_limits<double>::infinity() : known;
  };
  std::stable_sort(
      configs.begin(), configs.end(),
      [&cost](const Levels& a, const Levels& b) { return cost(a) < cost(b); });
  if (static_cast<int>(configs.size()) > count) configs.resize(count);
  return configs;
}

Levels StepStrategy::MoveTowards(const Levels& from,
                                 const std::vector<double>& target) {
  const auto knobs = domain().knobs();
  std::vector<size_t> order(knobs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  rng().Shuffle(order);
  Levels levels = from;
  // Twice: a move that was invalid may become valid after another knob's.
  for (int pass = 0; pass < 2; ++pass) {
    for (const size_t k : order) {
      const int last = knobs[k].size() - 1;
      const int goal = static_cast<int>(
          std::lround(std::min<double>(last, std::max(0.0, target[k]))));
      const uint16_t own = levels[k];
      const int distance = std::abs(goal - own);
      const int stride = std::max(1, distance / kMaxStops);
      const int direction = goal > own ? 1 : -1;
      for (int left = distance; left > 0; left -= stride) {
        levels[k] = static_cast<uint16_t>(own + direction * left);
        if (domain().IsValid(levels)) break;
        levels[k] = own;
        if (!knobs[k].ordinal) break;
      }
    }
  }
  return levels;
}

Levels StepStrategy::RandomChange(Levels levels) {
  const auto knobs = domain().knobs();
  const size_t k = rng().UniformInt(knobs.size());
  const int size = knobs[k].size();
  if (!knobs[k].ordinal) {
    levels[k] = static_cast<uint16_t>(rng().UniformInt(size));
    return levels;
  }
  // Log-uniform, so that a knob of thousands of levels is searched finely as
  // well as widely.
  const int distance = static_cast<int>(std::pow(size, rng().UniformReal()));
  const int level = levels[k] + (rng()() & 1 ? distance : -distance);
  if (level >= 0 && level < size) levels[k] = static_cast<uint16_t>(level);
  return levels;
}

Levels StepStrategy::UnseenNear(const Levels& levels) {
  const int changes =
      kChangesPerKnob * static_cast<int>(domain().knobs().size());
  Levels at = levels;
  for (int move = 0; move < kMaxMoves; ++move) {
    for (int i = 0; i < changes; ++i) {
      Levels changed = RandomChange(at);
      if (domain().IsValid(changed) && !Seen(changed)) return changed;
    }
    std::vector<Levels> neighbours =
        domain().Neighbours(at, Neighbourhood::kHamming);
    if (neighbours.empty()) return {};
    rng().Shuffle(neighbours);
    for (Levels& neighbour : neighbours) {
      if (!Seen(neighbour)) return std::move(neighbour);
    }
    at = neighbours.front();
  }
  return {};
}

}  // namespace optrail::tuning
