// batched_matmul by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("batched_matmul", [](const proto::Shape& shape) {
  OneDnnProduct product;
  product.batch = shape.dims(0).value();
  product.m = shape.dims(1).value();
  product.n = shape.dims(2).value();
  product.k = shape.dims(3).value();
  if (!shape.attributes().empty()) {
    product.transposed_a = shape.attributes(0).variant() == "a";
    product.transposed_b = shape.attributes(0).variant() == "b";
  }
  return OneDnnMatmul(product);
})

}  // namespace
}  // namespace optrail::ops
