#ifndef OPTRAIL_OPS_PRODUCT_CUDA_MATRIX_PRODUCT_CUDA_H_
#define OPTRAIL_OPS_PRODUCT_CUDA_MATRIX_PRODUCT_CUDA_H_

// The CUDA backend of operators that are products of dense matrices,
// c[i] = f(a[i] * b[i]): an operator says which product its shape is.
//
//   // matmul_cuda.cc
//   class MatmulCuda : public MatrixProductCuda {
//     MatrixProduct ProductOf(const proto::Shape& shape) const override;
//   };
//   OPTRAIL_REGISTER_BACKEND("matmul", MatmulCuda)
//
// Its operands are a, b, a bias if it has one, and c. The kernels, by the knob
// `kernel` of product_cuda.space.textproto:
//
//   hopper             wgmma fed by the bulk copy engine   matrix_product.cu
//                      (unaligned rows may be copied with padding first)
//   hopper_transposed  the same, of the transposed product
//   hopper_skinny      for few rows                        skinny_product.cu
//   mma                mma.sync, from sm_80 on matrix_product_mma.cu
//   thin               short sums, few columns or rows     thin_product.cu

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/device/cuda/backend.h"
#include "ops/product/cuda/product_cuda.h"

namespace optrail::ops {

struct MatrixProduct {
  BatchedSize size;
  bool transposed_a = false, transposed_b = false;  // stored as [k][m], [n][k]
  bool bias = false;
  int activation = 0;  // behind a bias: 1 relu, 2 gelu
};

class MatrixProductCuda : public cuda::CudaBackend {
 public:
  std::vector<std::vector<proto::DataType>> data_types() const override;
  absl::StatusOr<cuda::CudaPlan> Plan(
      const proto::Shape& shape, const proto::Config& config,
      const proto::Hardware& hardware) const override;
  absl::Status Arguments(const cuda::CudaPlan& plan, const proto::Shape& shape,
                         const proto::Config& config,
                         absl::Span<void* const> operands, void* workspace,
                         const cuda::Driver& driver,
                         cuda::CudaArguments* arguments) const override;

  void ArgumentsBefore(const cuda::CudaPlan& plan, const proto::Shape& shape,
                       const proto::Config& config,
                       absl::Span<void* const> operands, void* workspace,
                       cuda::CudaArguments* arguments) const override;

 protected:
  virtual MatrixProduct ProductOf(const proto::Shape& shape) const = 0;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_PRODUCT_CUDA_MATRIX_PRODUCT_CUDA_H_
