// layer_norm by oneDNN.

#include "ops/norm/norm.h"
#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("layer_norm", [](const proto::Shape& shape) {
  return OneDnnLayerNorm(shape.dims(0).value(), shape.dims(1).value(),
                         kNormEpsilon,
                         /*statistics=*/!shape.attributes().empty());
})

}  // namespace
}  // namespace optrail::ops
