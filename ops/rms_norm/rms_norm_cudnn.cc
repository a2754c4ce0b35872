// rms_norm by cuDNN.

#include "ops/norm/norm_cudnn.h"

namespace optrail::ops {
namespace {

class RmsNormCudnn : public NormCudnn {
 public:
  RmsNormCudnn() : NormCudnn(/*centred=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("rms_norm", RmsNormCudnn)

}  // namespace
}  // namespace optrail::ops
