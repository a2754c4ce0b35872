#ifndef OPTRAIL_TRACKER_HISTORY_EVALUATION_HOSTILE_RECORDS_H_
#define OPTRAIL_TRACKER_HISTORY_EVALUATION_HOSTILE_RECORDS_H_

// A structure-aware fuzzer's other half: records of every kind that parse, with
// checksums that are right and contents that nobody should trust, and files
// that are no records at all. The same for the same seed.
//
//   Rng rng(1);
//   for (int i = 0; i < 20; ++i) PlantHostileRecord(rng, lures, "h");
//   WriteHostileJson(rng) -> "{\"benchmarks\": [[[[[..."
//
// Texts that become paths where somebody takes them for paths lead to `lures`.

#include <string>
#include <vector>

#include "base/random.h"
#include "google/protobuf/message.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

struct Lures {
  std::string outside;  // an absolute path that must not come to be
  std::vector<std::string> run_ids;  // of runs that are there
};

// A plausible run of minute `minute`, as most of the crafted ones begin.
proto::Run PlausibleRun(Rng& rng, int minute);

// Changes some fields, at any depth, to values at and beyond what they can
// mean.
void MakeHostile(Rng& rng, const Lures& lures,
                 google::protobuf::Message* message);

// Writes one crafted record, or what is no file, below the history `dir`.
void PlantHostileRecord(Rng& rng, const Lures& lures, const std::string& dir);

// Returns a text that calls itself a Google Benchmark file.
std::string HostileJson(Rng& rng, const Lures& lures);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_EVALUATION_HOSTILE_RECORDS_H_
