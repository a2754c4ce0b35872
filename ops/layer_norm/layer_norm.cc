// Layer normalization of rows: lib/norm.h has the formula.

#include "ops/core/registry.h"
#include "ops/norm/norm.h"

namespace optrail::ops {
namespace {

class LayerNorm : public NormOperator {
 public:
  LayerNorm() : NormOperator("layer_norm", /*centred=*/true) {}
};

OPTRAIL_REGISTER_OPERATOR(LayerNorm)

}  // namespace
}  // namespace optrail::ops
