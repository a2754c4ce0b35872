// Latin hypercube sampling (McKay, Beckman and Conover, 1979): every stratum of
// every knob appears about equally often. In a constrained space the strata of
// a knob hold equal shares of the valid configs, not of its levels: a level
// that few configs have would otherwise stand for as much as one that most
// have. After options.budget points (or 64) a new design begins.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tuning/search/step_strategy.h"

namespace optrail::tuning {
namespace {

constexpr int kDefaultPoints = 64;
constexpr int kMaxPoints = 1024;
// Samples from which the shares of levels are estimated.
constexpr int kShareSamples = 512;
// Samples among which the one is taken whose strata were used least.
constexpr int kCandidates = 8;
constexpr int kMaxStrata = 16;

class LatinHypercube final : public StepStrategy {
 public:
  using StepStrategy::StepStrategy;

 private:
  std::vector<Levels> Step(int count) override {
    const int wanted = std::min(
        options().budget > 0 ? options().budget : kDefaultPoints, kMaxPoints);
    const std::vector<std::vector<int>> strata = Strata(wanted);
    // Uses and candidates per stratum: their ratio is what is to be even.
    std::vector<std::vector<int>> used(strata.size()), offered(strata.size());
    for (size_t k = 0; k < strata.size(); ++k) {
      const int most = *std::max_element(strata[k].begin(), strata[k].end());
      used[k].resize(most + 1);
      offered[k].resize(most + 1);
    }
    std::vector<Levels> design;
    for (int i = 0; i < wanted; ++i) {
      Levels chosen;
      double least = std::numeric_limits<double>::infinity();
      for (int c = 0; c < kCandidates; ++c) {
        Levels levels = domain().Sample(rng());
        double crowded = 0;
        for (size_t k = 0; k < levels.size(); ++k) {
          const int stratum = strata[k][levels[k]];
          ++offered[k][stratum];
          crowded +=
              static_cast<double>(used[k][stratum]) / offered[k][stratum];
        }
        if (crowded < least && !Seen(levels)) {
          least = crowded;
          chosen = std::move(levels);
        }
      }
      if (chosen.empty()) continue;
      for (size_t k = 0; k < chosen.size(); ++k) {
        ++used[k][strata[k][chosen[k]]];
      }
      design.push_back(std::move(chosen));
    }
    return design;
  }

  // Per knob and level the stratum it lies in.
  std::vector<std::vector<int>> Strata(int points) {
    const auto knobs = domain().knobs();
    std::vector<Levels> samples;
    for (int i = 0; i < kShareSamples; ++i) {
      samples.push_back(domain().Sample(rng()));
    }
    std::vector<std::vector<int>> strata(knobs.size());
    for (size_t k = 0; k < knobs.size(); ++k) {
      std::vector<int> counts(knobs[k].size());
      for (const Levels& levels : samples) ++counts[levels[k]];
      const int wanted = std::min(points, kMaxStrata);
      int below = 0;
      for (int level = 0; level < knobs[k].size(); ++level) {
        const double middle = (below + 0.5 * counts[level]) / kShareSamples;
        strata[k].push_back(
            knobs[k].ordinal
                ? std::min(wanted - 1, static_cast<int>(middle * wanted))
                : level);
        below += counts[level];
      }
    }
    return strata;
  }
};

}  // namespace

extern constexpr StrategyEntry kLatinHypercube = {"latin_hypercube",
                                                  Make<LatinHypercube>};

}  // namespace optrail::tuning
