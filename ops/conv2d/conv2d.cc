// A convolution of images, channels last: convolution.h has the formula.

#include "ops/conv2d/convolution.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class Conv2d : public ConvolutionOperator {
 public:
  Conv2d() : ConvolutionOperator("conv2d", /*fused=*/false) {}
};

OPTRAIL_REGISTER_OPERATOR(Conv2d)

}  // namespace
}  // namespace optrail::ops
