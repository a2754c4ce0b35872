#ifndef OPTRAIL_GRAPH_RUNNER_CUDA_FEEDER_H_
#define OPTRAIL_GRAPH_RUNNER_CUDA_FEEDER_H_

// The Feeder of a GPU:
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const std::unique_ptr<Feeder> feeder,
//       MakeCudaFeeder({{x_address, x_bytes}}, options, device));
//
// A captured graph reads its inputs at fixed addresses. So a batch that is sent
// ahead is copied to a buffer of its own, by a stream beside the one that
// computes, and from there to the inputs between two calls, on the GPU.

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/runner/feeder.h"
#include "graph/runner/machine.h"
#include "ops/device/cuda/device.h"

namespace optrail::graph {

// ResourceExhausted where memory is missing; errors of the driver.
absl::StatusOr<std::unique_ptr<Feeder>> MakeCudaFeeder(
    std::vector<FedInput> inputs, const FeederOptions& options,
    ops::cuda::CudaDevice& device);

}  // namespace optrail::graph

#endif  // OPTRAIL_GRAPH_RUNNER_CUDA_FEEDER_H_
