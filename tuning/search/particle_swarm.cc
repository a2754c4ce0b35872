#include "tuning/search/particle_swarm.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace optrail::tuning {
namespace {

constexpr int kParticles = 12;
constexpr double kInertia = 0.7298;
constexpr double kPull = 1.4962;
// Steps without a better place after which a particle starts anew.
constexpr int kPatience = 5;

}  // namespace

ParticleSwarm::Particle ParticleSwarm::Place(const Levels& levels) {
  Particle particle;
  for (size_t k = 0; k < levels.size(); ++k) {
    const double width = domain().knobs()[k].size();
    particle.position.push_back(levels[k]);
    particle.velocity.push_back((rng().UniformReal() - 0.5) * width / 2);
  }
  particle.best = levels;
  particle.at = levels;
  return particle;
}

std::vector<Levels> ParticleSwarm::Step(int count) {
  std::vector<Levels> step;
  if (!started_) {
    started_ = true;
    step = SpreadSample(kParticles);
    for (const Levels& levels : step) swarm_.push_back(Place(levels));
    return step;
  }
  for (Particle& particle : swarm_) {
    const double now = CostOf(particle.at), before = CostOf(particle.best);
    ++particle.stale;
    if (now < before || std::isnan(before)) {
      particle.best = particle.at;
      particle.stale = 0;
    }
  }
  const Levels leader =
      best() >= 0 ? history()[best()].levels : swarm_.front().best;
  for (Particle& particle : swarm_) {
    if (particle.stale > kPatience && particle.best != leader) {
      const Levels elsewhere = RandomUnseen();
      if (!elsewhere.empty()) {
        particle = Place(elsewhere);
        step.push_back(elsewhere);
        continue;
      }
    }
    for (size_t k = 0; k < leader.size(); ++k) {
      const double x = particle.position[k];
      double& v = particle.velocity[k];
      v = kInertia * v + kPull * rng().UniformReal() * (particle.best[k] - x) +
          kPull * rng().UniformReal() * (leader[k] - x);
      const double last = domain().knobs()[k].size() - 1;
      particle.position[k] = std::min(last, std::max(0.0, x + v));
    }
    particle.at = MoveTowards(particle.best, particle.position);
    if (Seen(particle.at) ||
        std::find(step.begin(), step.end(), particle.at) != step.end()) {
      Levels near = UnseenNear(particle.at, Neighbourhood::kHamming);
      if (!near.empty()) particle.at = std::move(near);
    }
    step.push_back(particle.at);
  }
  return step;
}

}  // namespace optrail::tuning
