// gelu by oneDNN. Its erf is good to 1.5e-7 of 1, not of the tail.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("gelu", [](const proto::Shape& shape) {
  return OneDnnElementwise(shape.attributes().empty()
                               ? OneDnnActivation::kGeluErf
                               : OneDnnActivation::kGeluTanh,
                           shape.dims(0).value());
})

}  // namespace
}  // namespace optrail::ops
