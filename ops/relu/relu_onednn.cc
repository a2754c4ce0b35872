// relu by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("relu", [](const proto::Shape& shape) {
  return OneDnnElementwise(OneDnnActivation::kRelu, shape.dims(0).value());
})

}  // namespace
}  // namespace optrail::ops
