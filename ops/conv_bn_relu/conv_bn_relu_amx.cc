// conv_bn_relu by AMX's tiles.

#include "ops/conv2d/convolution_amx.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class ConvBnReluAmx : public ConvolutionAmxBackend {
 public:
  ConvBnReluAmx() : ConvolutionAmxBackend(/*fused=*/true) {}
};

OPTRAIL_REGISTER_BACKEND("conv_bn_relu", ConvBnReluAmx)

}  // namespace
}  // namespace optrail::ops
