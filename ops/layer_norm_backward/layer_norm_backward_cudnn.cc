// layer_norm_backward by cuDNN.

#include "ops/norm/norm_cudnn.h"

namespace optrail::ops {
namespace {

class LayerNormBackwardCudnn : public NormBackwardCudnn {
 public:
  LayerNormBackwardCudnn() : NormBackwardCudnn(/*centred=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("layer_norm_backward", LayerNormBackwardCudnn)

}  // namespace
}  // namespace optrail::ops
