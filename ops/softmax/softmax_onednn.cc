// Softmax by oneDNN.

#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("softmax", [](const proto::Shape& shape) {
  return OneDnnSoftmax(shape.dims(0).value(), shape.dims(1).value());
})

}  // namespace
}  // namespace optrail::ops
