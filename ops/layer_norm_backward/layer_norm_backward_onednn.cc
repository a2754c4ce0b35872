// layer_norm_backward by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("layer_norm_backward", [](const proto::Shape& shape) {
  return OneDnnLayerNormBackward(shape.dims(0).value(), shape.dims(1).value());
})

}  // namespace
}  // namespace optrail::ops
