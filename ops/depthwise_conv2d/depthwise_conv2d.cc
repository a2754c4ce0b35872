// y[n, p, q, c] = sum over i < r, j < s of
//                 x[n, p * stride + i - padding, q * stride + j - padding, c]
//                 * weights[i, j, c]
//
// every channel by itself (Howard et al., "MobileNets", 2017), channels last, x
// being 0 outside. Output rows and columns: (h + 2 padding - r) / stride + 1,
// rounded down.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"
#include "ops/depthwise_conv2d/depthwise_size.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class DepthwiseConv2d : public Operator {
 public:
  std::string name() const override { return "depthwise_conv2d"; }
  std::vector<std::string> dims() const override {
    return {"n", "h", "w", "c", "r", "s"};
  }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("padding", 0, /*min=*/0, /*max=*/1 << 20),
            IntAttribute("stride", 1, /*min=*/1, /*max=*/1 << 20)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const DepthwiseSize s, DepthwiseSizeOf(shape));
    return std::vector<OperandSpec>{
        {"x", proto::F32, {s.n, s.h, s.w, s.c}, Role::kInput},
        {"weights", proto::F32, {s.r, s.s, s.c}, Role::kInput},
        {"y", proto::F32, {s.n, s.p, s.q, s.c}, Role::kOutput}};
  }

  // Products with padding included.
  double Flop(const proto::Shape& shape) const override {
    const auto s = DepthwiseSizeOf(shape);
    if (!s.ok()) return 0;
    return 2.0 * static_cast<double>(s->r * s->s) *
           static_cast<double>(s->n * s->p) * static_cast<double>(s->q * s->c);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const DepthwiseSize s = *DepthwiseSizeOf(shape);
    std::vector<double> y(s.n * s.p * s.q * s.c);
    ForEachReference(s.n * s.p, Flop(shape) / 2,
                     [&](int64_t line) {  // of output pixels
                       for (int64_t q = 0; q < s.q; ++q) {
                         AddPixel(s, operands[0], operands[1], line, q,
                                  &y[(line * s.q + q) * s.c]);
                       }
                     });
    return {std::move(y)};
  }

  // The tolerance of a matrix product with as long sums (product_operator.h).
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto s = DepthwiseSizeOf(shape);
    const auto depth = s.ok() ? static_cast<double>(s->r * s->s) : 0.0;
    return {4.0 * (depth + 1) * 0x1.0p-24, 0};
  }

 private:
  static void AddPixel(const DepthwiseSize& s, const std::vector<double>& x,
                       const std::vector<double>& weights, int64_t line,
                       int64_t q, double* out) {
    const int64_t image = line / s.p, p = line % s.p;
    for (int64_t i = 0; i < s.r; ++i) {
      for (int64_t j = 0; j < s.s; ++j) {
        const int64_t row = p * s.stride + i - s.padding;
        const int64_t col = q * s.stride + j - s.padding;
        const bool inside = row >= 0 && row < s.h && col >= 0 && col < s.w;
        const int64_t pixel = ((image * s.h + row) * s.w + col) * s.c;
        for (int64_t c = 0; c < s.c; ++c) {
          out[c] +=
              (inside ? x[pixel + c] : 0) * weights[(i * s.s + j) * s.c + c];
        }
      }
    }
  }
};

OPTRAIL_REGISTER_OPERATOR(DepthwiseConv2d)

}  // namespace
}  // namespace optrail::ops
