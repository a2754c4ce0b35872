// The CUDA kernels of linear: ops/product/cuda with a bias and an activation.

#include <string>

#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/product/cuda/matrix_product_cuda.h"

namespace optrail::ops {
namespace {

class LinearCuda : public MatrixProductCuda {
 protected:
  MatrixProduct ProductOf(const proto::Shape& shape) const override {
    MatrixProduct product;
    product.size = {1, shape.dims(0).value(), shape.dims(1).value(),
                    shape.dims(2).value()};
    product.bias = true;
    const std::string f = NamedVariant(shape, "activation");
    product.activation = f == "relu" ? 1 : f == "gelu" ? 2 : 0;
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearCuda)

}  // namespace
}  // namespace optrail::ops
