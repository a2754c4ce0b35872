// layer_norm by cuDNN.

#include "ops/norm/norm_cudnn.h"

namespace optrail::ops {
namespace {

class LayerNormCudnn : public NormCudnn {
 public:
  LayerNormCudnn() : NormCudnn(/*centred=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("layer_norm", LayerNormCudnn)

}  // namespace
}  // namespace optrail::ops
