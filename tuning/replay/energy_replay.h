#ifndef OPTRAIL_TUNING_REPLAY_ENERGY_REPLAY_H_
#define OPTRAIL_TUNING_REPLAY_ENERGY_REPLAY_H_

// A tuning session for joules on a recording that has the energy of every
// config: the whole session as `optrail tune --objective=joules` runs it, with
// metering of few (tuning/session/metering.h), ranking and proof, scored by
// what the recording knows.
//
//   EnergyReplay run;
//   run.trials = 40;
//   OPTRAIL_ASSIGN_OR_RETURN(const EnergyReplayResult result,
//                            RunEnergyReplay(recording, run));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/text/table.h"
#include "tuning/replay/recording.h"

namespace optrail::tuning {

struct EnergyReplay {
  std::string strategy = "default";
  int trials = 40;
  uint64_t seed = 1;
  // Configs slower than so many times the fastest are no result; 0: all are.
  double time_limit = 0;
  // Every trial is metered, as if energy cost no more than time.
  bool meter_all = false;
  // Relative standard deviation of a reading of joules in search and ranking
  // (windows of 1 s); readings of the proof (5 s) have half of it. The recorded
  // value is taken for the truth.
  double noise = 0;
  // Relative standard deviation of the recorded joules themselves: each config
  // of the recording is read once more with it, by the run's seed, and the run
  // and its score see that in place of the recording, which is the truth by
  // which `true_loss` counts. So the difference of both scores is what one
  // reading per config costs.
  double recorded_noise = 0;
};

// A config is nearly the best if its joules are within this of the optimum's.
inline constexpr double kNearlyBest = .02;

struct EnergyReplayResult {
  // Joules of the winner over those of the best config there is, less 1.
  double loss = 0;
  // The same by the values without `recorded_noise`.
  double true_loss = 0;
  int trials = 0;
  int metered = 0;  // configs, in search, ranking and proof together
  // Time of the winner over that of the fastest config that the run read.
  double time_over_best = 0;
  // A config that is nearly the best was tried; its joules were read.
  bool tried_nearly_best = false;
  bool metered_nearly_best = false;
};

// InvalidArgument if the recording has no joules; NotFound if nothing worked.
absl::StatusOr<EnergyReplayResult> RunEnergyReplay(const Recording& recording,
                                                   const EnergyReplay& run);

// Many of them: each recording by each strategy, with and without metering all.
struct EnergyReplays {
  std::vector<Recording> recordings;
  std::vector<std::string> strategies = {"default"};
  EnergyReplay run;  // seeds count from its seed
  int seeds = 10;
  int jobs = 0;  // threads; 0: one per core
};

// A row for each recording and strategy: trials, configs that were metered, the
// mean and the largest loss, how many runs end nearly at the optimum, and what
// the others lack: they tried no config that is nearly the best, or tried one
// and did not read its joules, or read them and chose another config. With
// `recorded_noise` also the mean true loss and how many truly end nearly there.
absl::StatusOr<std::string> RunEnergyReplays(const EnergyReplays& replays,
                                             OutputFormat format);

// Returns the most that the choice of a config can save: a row for each
// recording with its fastest config, the least joules of all that take at most
// `time_limit` times as long, and the least joules of all. The last row has the
// geometric means. InvalidArgument if `time_limit` is below 1.
absl::StatusOr<std::string> DescribeEnergyOptima(
    const std::vector<Recording>& recordings, double time_limit,
    OutputFormat format);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_REPLAY_ENERGY_REPLAY_H_
