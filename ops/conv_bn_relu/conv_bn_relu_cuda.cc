#include "ops/conv2d/convolution_cuda.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class ConvBnReluCuda : public ConvolutionCuda {
 public:
  ConvBnReluCuda() : ConvolutionCuda(/*fused=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("conv_bn_relu", ConvBnReluCuda)

}  // namespace
}  // namespace optrail::ops
