#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDNN_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDNN_H_

// The convolutions by cuDNN. Its filters are [k, r, s, c] where ours lie as
// [r, s, c, k]; told of that by strides, it computes something else (9.19), so
// they are turned before.

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ops/conv2d/convolution.h"
#include "ops/vendor/cudnn/cudnn.h"

namespace optrail::ops {

class ConvolutionCudnn : public CudnnBackend {
 public:
  // `fused`: as ConvolutionOperator.
  explicit ConvolutionCudnn(bool fused) : fused_(fused) {}

 protected:
  absl::StatusOr<CudnnGraph> GraphOf(const proto::Shape& shape) const override {
    using Function = CudnnGraph::Function;
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize s, ConvolutionSizeOf(shape));
    const proto::DataType type = shape.data_types(0);
    const CudnnGraph::Layout y_layout = Images(s.n, s.p, s.q, s.k);
    CudnnGraph graph;
    const auto x = graph.Operand(0, type, Images(s.n, s.h, s.w, s.c));
    const auto w = graph.TurnedOperand(1, type, Images(s.k, s.r, s.s, s.c),
                                       s.depth(), s.k);
    const auto y = graph.Operand(fused_ ? 4 : 2, type, y_layout);
    if (!fused_) {
      graph.Convolution(x, w, y, s.stride, s.padding);
      return graph;
    }
    const CudnnGraph::Layout per_filter = Images(1, 1, 1, s.k);
    const auto scale = graph.Operand(2, proto::F32, per_filter);
    const auto shift = graph.Operand(3, proto::F32, per_filter);
    const auto product = graph.Between(y_layout);
    const auto scaled = graph.Between(y_layout);
    const auto shifted = graph.Between(y_layout);
    graph.Convolution(x, w, product, s.stride, s.padding);
    graph.Elementwise(Function::kMultiply, {product, scale}, scaled);
    graph.Elementwise(Function::kAdd, {scaled, shift}, shifted);
    graph.Elementwise(Function::kRelu, {shifted}, y);
    return graph;
  }

 private:
  // Channels lie innermost.
  static CudnnGraph::Layout Images(int64_t n, int64_t h, int64_t w, int64_t c) {
    return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
  }

  const bool fused_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_CUDNN_H_
