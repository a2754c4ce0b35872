#ifndef OPTRAIL_OPS_VENDOR_CUBLASLT_CUBLASLT_H_
#define OPTRAIL_OPS_VENDOR_CUBLASLT_CUBLASLT_H_

// Products by NVIDIA's cuBLASLt, loaded at run time, whose heuristic proposes
// algorithms among which a knob chooses ("algorithm",
// cublaslt.space.textproto); with a bias and relu behind them (its epilogues).
//
//   class MatmulCublasLt : public CublasLtBackend {
//     Product ProductOf(const proto::Shape& shape) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("matmul", MatmulCublasLt)

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/core/library_backend.h"
#include "ops/device/cuda/device.h"

namespace optrail::ops {

// The part that cuBLAS and cuBLASLt have in common.

// ResourceExhausted for memory, Unimplemented for what the library cannot do.
absl::Status CheckCublas(int result, absl::string_view what);

// Unimplemented for dimensions beyond 32 bits.
absl::Status CheckCublasSizes(const proto::Shape& shape);

// cudaDataType of f32, f16 and bf16.
int CublasType(proto::DataType type);

// The size that PyTorch gives them on Hopper.
constexpr size_t kCublasWorkspaceBytes = size_t{32} << 20;

class CublasBackend : public BackendFor<cuda::CudaDevice, LibraryBackend> {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }
};

class CublasLtBackend : public CublasBackend {
 public:
  // y[m, n] = f(x[m, k] * w[k, n] + bias[n]), row-major; of each of `batch`,
  // one behind the other.
  struct Product {
    int batch = 1, m = 0, n = 0, k = 0;
    bool x_transposed = false, w_transposed = false;  // lie as [k, m], [n, k]
    bool bias = false;                                // the third operand
    bool relu = false;
  };

  std::string name() const override { return "cublaslt"; }

 protected:
  absl::StatusOr<std::unique_ptr<Invocation>> LoadOn(
      const Artifact& artifact, const proto::Shape& shape,
      const proto::Config& config, cuda::CudaDevice& device) const override;
  absl::StatusOr<std::string> Version() const override;

  // Unimplemented for what no epilogue computes.
  virtual absl::StatusOr<Product> ProductOf(
      const proto::Shape& shape) const = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_VENDOR_CUBLASLT_CUBLASLT_H_
