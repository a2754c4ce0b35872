// conv2d by AMX's tiles.

#include "ops/conv2d/convolution_amx.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Conv2dAmx : public ConvolutionAmxBackend {
 public:
  Conv2dAmx() : ConvolutionAmxBackend(/*fused=*/false) {}
};

OPTRAIL_REGISTER_BACKEND("conv2d", Conv2dAmx)

}  // namespace
}  // namespace optrail::ops
