#ifndef OPTRAIL_OPS_VENDOR_ONEDNN_ONEDNN_H_
#define OPTRAIL_OPS_VENDOR_ONEDNN_ONEDNN_H_

// oneDNN as a backend of operators, loaded at run time: the same binary runs
// with and without it. Debian has it as libdnnl-dev, whose headers must be
// there when Optrail is built; $OPTRAIL_ONEDNN names another library of the
// same major version.
//
//   OPTRAIL_REGISTER_ONEDNN("softmax", [](const proto::Shape& shape) {
//     return OneDnnSoftmax(shape.dims(0).value(), shape.dims(1).value());
//   })
//
// Each function makes a primitive over dense row-major float operands (products
// and convolutions also of bfloat16, softmax into it), as the operator has
// them, in its order. A layout of the library's own choice is used for weights
// alone, of convolutions and of layers, which Invocation::Pack() brings into
// it, as a model would keep them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/core/backend.h"
#include "ops/core/invocation.h"
#include "ops/core/registry.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

using OneDnnPrimitive = absl::StatusOr<std::unique_ptr<Invocation>>;

// x, y [rows, cols]; `y_type`: F32 or BF16.
OneDnnPrimitive OneDnnSoftmax(int64_t rows, int64_t cols,
                              proto::DataType y_type = proto::F32);

enum class OneDnnActivation { kNone, kRelu, kGeluErf, kGeluTanh };
// x, y [n]
OneDnnPrimitive OneDnnElementwise(OneDnnActivation activation, int64_t n);

// x, gamma, beta, y and, with `statistics`, mean and 1 / the standard deviation
// of every row, which is made of the variance that the library writes.
OneDnnPrimitive OneDnnLayerNorm(int64_t rows, int64_t cols, double epsilon,
                                bool statistics);

// dy, x, gamma, mean, rstd, dx, dgamma, dbeta.
OneDnnPrimitive OneDnnLayerNormBackward(int64_t rows, int64_t cols);

// a [batch, m, k] or, transposed, [batch, k, m]; b [batch, k, n] or [batch, n,
// k]; then bias [n] if wanted; c [batch, m, n].
struct OneDnnProduct {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transposed_a = false;
  bool transposed_b = false;
  bool bias = false;
  OneDnnActivation activation = OneDnnActivation::kNone;
  proto::DataType type = proto::F32;  // or BF16, of all operands
  bool float_c = false;               // but for c
  float scale = 1;                    // of the product, before all else
  bool packs_b = false;  // weights, in the library's layout of them
};
OneDnnPrimitive OneDnnMatmul(const OneDnnProduct& product);

// x [n, h, w, c], weights [r, s, c, k], with `fused` scale and shift [k], which
// relu follows; y [n, p, q, k].
struct OneDnnConvolution {
  int64_t n = 0, h = 0, w = 0, c = 0, k = 0, r = 0, s = 0, p = 0, q = 0;
  int64_t stride = 1;
  int64_t padding = 0;
  bool fused = false;
  proto::DataType type = proto::F32;  // or BF16, of x, weights and y
};
OneDnnPrimitive OneDnnConv2d(const OneDnnConvolution& convolution);

// x [rows, cols] and the sums over its columns or its rows.
OneDnnPrimitive OneDnnSum(int64_t rows, int64_t cols, bool over_rows);

// `types`: Backend::data_types.
std::shared_ptr<Backend> MakeOneDnnBackend(
    std::function<OneDnnPrimitive(const proto::Shape&)> make,
    std::vector<std::vector<proto::DataType>> types = {});

}  // namespace optrail::ops

// The operator, the function, and data types where they are not f32 alone.
#define OPTRAIL_REGISTER_ONEDNN(op, ...)                              \
  [[maybe_unused]] static const bool optrail_onednn_registered = [] { \
    ::optrail::ops::Registry::Get().AddBackend(                       \
        op, ::optrail::ops::MakeOneDnnBackend(__VA_ARGS__));          \
    return true;                                                      \
  }();

#endif  // OPTRAIL_OPS_VENDOR_ONEDNN_ONEDNN_H_
