// conv2d by cuDNN.

#include "ops/conv2d/convolution_cudnn.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Conv2dCudnn : public ConvolutionCudnn {
 public:
  Conv2dCudnn() : ConvolutionCudnn(/*fused=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("conv2d", Conv2dCudnn)

}  // namespace
}  // namespace optrail::ops
