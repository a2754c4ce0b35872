// rms_norm_backward by cuDNN.

#include "ops/norm/norm_cudnn.h"

namespace optrail::ops {
namespace {

class RmsNormBackwardCudnn : public NormBackwardCudnn {
 public:
  RmsNormBackwardCudnn() : NormBackwardCudnn(/*centred=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("rms_norm_backward", RmsNormBackwardCudnn)

}  // namespace
}  // namespace optrail::ops
