// The matrix product by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("matmul",
                        [](const proto::Shape& shape) {
                          OneDnnProduct product;
                          product.m = shape.dims(0).value();
                          product.n = shape.dims(1).value();
                          product.k = shape.dims(2).value();
                          product.type = shape.data_types(0);
                          return OneDnnMatmul(product);
                        },
                        {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops
