#ifndef OPTRAIL_TUNING_SEARCH_SHARED_WINNERS_H_
#define OPTRAIL_TUNING_SEARCH_SHARED_WINNERS_H_

// SharedWinners lets tasks that are searched together try each other's best
// configs: the layers of a model are often the same operator in other shapes,
// and what is best for one is often good for the next.
//
//   SharedWinners winners({{1}, {0}});  // two tasks, each the other's sibling
//   winners.Report(0, "tile=64", 3.0, /*answered=*/true);
//   if (const auto offer = winners.For(1)) {
//     winners.Take(1, *offer);  // task 1 tries offer->config, then reports
//   }
//
// How much an offer may save is judged by what both tasks know. Two that had a
// config in common before compare their gains since: where the sibling went on
// by 20% and the task by 5%, 15% are left. Two that had none may save a fixed
// part. Either is multiplied by how often offers became the task's best so far.
//
// A config is a text: equal configs of two tasks have equal texts. Costs of two
// tasks are never compared with each other, only their ratios. What it answers
// depends on the calls alone.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace optrail::tuning {

class SharedWinners {
 public:
  struct Offer {
    int from = 0;  // the sibling's index
    std::string config;
    double gain = 0;  // the logarithm of cost that it may save
  };

  // For each task, by index, those that have the same knobs; the nearest first.
  explicit SharedWinners(std::vector<std::vector<int>> siblings);

  // The best of the task so far. `answered`: what it took last is among its
  // trials by now, whatever came of it.
  void Report(int task, absl::string_view best_config, double best_cost,
              bool answered);

  // The offer that may save most; nullopt if there is none, or one is under way
  // already. The answer changes only with the calls of this class.
  absl::optional<Offer> For(int task) const;

  // The task is going to try it.
  void Take(int task, const Offer& offer);

  // The task can't try what it took, if it took any: it has done so before, or
  // its space lacks the config.
  void Refuse(int task);

 private:
  struct State {
    std::vector<int> siblings;
    std::string best_config;
    absl::optional<double> best_cost;
    std::set<std::string, std::less<>> taken;
    absl::optional<Offer> under_way;
    double cost_there = 0;  // of what is under way, at the sibling
    int tried = 0, became_best = 0;
  };
  // The costs of one config at two tasks.
  struct Common {
    double there, here;
  };

  double GainFrom(int sibling, int task) const;
  void SetCommon(int sibling, int task, double there, double here);

  std::vector<State> states_;
  std::map<std::pair<int, int>, Common> common_;  // (sibling, task)
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_SHARED_WINNERS_H_
