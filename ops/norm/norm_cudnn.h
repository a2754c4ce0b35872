#ifndef OPTRAIL_OPS_NORM_NORM_CUDNN_H_
#define OPTRAIL_OPS_NORM_NORM_CUDNN_H_

// layer_norm and rms_norm (norm.h) by cuDNN, forward and backward.
//
//   class LayerNormCudnn : public NormCudnn {
//    public:
//     LayerNormCudnn() : NormCudnn(/*centred=*/true) {}
//   };
//   OPTRAIL_REGISTER_BACKEND("layer_norm", LayerNormCudnn)

#include <cstdint>

#include "absl/status/statusor.h"
#include "ops/core/registry.h"
#include "ops/norm/norm.h"
#include "ops/vendor/cudnn/cudnn.h"

namespace optrail::ops {

class NormCudnnBase : public CudnnBackend {
 protected:
  explicit NormCudnnBase(bool centred) : centred_(centred) {}

  // Matrices are images of a pixel, whose channels are normalised.
  static CudnnGraph::Layout Rows(int64_t rows, int64_t cols) {
    return {{rows, cols, 1, 1}, {cols, 1, cols, cols}};
  }

  const bool centred_;
};

class NormCudnn : public NormCudnnBase {
 protected:
  using NormCudnnBase::NormCudnnBase;

  absl::StatusOr<CudnnGraph> GraphOf(const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value(), cols = shape.dims(1).value();
    const proto::DataType type = shape.data_types(0);
    int operand = 0;
    CudnnGraph graph;
    CudnnGraph::Norm norm;
    norm.centred = centred_;
    norm.x = graph.Operand(operand++, type, Rows(rows, cols));
    norm.gamma = graph.Operand(operand++, type, Rows(1, cols));
    if (centred_) norm.beta = graph.Operand(operand++, type, Rows(1, cols));
    norm.epsilon = graph.Number(static_cast<float>(kNormEpsilon), 4);
    norm.y = graph.Operand(operand++, type, Rows(rows, cols));
    if (!shape.attributes().empty()) {  // statistics=written
      if (centred_) {
        norm.mean = graph.Operand(operand++, proto::F32, Rows(rows, 1));
      }
      norm.rstd = graph.Operand(operand++, proto::F32, Rows(rows, 1));
    }
    graph.NormForward(norm);
    return graph;
  }
};

class NormBackwardCudnn : public NormCudnnBase {
 protected:
  using NormCudnnBase::NormCudnnBase;

  absl::StatusOr<CudnnGraph> GraphOf(const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value(), cols = shape.dims(1).value();
    const proto::DataType type = shape.data_types(0);
    int operand = 0;
    CudnnGraph graph;
    CudnnGraph::Norm norm;
    norm.centred = centred_;
    norm.dy = graph.Operand(operand++, type, Rows(rows, cols));
    norm.x = graph.Operand(operand++, type, Rows(rows, cols));
    norm.gamma = graph.Operand(operand++, type, Rows(1, cols));
    if (centred_) {
      norm.mean = graph.Operand(operand++, proto::F32, Rows(rows, 1));
    }
    norm.rstd = graph.Operand(operand++, proto::F32, Rows(rows, 1));
    norm.dx = graph.Operand(operand++, type, Rows(rows, cols));
    norm.dgamma = graph.Operand(operand++, type, Rows(1, cols));
    if (centred_) norm.dbeta = graph.Operand(operand++, type, Rows(1, cols));
    graph.NormBackward(norm);
    return graph;
  }
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_NORM_NORM_CUDNN_H_
