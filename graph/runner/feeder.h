#ifndef OPTRAIL_GRAPH_RUNNER_FEEDER_H_
#define OPTRAIL_GRAPH_RUNNER_FEEDER_H_

// Feeder brings one batch after another from the host to where a Runner reads
// its inputs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Feeder> feeder,
//                            runner->MakeFeeder({}));
//   OPTRAIL_ASSIGN_OR_RETURN(const absl::Span<char* const> to,
//                            feeder->Next());
//   OPTRAIL_RETURN_IF_ERROR(loader->Next(to));
//   OPTRAIL_RETURN_IF_ERROR(feeder->Send());
//   OPTRAIL_RETURN_IF_ERROR(runner->Run());
//
// On a CPU a batch is written to the place itself. To a GPU it is copied, on
// request while the batch before it is computed. The runner must outlive the
// feeder, and the thread that uses the one uses the other.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace optrail::graph {

// Options of a feeder to a GPU.
struct FeederOptions {
  // Batches that are on their way, or there already, while others are computed;
  // with 0 each is copied when the one before it has been computed.
  int sent_ahead = 1;
  // The host's memory is page-locked: the copy engine reads it by itself. Else
  // the driver copies it to such memory first, by the thread that sends.
  bool pinned = true;
};

class Feeder {
 public:
  virtual ~Feeder() = default;

  // Returns the size of each input of a batch.
  virtual std::vector<int64_t> bytes() const = 0;

  // Returns where the next batch is to be written: an address of the host for
  // each input. Waits until nothing is read from there.
  virtual absl::StatusOr<absl::Span<char* const>> Next() = 0;

  // Later calls of the runner read what was written there.
  virtual absl::Status Send() = 0;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_FEEDER_H_
