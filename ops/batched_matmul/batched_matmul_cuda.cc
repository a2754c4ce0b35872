// The CUDA kernels of batched_matmul: ops/product/cuda.

#include <string>

#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/product/cuda/matrix_product_cuda.h"

namespace optrail::ops {
namespace {

class BatchedMatmulCuda : public MatrixProductCuda {
 protected:
  MatrixProduct ProductOf(const proto::Shape& shape) const override {
    MatrixProduct product;
    product.size = {shape.dims(0).value(), shape.dims(1).value(),
                    shape.dims(2).value(), shape.dims(3).value()};
    const std::string transposed = NamedVariant(shape, "transposed");
    product.transposed_a = transposed == "a";
    product.transposed_b = transposed == "b";
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("batched_matmul", BatchedMatmulCuda)

}  // namespace
}  // namespace optrail::ops
