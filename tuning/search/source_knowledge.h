#ifndef OPTRAIL_TUNING_SEARCH_SOURCE_KNOWLEDGE_H_
#define OPTRAIL_TUNING_SEARCH_SOURCE_KNOWLEDGE_H_

// What other tasks (another hardware, a nearby shape) say about a config before
// it was tried here.
//
//   const SourceKnowledge knowledge(domain, options.sources);
//   if (!knowledge.empty()) first = knowledge.starts().front();
//
// A source counts by the logarithms of its costs, capped at a quantile like the
// costs of this task (see bayes_opt.h) and standardised. Tasks are taken to be
// exchangeable: as much as the sources agree with each other, they are expected
// to agree with this task. If r is their mean correlation, the best linear
// prediction from K of them is r / (1 + (K - 1) r) times their sum. A source
// that agrees with no other is left out, and sources that all disagree tell
// nothing. One source alone can't be checked so; r is taken to be 1/2.
//
// Nor is a source believed whose configs tell nothing of their neighbours: what
// a kernel does changes with few knobs at a time, so that is noise.
//
// It knows nothing of this task's trials.

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tuning/search/strategy.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

class SourceKnowledge {
 public:
  SourceKnowledge(const Domain& domain,
                  absl::Span<const TransferSource> sources);

  // No source that can be believed.
  bool empty() const { return sources_ == 0; }
  // Sources believed.
  int sources() const { return sources_; }

  // One value per source believed: its standardised log cost of the config; 0,
  // the mean, where it has none.
  std::vector<float> Values(const Levels& levels) const;

  // The expected log cost as a deviation from the mean, in units of unit().
  float Expected(const std::vector<float>& values) const;

  // The standard deviation of (capped) log costs, averaged over the sources.
  double unit() const { return unit_; }

  // Valid configs to begin with, each chosen so that the best of those up to
  // it loses least, summed over the sources ("a few fit most").
  const std::vector<Levels>& starts() const { return starts_; }

 private:
  void LearnValues(absl::Span<const TransferSource> sources);
  // How much two sources agree, at most 1.
  double Agreement(absl::Span<const TransferSource> sources, int a,
                   int b) const;
  void Believe(absl::Span<const TransferSource> sources);
  void ChooseStarts(const Domain& domain,
                    absl::Span<const TransferSource> sources);

  // Per config one value per source, NaN where it has none.
  absl::flat_hash_map<Levels, std::vector<float>> values_;
  std::vector<double> units_;
  std::vector<int> believed_;  // indices of sources
  int sources_ = 0;
  float weight_ = 0;
  double unit_ = 1;
  std::vector<Levels> starts_;
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_SOURCE_KNOWLEDGE_H_
