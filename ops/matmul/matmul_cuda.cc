// The CUDA kernels of matmul: ops/product/cuda.

#include "ops/core/registry.h"
#include "ops/product/cuda/matrix_product_cuda.h"

namespace optrail::ops {
namespace {

class MatmulCuda : public MatrixProductCuda {
 protected:
  MatrixProduct ProductOf(const proto::Shape& shape) const override {
    MatrixProduct product;
    product.size = {1, shape.dims(0).value(), shape.dims(1).value(),
                    shape.dims(2).value()};
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("matmul", MatmulCuda)

}  // namespace
}  // namespace optrail::ops
