#ifndef OPTRAIL_TUNING_REPLAY_RECORDED_PROPOSER_H_
#define OPTRAIL_TUNING_REPLAY_RECORDED_PROPOSER_H_

// RecordedProposer is a strategy on a recorded domain, as a session asks it.

#include <vector>

#include "absl/types/optional.h"
#include "tuning/session/proposer.h"

namespace optrail::tuning {

class RecordedProposer : public StrategyProposer {
 public:
  using StrategyProposer::StrategyProposer;
  std::vector<proto::Config> Front() const override { return {}; }
  absl::optional<double> ExpectedImprovement() const override {
    return absl::nullopt;  // replay stops by trials alone
  }
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_RECORDED_PROPOSER_H_
