#ifndef OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_
#define OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_

// Particle swarm optimisation (Kennedy and Eberhart, 1995) with the
// constriction constants of Clerc and Kennedy (2002). Positions are real; what
// is measured is the valid config next to them, or if that was tried before, an
// untried one beside it. A particle that finds nothing better for some steps
// starts anew elsewhere.

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

  std::vector<Particle> swarm_;
  bool started_ = false;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_PARTICLE_SWARM_H_
