#include "ops/core/registry.h"
#include "ops/norm/norm_cuda.h"

namespace optrail::ops {
namespace {

class LayerNormBackwardCuda : public NormBackwardCuda {
 public:
  LayerNormBackwardCuda()
      : NormBackwardCuda("layer_norm_backward_cuda.cu", /*centred=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("layer_norm_backward", LayerNormBackwardCuda)

}  // namespace
}  // namespace optrail::ops
