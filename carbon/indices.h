#ifndef OPTRAIL_CARBON_INDICES_H_
#define OPTRAIL_CARBON_INDICES_H_

// Indices of what tuning is worth, computed from the records of a history and
// never typed in; docs/method/carbon.md defines each.
//
//   const TuningIndex index = IndexOf(sessions, PowerModel());
//   const Maturity maturity = MaturityOf(evidence);
//   Say(maturity.level, maturity.missing);

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "carbon/energy_of.h"
#include "tuning/proto/session.pb.h"

namespace optrail::carbon {

// The gain of one session; absent where its records do not tell.
struct SessionGain {
  absl::optional<double> time_ratio;    // default over winner, time of a call
  absl::optional<double> energy_ratio;  // the same of joules
  // This is the share of the session's time that went into working configs.
  absl::optional<double> efficiency;
  Energy spent;
  absl::optional<double> joules_saved_per_call;
  // Calls after which what it saves has paid for what it spent.
  absl::optional<double> break_even_calls;
  bool estimated = false;  // that rests on a model
};

SessionGain GainOf(const proto::Session& session, const PowerModel& model);

// Over sessions of the same tasks with several seeds: geometric means, and of
// the efficiency the mean.
struct TuningIndex {
  int sessions = 0, seeds = 0, with_energy = 0;
  double performance = 1, energy = 1, efficiency = 0;
  // (performance x energy x efficiency)^(1/3); absent where no session knows
  // its energy or its efficiency.
  absl::optional<double> index;
};

TuningIndex IndexOf(const std::vector<const proto::Session*>& sessions,
                    const PowerModel& model);

// MaturityEvidence is what a history proves about a team, one fact a level.
struct MaturityEvidence {
  int runs = 0, commits = 0;
  int proven_sessions = 0;  // whose winner was proven against the default
  int checked_windows = 0;  // joules whose two sources agree
  int verified_certificates = 0;
};

struct Maturity {
  int level = 0;        // 0 to 5
  std::string name;     // "measures"
  std::string missing;  // for the next level; "" at the highest
};

Maturity MaturityOf(const MaturityEvidence& evidence);

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_INDICES_H_
