#ifndef OPTRAIL_OPS_DEVICE_CUDA_EXPORTED_H_
#define OPTRAIL_OPS_DEVICE_CUDA_EXPORTED_H_

// The launches of a CUDA kernel as data, for programs that load its cubin and
// launch it with the driver alone.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       const ExportedPlan plan,
//       ExportPlan(backend, shape, config, hardware, operands));
//
// Nothing here knows a kernel: the arguments are made twice, for operands at
// two sets of addresses, and what differs is explained by an address or is an
// error. Needs neither a driver nor a GPU.
//
// The data are valid for operands and a workspace that begin at multiples of
// kExportAlignment.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/device/cuda/backend.h"
#include "tuning/proto/config.pb.h"
#include "tuning/proto/context.pb.h"

namespace optrail::ops::cuda {

inline constexpr int64_t kExportAlignment = 256;

// An operand's address, or the workspace's, and so many bytes behind it.
struct ExportedAddress {
  int operand = -1;  // -1: the workspace
  int64_t plus = 0;
};

// The arguments of cuTensorMapEncodeTiled or, with `im2col`, of
// cuTensorMapEncodeIm2col, in their order.
struct ExportedTensorMap {
  bool im2col = false;
  int data_type = 0;
  ExportedAddress address;
  std::vector<uint64_t> dims, stride_bytes;
  std::vector<uint32_t> box;          // tiled
  std::vector<int> lower, upper;      // im2col
  uint32_t channels = 0, pixels = 0;  // im2col
  std::vector<uint32_t> element_strides;
  int interleave = 0, swizzle = 0, l2_promotion = 0, fill = 0;
};

// One parameter of a launch: bytes, into which addresses of 8 bytes and tensor
// maps of 128 are written.
struct ExportedParameter {
  std::string bytes;  // zero where something is written
  struct Address {
    int64_t at = 0;
    ExportedAddress address;
  };
  struct TensorMap {
    int64_t at = 0;
    ExportedTensorMap map;
  };
  std::vector<Address> addresses;
  std::vector<TensorMap> tensor_maps;
};

struct ExportedPlan {
  struct Launch {
    CudaLaunch launch;
    std::vector<ExportedParameter> parameters;
  };
  std::vector<Launch> launches;  // in order
  int64_t workspace_bytes = 0;   // zeroed once
};

// Errors of Plan() and Arguments(); Unimplemented for a parameter that does not
// follow from addresses by adding constants.
absl::StatusOr<ExportedPlan> ExportPlan(const CudaBackend& backend,
                                        const proto::Shape& shape,
                                        const proto::Config& config,
                                        const proto::Hardware& hardware,
                                        int operands);

}  // namespace optrail::ops::cuda

#endif  // OPTRAIL_OPS_DEVICE_CUDA_EXPORTED_H_
