#ifndef OPTRAIL_GRAPH_INPUT_LOADER_H_
#define OPTRAIL_GRAPH_INPUT_LOADER_H_

// Loader reads and parses samples in threads of its own and hands them out as
// batches, in order, while a model computes.
//
//   LoaderOptions options;
//   options.workers = 4;
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::unique_ptr<Loader> loader,
//       Loader::Start(*source, *SampleInputs(graph), batch, options));
//   OPTRAIL_RETURN_IF_ERROR(loader->Next({x_address, y_address}));
//
// A worker takes the next chunk of samples, reads it by one call of the source,
// and parses it into a ring of batches. Behind the last sample comes the first
// one again. The source must outlive the loader; one thread at a time may call
// Next().

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/input/input_source.h"

namespace optrail::graph {

struct LoaderOptions {
  int workers = 1;
  // The batches that are loaded ahead of the model. There are more where a
  // chunk and a batch would not fit.
  int64_t prefetch = 2;
  int64_t chunk = 1;  // samples that a worker reads at a time
};

// Times add up from the start of the loader.
struct LoaderTimes {
  // The threads that load, all together. They rest while the ring is full.
  int64_t reading_ns = 0, parsing_ns = 0, resting_ns = 0;
  // The thread that calls Next().
  int64_t waited_ns = 0, copied_ns = 0;
};

class Loader {
 public:
  virtual ~Loader() = default;

  // InvalidArgument names the option that is wrong; ResourceExhausted says how
  // much memory the ring would take.
  static absl::StatusOr<std::unique_ptr<Loader>> Start(
      const InputSource& source, const std::vector<SampleInput>& inputs,
      int64_t batch, const LoaderOptions& options);

  // Waits for the next batch and copies it to `to`, an address for each input.
  // The source's error, from the first sample that has one.
  virtual absl::Status Next(absl::Span<char* const> to) = 0;

  // The most samples that are loaded ahead.
  virtual int64_t capacity() const = 0;

  // May be called at any time. Work counts once a chunk is done.
  virtual LoaderTimes times() const = 0;
};

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_INPUT_LOADER_H_
