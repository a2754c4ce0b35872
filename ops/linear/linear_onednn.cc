// linear by oneDNN.

#include "ops/lib/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("linear", [](const proto::Shape& shape) {
  OneDnnProduct product;
  product.m = shape.dims(0).value();
  product.n = shape.dims(1).value();
  product.k = shape.dims(2).value();
  product.bias = true;
  if (!shape.attributes().empty()) {
    product.activation = shape.attributes(0).variant() == "relu"
                             ? OneDnnActivation::kRelu
                             : OneDnnActivation::kGeluErf;
  }
  return OneDnnMatmul(product);
})

}  // namespace
}  // namespace optrail::ops
