#ifndef OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_
#define OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_

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

#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {

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

  std::vector<Levels> Step(int count) override;
  Particle Place(const Levels& levels);
  void Judge(Particle& particle);
  // The best place of the particle's neighbourhood.
  const Levels& Leader(size_t particle) const;
  void Fly(const Levels& leader, Particle& particle);

  std::vector<Particle> swarm_;
  std::vector<size_t> moved_;  // in the last step
  size_t turn_ = 0;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_
