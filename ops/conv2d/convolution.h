#ifndef OPTRAIL_OPS_CONV2D_CONVOLUTION_H_
#define OPTRAIL_OPS_CONV2D_CONVOLUTION_H_

// The definition that conv2d and its fused forms share.
//
//   y[n, p, q, k] = sum over i < r, j < s, c of
//                   x[n, p * stride + i - padding, q * stride + j - padding, c]
//                   * weights[i, j, c, k]
//
// channels last (NHWC), x being 0 outside (so that there, too, a weight that is
// not finite makes NaN). Output rows and columns: (h + 2
// padding - r) / stride + 1, rounded down. Not dilated, not grouped.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/core/operator.h"
#include "ops/lib/reference.h"

namespace optrail::ops {

struct ConvolutionSize {
  int64_t n, h, w, c, k, r, s;
  int64_t stride, padding;
  int64_t p, q;  // output rows and columns

  // The size as a matrix product: every output pixel is a row.
  int64_t rows() const { return n * p * q; }
  int64_t depth() const { return r * s * c; }
  // Its A is x itself.
  bool is_product() const {
    return r == 1 && s == 1 && stride == 1 && padding == 0;
  }
};

// InvalidArgument if the weights do not fit into the padded image.
inline absl::StatusOr<ConvolutionSize> ConvolutionSizeOf(
    const proto::Shape& shape) {
  const auto dim = [&](int i) { return shape.dims(i).value(); };
  ConvolutionSize size = {dim(0), dim(1), dim(2), dim(3), dim(4), dim(5),
                          dim(6), 1,      0,      0,      0};
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

class ConvolutionOperator : public Operator {
 public:
  // `fused`: followed by a scale and a shift per channel, into which a trained
  // batch normalization folds, and relu.
  ConvolutionOperator(std::string name, bool fused)
      : name_(std::move(name)), fused_(fused) {}

  std::string name() const override { return name_; }
  std::vector<std::string> dims() const override {
    return {"n", "h", "w", "c", "k", "r", "s"};
  }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("padding", 0, /*min=*/0, /*max=*/1 << 20),
            IntAttribute("stride", 1, /*min=*/1, /*max=*/1 << 20)};
  }

  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  // x, weights and y have the shape's type, scale and shift are f32. Normal
  // where matmul's are.
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    OPTRAIL_ASSIGN_OR_RETURN(const ConvolutionSize s, ConvolutionSizeOf(shape));
    const proto::DataType type = shape.data_types(0);
    std::vector<OperandSpec> operands = {
        {"x", type, {s.n, s.h, s.w, s.c}, Role::kInput},
        {"weights", type, {s.r, s.s, s.c, s.k}, Role::kInput}};
    operands[0].normal = operands[1].normal = type != proto::F32;
    if (fused_) {
      operands.push_back({"scale", proto::F32, {s.k}, Role::kInput, 0, 0.5, 2});
      operands.push_back({"shift", proto::F32, {s.k}, Role::kInput});
    }
    operands.push_back({"y", type, {s.n, s.p, s.q, s.k}, Role::kOutput});
    return operands;
  }

  // Counts those of the product, products with padding included.
  double Flop(const proto::Shape& shape) const override {
    const auto size = ConvolutionSizeOf(shape);
    if (!size.ok()) return 0;
    return (2.0 * static_cast<double>(size->depth()) + (fused_ ? 3 : 0)) *
           static_cast<double>(size->rows()) * static_cast<double>(size->k);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const ConvolutionSize size = *ConvolutionSizeOf(shape);
    std::vector<double> y = Convolve(size, operands[0], operands[1]);
    for (size_t i = 0; fused_ && i < y.size(); ++i) {
      const double v = y[i] * operands[2][i % size.k] + operands[3][i % size.k];
      y[i] = v < 0 ? 0 : v;
    }
    return {std::move(y)};
  }

  // True unless relu follows. A row is an output pixel.
  bool HasPartialReference(const proto::Shape& shape) const override {
    return !fused_;
  }

  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    const ConvolutionSize size = *ConvolutionSizeOf(shape);
    std::vector<double> y(size.k);
    AddPixel(size, operands[0], operands[1], row, y.data());
    return y;
  }

  // Filters may be multiplied before as well as after.
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const override {
    ConvolutionSize size = *ConvolutionSizeOf(shape);
    const std::vector<double> filters =
        ReferenceProduct(size.depth(), count, size.k, operands[1], x);
    size.k = count;
    return Convolve(size, operands[0], filters);
  }

  // The tolerance of a matrix product with as long sums (product_operator.h),
  // times a scale of up to 2. With 16 bits sums are cut off and larger, as
  // there, and the result is rounded once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto size = ConvolutionSizeOf(shape);
    const auto depth = size.ok() ? static_cast<double>(size->depth()) : 0.0;
    const proto::DataType type = shape.data_types(0);
    const double factor =
        (type == proto::F32 ? 4.0 : 20.0) * (fused_ ? 2.5 : 1.0);
    return Rounded({factor * (depth + 1) * 0x1.0p-24, fused_ ? 0x1.0p-22 : 0},
                   type);
  }

 private:
  static void AddPixel(const ConvolutionSize& s,
                       const std::vector<double>& all_x,
                       const std::vector<double>& all_weights, int64_t pixel,
                       double* out) {
    const std::vector<double> nothing(s.c);
    const int64_t line = pixel / s.q, q = pixel % s.q;
    const int64_t image = line / s.p;
    for (int64_t i = 0; i < s.r; ++i) {
      for (int64_t j = 0; j < s.s; ++j) {
        const int64_t row = line % s.p * s.stride + i - s.padding;
        const int64_t col = q * s.stride + j - s.padding;
        const bool inside = row >= 0 && row < s.h && col >= 0 && col < s.w;
        const double* x = inside
                              ? &all_x[((image * s.h + row) * s.w + col) * s.c]
                              : nothing.data();
        const double* weights = &all_weights[(i * s.s + j) * s.c * s.k];
        for (int64_t c = 0; c < s.c; ++c, weights += s.k) {
          for (int64_t k = 0; k < s.k; ++k) out[k] += x[c] * weights[k];
        }
      }
    }
  }

  static std::vector<double> Convolve(const ConvolutionSize& s,
                                      const std::vector<double>& x,
                                      const std::vector<double>& weights) {
    std::vector<double> y(s.rows() * s.k);
    ForEachReference(
        s.n * s.p,
        static_cast<double>(y.size()) * static_cast<double>(s.depth()),
        [&](int64_t line) {  // of output pixels
          for (int64_t q = 0; q < s.q; ++q) {
            const int64_t pixel = line * s.q + q;
            AddPixel(s, x, weights, pixel, &y[pixel * s.k]);
          }
        });
    return y;
  }

  const std::string name_;
  const bool fused_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CONV2D_CONVOLUTION_H_
