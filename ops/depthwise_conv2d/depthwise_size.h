#ifndef OPTRAIL_OPS_DEPTHWISE_CONV2D_DEPTHWISE_SIZE_H_
#define OPTRAIL_OPS_DEPTHWISE_CONV2D_DEPTHWISE_SIZE_H_

// The sizes of a depthwise convolution, for its definition and its kernel.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

struct DepthwiseSize {
  int64_t n, h, w, c, r, s;
  int64_t padding, stride;
  int64_t p, q;  // output rows and columns
};

// InvalidArgument if the weights do not fit into the padded image.
inline absl::StatusOr<DepthwiseSize> DepthwiseSizeOf(
    const proto::Shape& shape) {
  const auto dim = [&](int i) { return shape.dims(i).value(); };
  DepthwiseSize size = {dim(0), dim(1), dim(2), dim(3), dim(4),
                        dim(5), 0,      1,      0,      0};
  for (const proto::Attribute& attribute : shape.attributes()) {
    if (attribute.name() == "stride") size.stride = attribute.int_();
    if (attribute.name() == "padding") size.padding = attribute.int_();
  }
  const int64_t rows = size.h + 2 * size.padding - size.r;
  const int64_t cols = size.w + 2 * size.padding - size.s;
  if (rows < 0 || cols < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a filter of ", size.r, "x", size.s, " does not fit into an image of ",
        size.h, "x", size.w, " with padding ", size.padding));
  }
  size.p = rows / size.stride + 1;
  size.q = cols / size.stride + 1;
  return size;
}

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_DEPTHWISE_CONV2D_DEPTHWISE_SIZE_H_
