// The gradients of layer_norm: lib/norm.h has the formulas.

#include "ops/core/registry.h"
#include "ops/norm/norm.h"

namespace optrail::ops {
namespace {

class LayerNormBackward : public NormBackwardOperator {
 public:
  LayerNormBackward()
      : NormBackwardOperator("layer_norm_backward", /*centred=*/true) {}
};

OPTRAIL_REGISTER_OPERATOR(LayerNormBackward)

}  // namespace
}  // namespace optrail::ops
