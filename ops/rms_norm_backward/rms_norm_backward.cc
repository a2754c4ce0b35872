// The gradients of rms_norm: lib/norm.h has the formulas.

#include "ops/core/registry.h"
#include "ops/norm/norm.h"

namespace optrail::ops {
namespace {

class RmsNormBackward : public NormBackwardOperator {
 public:
  RmsNormBackward()
      : NormBackwardOperator("rms_norm_backward", /*centred=*/false) {}
};

OPTRAIL_REGISTER_OPERATOR(RmsNormBackward)

}  // namespace
}  // namespace optrail::ops
