#include "ops/conv2d/convolution_cpu.h"
#include "ops/conv_bn_relu/conv_bn_relu_knobs.h"

namespace optrail::ops {
namespace {

class ConvBnReluCpu : public ConvolutionCpu<ConvBnReluKnobs, /*kFused=*/true> {
};

OPTRAIL_REGISTER_CPU_KERNEL("conv_bn_relu", ConvBnReluCpu)

}  // namespace
}  // namespace optrail::ops
