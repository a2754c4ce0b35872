// conv_bn_relu by oneDNN: a convolution with three post-operations.

#include "ops/conv2d/convolution_onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("conv_bn_relu",
                        [](const proto::Shape& shape) {
                          return ConvolutionByOneDnn(shape, /*fused=*/true);
                        },
                        {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops
