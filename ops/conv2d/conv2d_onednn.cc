// conv2d by oneDNN.

#include "ops/conv2d/convolution_onednn.h"

namespace optrail::ops {
namespace {

OPTRAIL_REGISTER_ONEDNN("conv2d",
                        [](const proto::Shape& shape) {
                          return ConvolutionByOneDnn(shape, /*fused=*/false);
                        },
                        {{proto::F32}, {proto::BF16}})

}  // namespace
}  // namespace optrail::ops
