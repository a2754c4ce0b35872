// linear by oneDNN, which packs the weights untimed.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("linear",
                        [](const proto::Shape& shape) {
                          OneDnnProduct product;
                          product.m = shape.dims(0).value();
                          product.n = shape.dims(1).value();
                          product.k = shape.dims(2).value();
                          product.bias = true;
                          if (!shape.attributes().empty()) {
                            product.activation =
                                shape.attributes(0).variant() == "relu"
                                    ? OneDnnActivation::kRelu
                                    : OneDnnActivation::kGeluErf;
                          }
                          product.type = shape.data_types(0);
                          product.packs_b = true;
                          return OneDnnMatmul(product);
                        },
                        {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops
