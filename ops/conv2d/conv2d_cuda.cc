#include "ops/conv2d/convolution_cuda.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Conv2dCuda : public ConvolutionCuda {
 public:
  Conv2dCuda() : ConvolutionCuda(/*fused=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("conv2d", Conv2dCuda)

}  // namespace
}  // namespace optrail::ops
