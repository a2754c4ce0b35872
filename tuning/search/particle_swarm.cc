// Particle swarm optimisation (Kennedy and Eberhart, 1995) on a ring (Kennedy
// and Mendes, 2002): a particle is drawn to its own best place and to the best
// of its neighbours on the ring, so that news spreads slowly enough for the
// swarm to look at more than one valley. Particles take turns, and each sees at
// once what those before it found.
//
// Positions are real; what is measured is the valid config next to them, or if
// that was tried before, an untried one beside it. Level numbers of a
// categorical knob mean nothing: there a particle copies one of the places it
// is drawn to, or stays. A particle that finds nothing better for some steps
// starts anew elsewhere.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kParticles = 10;
// Neighbours on either side.
constexpr int kReach = 2;
// A swarm of some hundred trials takes a few dozen steps, not thousands: less
// inertia than the usual 0.73 with a pull that is as far (90%) from where
// swarms cease to converge, 12 (1 - w^2) / (7 - 5 w) (Poli, 2009), as the usual
// 1.5 is for that.
constexpr double kInertia = 0.5;
constexpr double kPull = 1.8;
// Steps without a better place after which a particle starts anew.
constexpr int kPatience = 5;

class ParticleSwarm final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  struct Particle {
    std::vector<double> position;  // in units of levels
    std::vector<double> velocity;
    Levels at;
    Levels best;
    int stale = 0;  // steps since `best` was found
  };

  std::vector<Levels> Step(int count) override {
    if (swarm_.empty()) {
      const std::vector<Levels> start = StartDesign(kParticles);
      for (const Levels& levels : start) {
        moved_.push_back(swarm_.size());
        swarm_.push_back(Place(levels));
      }
      return start;
    }
    for (const size_t i : moved_) Judge(swarm_[i]);
    moved_.clear();
    std::vector<Levels> step;
    const int turns = std::min<int>(count, swarm_.size());
    for (int i = 0; i < turns; ++i) {
      const size_t turn = turn_++ % swarm_.size();
      Particle& particle = swarm_[turn];
      moved_.push_back(turn);
      const bool leads =
          best() >= 0 && particle.best == history()[best()].levels;
      if (particle.stale > kPatience && !leads) {
        const Levels elsewhere = RandomUnseen();
        if (!elsewhere.empty()) {
          particle = Place(elsewhere);
          step.push_back(elsewhere);
          continue;
        }
      }
      Fly(Leader(turn), particle);
      if (Seen(particle.at) ||
          std::find(step.begin(), step.end(), particle.at) != step.end()) {
        Levels near = UnseenNear(particle.at);
        if (!near.empty()) particle.at = std::move(near);
      }
      step.push_back(particle.at);
    }
    return step;
  }

  Particle Place(const Levels& levels) {
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

  void Judge(Particle& particle) {
    ++particle.stale;
    const double before = CostOf(particle.best);
    if (CostOf(particle.at) < before || std::isnan(before)) {
      particle.best = particle.at;
      particle.stale = 0;
    }
  }

  // The best place of the particle's neighbourhood.
  const Levels& Leader(size_t particle) const {
    const int size = static_cast<int>(swarm_.size());
    const Levels* leader = &swarm_[particle].best;
    for (int offset = -kReach; offset <= kReach; ++offset) {
      const int other =
          ((static_cast<int>(particle) + offset) % size + size) % size;
      if (CostOf(swarm_[other].best) < CostOf(*leader)) {
        leader = &swarm_[other].best;
      }
    }
    return *leader;
  }

  void Fly(const Levels& leader, Particle& particle) {
    const auto knobs = domain().knobs();
    for (size_t k = 0; k < leader.size(); ++k) {
      double& x = particle.position[k];
      if (!knobs[k].ordinal) {
        const double copies[] = {x, static_cast<double>(particle.best[k]),
                                 static_cast<double>(leader[k])};
        x = copies[rng().UniformInt(3)];
        continue;
      }
      double& v = particle.velocity[k];
      v = kInertia * v + kPull * rng().UniformReal() * (particle.best[k] - x) +
          kPull * rng().UniformReal() * (leader[k] - x);
      x = std::min<double>(knobs[k].size() - 1, std::max(0.0, x + v));
    }
    particle.at = MoveTowards(particle.best, particle.position);
  }

  std::vector<Particle> swarm_;
  std::vector<size_t> moved_;  // in the last step
  size_t turn_ = 0;
};

}  // namespace

extern constexpr StrategyEntry kParticleSwarm = {"particle_swarm",
                                                 Make<ParticleSwarm>};

}  // namespace optrail::tuning
