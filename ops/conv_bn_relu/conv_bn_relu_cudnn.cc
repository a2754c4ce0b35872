// conv_bn_relu by cuDNN.

#include "ops/conv2d/convolution_cudnn.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class ConvBnReluCudnn : public ConvolutionCudnn {
 public:
  ConvBnReluCudnn() : ConvolutionCudnn(/*fused=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("conv_bn_relu", ConvBnReluCudnn)

}  // namespace
}  // namespace optrail::ops
