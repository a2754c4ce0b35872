#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_RANDOM_HISTORY_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_RANDOM_HISTORY_H_

// A random history, fixed by its seed: what real projects record, with what
// goes wrong in them.
//
//   const MadeHistory history = MakeHistory(17);
//   RecordHistory(history, bench);
//   std::cout << history.summary;   // "17: 31 commits, 2 machines, ..."

#include <cstdint>
#include <string>
#include <vector>

#include "cli/evaluation/agreement/workbench.h"
#include "tracker/proto/run.pb.h"
#include "tuning/proto/session.pb.h"

namespace optrail::agreement {

// A lasting change of one benchmark, on every machine of a branch.
struct PlantedStep {
  std::string benchmark;
  int at = 0;  // position of the first commit that has it
  double factor = 1;
};

struct MadeHistory {
  uint64_t seed = 0;
  std::string summary;  // what was drawn, in one line

  std::vector<proto::Run> runs;
  std::vector<proto::Session> sessions;
  std::vector<PlantedStep> steps;

  // How it is recorded.
  bool is_merged = false;  // from two histories, in another order
  bool is_thinned = false;
  // "ack", "expect" or "mute" of the first step; "" for none.
  std::string answer;

  // Little noise, no drift, no bursts, nothing odd: what is planted is seen.
  bool is_calm = false;
};

MadeHistory MakeHistory(uint64_t seed);

// Writes it into the history of `bench`, in a random order.
void RecordHistory(const MadeHistory& history, const Workbench& bench);

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_RANDOM_HISTORY_H_
