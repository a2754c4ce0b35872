// batched_matmul by cuBLASLt.

#include <string>

#include "absl/status/statusor.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/vendor/cublaslt/cublaslt.h"

namespace optrail::ops {
namespace {

class BatchedMatmulCublasLt : public CublasLtBackend {
 protected:
  absl::StatusOr<Product> ProductOf(const proto::Shape& shape) const override {
    const std::string transposed = NamedVariant(shape, "transposed");
    Product product;
    product.batch = static_cast<int>(shape.dims(0).value());
    product.m = static_cast<int>(shape.dims(1).value());
    product.n = static_cast<int>(shape.dims(2).value());
    product.k = static_cast<int>(shape.dims(3).value());
    product.x_transposed = transposed == "a";
    product.w_transposed = transposed == "b";
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("batched_matmul", BatchedMatmulCublasLt)

}  // namespace
}  // namespace optrail::ops
