#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_ONEDNN_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_ONEDNN_H_

// The convolutions by oneDNN, which packs the weights untimed.

#include "base/status_macros.h"
#include "ops/conv2d/convolution.h"
#include "ops/vendor/onednn/onednn.h"

namespace optrail::ops {

inline OneDnnPrimitive ConvolutionByOneDnn(const proto::Shape& shape,
                                           bool fused) {
  OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize size,
                           ConvolutionSizeOf(shape));
  OneDnnConvolution convolution;
  convolution.n = size.n;
  convolution.h = size.h;
  convolution.w = size.w;
  convolution.c = size.c;
  convolution.k = size.k;
  convolution.r = size.r;
  convolution.s = size.s;
  convolution.p = size.p;
  convolution.q = size.q;
  convolution.stride = size.stride;
  convolution.padding = size.padding;
  convolution.fused = fused;
  convolution.type = shape.data_types(0);
  return OneDnnConv2d(convolution);
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_ONEDNN_H_
