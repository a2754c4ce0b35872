#ifndef OPTRAIL_GRAPH_INPUT_INPUT_SOURCE_H_
#define OPTRAIL_GRAPH_INPUT_INPUT_SOURCE_H_

// InputSource holds samples for the inputs of a model, on a disk.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::vector<SampleInput> inputs, SampleInputs(graph));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<InputSource> source,
//                            OpenInput("clicks.csv", inputs));
//   OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
//                            source->Read(0, source->samples()));
//
// Reading and parsing are apart, so that a loader can tell which of them takes
// the time. loader.h makes batches of samples.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "graph/ir/graph.h"

namespace optrail::graph {

// One input of a model, for one sample: without the batch's dimension.
struct SampleInput {
  std::string name;
  TensorType type;
  // Integers are indices below this, or count from its end; 0: they are none.
  int64_t index_bound = 0;
};

// The first dimension of a graph's inputs. InvalidArgument where they do not
// have one that is the same for all.
absl::StatusOr<int64_t> BatchOf(const Graph& graph);

// In the order of the graph's inputs. Errors are BatchOf's.
absl::StatusOr<std::vector<SampleInput>> SampleInputs(const Graph& graph);

// Thread-safe.
class InputSource {
 public:
  virtual ~InputSource() = default;

  virtual int64_t samples() const = 0;

  // The samples from `first` on, one text each. They must exist.
  virtual absl::StatusOr<std::vector<std::string>> Read(
      int64_t first, int64_t count) const = 0;

  // Writes the values of one sample to `to`, an address for each input.
  // InvalidArgument names the file, the sample and what is wrong.
  virtual absl::Status Parse(int64_t sample, absl::string_view text,
                             absl::Span<char* const> to) const = 0;
};

// A text file with a line for each sample: its values in the order of the
// inputs, with commas or blanks between them. Empty lines and those that begin
// with "#" are skipped. Or a folder with a .npz file for each sample, in the
// order of their names. NotFound, or InvalidArgument where there are no
// samples.
absl::StatusOr<std::unique_ptr<InputSource>> OpenInput(
    const std::string& path, std::vector<SampleInput> inputs);

// `source`, from a slower place: each Read() takes `latency` longer, however
// many samples it reads, as a request to remote storage does. `source` must
// outlive the result.
std::unique_ptr<InputSource> WithReadLatency(const InputSource& source,
                                             absl::Duration latency);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_INPUT_INPUT_SOURCE_H_
