// linear by cuBLASLt, bias and relu in its epilogue.

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/core/registry.h"
#include "ops/lib/cuda_frame.h"
#include "ops/vendor/cublaslt/cublaslt.h"

namespace optrail::ops {
namespace {

class LinearCublasLt : public CublasLtBackend {
 protected:
  absl::StatusOr<Product> ProductOf(const proto::Shape& shape) const override {
    const std::string activation = NamedVariant(shape, "activation");
    if (activation == "gelu") {
      return absl::UnimplementedError(
          "cuBLASLt's gelu is the approximation with tanh, not this one");
    }
    Product product;
    product.m = static_cast<int>(shape.dims(0).value());
    product.n = static_cast<int>(shape.dims(1).value());
    product.k = static_cast<int>(shape.dims(2).value());
    // There the bias is added to sums that were rounded to 16 bits already.
    if (shape.data_types(0) != proto::F32 &&
        (product.n % 8 != 0 || product.k % 8 != 0)) {
      return absl::UnimplementedError(
          "cuBLASLt has no epilogue of its own where rows are no multiples of "
          "16 bytes");
    }
    product.bias = true;
    product.relu = activation == "relu";
    return product;
  }
};

OPTRAIL_REGISTER_BACKEND("linear", LinearCublasLt)

}  // namespace
}  // namespace optrail::ops
