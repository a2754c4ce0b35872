#include "ops/conv2d/conv2d_knobs.h"
#include "ops/conv2d/convolution_cpu.h"

namespace optrail::ops {
namespace {

class Conv2dCpu : public ConvolutionCpu<Conv2dKnobs, /*kFused=*/false> {};

OPTRAIL_REGISTER_CPU_KERNEL("conv2d", Conv2dCpu)

}  // namespace
}  // namespace optrail::ops
