#ifndef OPTRAIL_TUNING_SESSION_PROPOSER_H_
#define OPTRAIL_TUNING_SESSION_PROPOSER_H_

// Proposer says which config a session tries next. Most ask a strategy on a
// domain; others may come (traces of schedules), since the session sees configs
// and trials and nothing of levels.
//
//   ProposerOptions options;
//   options.batch = 4;
//   OPTRAIL_ASSIGN_OR_RETURN(auto proposer,
//                            MakeProposer(*space, begun, options));
//   const std::vector<proto::Config> next = proposer->Ask(1);
//   OPTRAIL_RETURN_IF_ERROR(proposer->Tell(trial));

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "tuning/proto/session.pb.h"
#include "tuning/search/strategy.h"
#include "tuning/space/space.h"

namespace optrail::tuning {

class Proposer {
 public:
  virtual ~Proposer() = default;
  // Up to `count` configs, none asked or told before; none when there is no
  // more.
  virtual std::vector<proto::Config> Ask(int count) = 0;
  // In any order; of configs not asked, too (those that were known before).
  virtual absl::Status Tell(const proto::Trial& trial) = 0;
  // The same for a trial one of whose objectives is predicted: `deviation` is
  // its relative standard deviation, `objective` its index.
  virtual absl::Status TellPredicted(const proto::Trial& trial,
                                     double deviation, int objective) {
    return Tell(trial);
  }
  // A config that was best in another task: asked next. False if it is asked or
  // told already, not valid, or this proposer takes no suggestions.
  virtual bool Suggest(const proto::Config& config) { return false; }
  // A trial of a task that is tuned at the same time and has the same knobs,
  // these tasks counted from 0. It may change later choices, and nothing else.
  virtual void Overhear(int sibling, const proto::Trial& trial) {}
  // The most likely best first.
  virtual std::vector<proto::Config> Finalists(int count) const = 0;
  // The configs that no other beats in all objectives, if there are several.
  virtual std::vector<proto::Config> Front() const = 0;
  // Of the best untried config, as a fraction of the best cost; nullopt without
  // a model.
  virtual absl::optional<double> ExpectedImprovement() const = 0;
};

// A strategy on a domain whose configs have levels.
class StrategyProposer : public Proposer {
 public:
  // The functions are called as long as this lives.
  StrategyProposer(
      std::vector<proto::Objective> objectives,
      std::shared_ptr<Strategy> strategy,
      std::function<proto::Config(const Levels&)> to_config,
      std::function<absl::StatusOr<Levels>(const proto::Config&)> to_levels)
      : objectives_(std::move(objectives)),
        strategy_(std::move(strategy)),
        to_config_(std::move(to_config)),
        to_levels_(std::move(to_levels)) {}

  std::vector<proto::Config> Ask(int count) override;
  absl::Status Tell(const proto::Trial& trial) override {
    return TellPredicted(trial, /*deviation=*/0, /*objective=*/0);
  }
  absl::Status TellPredicted(const proto::Trial& trial, double deviation,
                             int objective) override;
  bool Suggest(const proto::Config& config) override;
  void Overhear(int sibling, const proto::Trial& trial) override;
  std::vector<proto::Config> Finalists(int count) const override;
  std::vector<proto::Config> Front() const override;
  absl::optional<double> ExpectedImprovement() const override;

 private:
  const std::vector<proto::Objective> objectives_;
  const std::shared_ptr<Strategy> strategy_;
  const std::function<proto::Config(const Levels&)> to_config_;
  const std::function<absl::StatusOr<Levels>(const proto::Config&)> to_levels_;
};

struct ProposerOptions {
  // Requests in flight, for which the strategy plans.
  int batch = 1;
  // What the strategy may learn from beside the session's own warm start.
  std::vector<TransferSource> sources;
  // The same as it was recorded, for configs that no space has
  // (config_source.h); the nearest first.
  std::vector<proto::Session> source_sessions;
};

// The session's strategy on `space`, which must outlive it: with its seed, its
// budget and its objectives, knowing its trials so far.
absl::StatusOr<std::unique_ptr<Proposer>> MakeProposer(
    const BoundSpace& space, const proto::Session& begun,
    const ProposerOptions& options);

// What a strategy is told of `trial`: outcome and costs of the objectives. One
// whose objectives are not all known concludes nothing.
Trial ForStrategy(const std::vector<proto::Objective>& objectives,
                  const proto::Trial& trial, Levels levels);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_PROPOSER_H_
