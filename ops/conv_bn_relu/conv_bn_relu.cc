// A convolution, batch normalization as inference has it, and relu in one pass:
// y = max(conv2d(x, weights) * scale + shift, 0), scale and shift per channel.

#include "ops/conv2d/convolution.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

class ConvBnRelu : public ConvolutionOperator {
 public:
  ConvBnRelu() : ConvolutionOperator("conv_bn_relu", /*fused=*/true) {}
};

OPTRAIL_REGISTER_OPERATOR(ConvBnRelu)

}  // namespace
}  // namespace optrail::ops
