#ifndef OPTRAIL_OPS_NORM_NORM_H_
#define OPTRAIL_OPS_NORM_NORM_H_

// The definitions that layer_norm and rms_norm share, forward and backward.
//
//   class RmsNorm : public NormOperator {
//    public:
//     RmsNorm() : NormOperator("rms_norm", /*centred=*/false) {}
//   };
//
// With n columns and e = 1e-5, a row is normalised to
//
//   y = gamma (x - mean) rstd + beta,  rstd = 1 / sqrt(mean of (x - mean)^2 +
//   e)
//
// (Ba, Kiros and Hinton, "Layer normalization", 2016), or without mean and beta
// (Zhang and Sennrich, "Root mean square layer normalization", 2019). With
// statistics=written it stores mean and rstd as well, which the backward
// operator reads:
//
//   h = (x - mean) rstd,  g = dy gamma
//   dx = rstd (g - mean of g - h mean of g h),  dgamma = sum of dy h over rows,
//   dbeta = sum of dy over rows.
//
// A row that holds NaN becomes NaN throughout, and so does one that holds an
// infinity where it is centred; rms_norm makes NaN of the infinity and 0 of the
// rest, as the formula says.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/operator.h"
#include "ops/lib/reference.h"

namespace optrail::ops {

inline constexpr double kNormEpsilon = 1e-5;

class NormOperator : public Operator {
 public:
  NormOperator(std::string name, bool centred)
      : name_(std::move(name)), centred_(centred) {}

  std::string name() const override { return name_; }
  std::vector<std::string> dims() const override { return {"rows", "cols"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("statistics", "none", {"none", "written"})};
  }

  // Of all but mean and rstd, which are f32.
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const proto::DataType type = shape.data_types(0);
    std::vector<OperandSpec> operands = {
        // A mean far from 0 is where squares cancel; some values stand out.
        {"x", type, {rows, cols}, Role::kInput, 0, -1, 3, {8, -8, 1}},
        {"gamma", type, {cols}, Role::kInput, 0, 0.5, 1.5}};
    if (centred_) operands.push_back({"beta", type, {cols}});
    operands.push_back({"y", type, {rows, cols}, Role::kOutput});
    if (Writes(shape)) {
      if (centred_) {
        operands.push_back({"mean", proto::F32, {rows}, Role::kOutput});
      }
      operands.push_back({"rstd", proto::F32, {rows}, Role::kOutput});
    }
    return operands;
  }

  // Per element: what the mean, the squares, the scale and the shift take.
  double Flop(const proto::Shape& shape) const override {
    return (centred_ ? 7.0 : 4.0) * static_cast<double>(shape.dims(0).value()) *
           static_cast<double>(shape.dims(1).value());
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const std::vector<double>& gamma = operands[1];
    std::vector<double> y(rows * cols), means(rows), rstds(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const double* x = &operands[0][r * cols];
      double mean = 0;
      for (int64_t c = 0; centred_ && c < cols; ++c) mean += x[c];
      mean /= static_cast<double>(cols);
      double squares = 0;
      for (int64_t c = 0; c < cols; ++c) {
        squares += (x[c] - mean) * (x[c] - mean);
      }
      const double rstd =
          1 / std::sqrt(squares / static_cast<double>(cols) + kNormEpsilon);
      for (int64_t c = 0; c < cols; ++c) {
        y[r * cols + c] = gamma[c] * (x[c] - mean) * rstd;
        if (centred_) y[r * cols + c] += operands[2][c];
      }
      means[r] = mean;
      rstds[r] = rstd;
    }
    std::vector<std::vector<double>> results = {std::move(y)};
    if (Writes(shape)) {
      if (centred_) results.push_back(std::move(means));
      results.push_back(std::move(rstds));
    }
    return results;
  }

  // In units of 2^-24. Sums over a row are random walks of up to cols steps
  // where a kernel has a single lane; what they lose, and the roundings of x -
  // mean, of values up to 8, are multiplied by rstd: about 1, but up to
  // 1 / sqrt(e) where a few columns happen to be all but equal. 16 bits are
  // computed with in f32, too, and round y once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto cols = static_cast<double>(shape.dims(1).value());
    const double scale = cols < 48 ? 8 / std::sqrt(kNormEpsilon) : 16;
    const double units = 4 + std::sqrt(cols);
    return Rounded({scale * units * 0x1.0p-24, scale * units * 0x1.0p-24},
                   shape.data_types(0));
  }

 private:
  bool Writes(const proto::Shape& shape) const {
    return VariantAttributeOf(*this, shape, "statistics") == "written";
  }

  const std::string name_;
  const bool centred_;
};

class NormBackwardOperator : public Operator {
 public:
  NormBackwardOperator(std::string name, bool centred)
      : name_(std::move(name)), centred_(centred) {}

  std::string name() const override { return name_; }
  std::vector<std::string> dims() const override { return {"rows", "cols"}; }

  // Of all but mean and rstd, which are f32.
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::F16}, {proto::BF16}};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const proto::DataType type = shape.data_types(0);
    std::vector<OperandSpec> operands = {
        {"dy", type, {rows, cols}},
        {"x", type, {rows, cols}, Role::kInput, 0, -2, 2},
        {"gamma", type, {cols}, Role::kInput, 0, 0.5, 1.5}};
    if (centred_) {
      operands.push_back(
          {"mean", proto::F32, {rows}, Role::kInput, 0, -.1, .1});
    }
    operands.push_back({"rstd", proto::F32, {rows}, Role::kInput, 0, 0.5, 1.5});
    operands.push_back({"dx", type, {rows, cols}, Role::kOutput});
    operands.push_back({"dgamma", type, {cols}, Role::kOutput});
    if (centred_) {
      operands.push_back({"dbeta", type, {cols}, Role::kOutput});
    }
    return operands;
  }

  double Flop(const proto::Shape& shape) const override {
    return (centred_ ? 14.0 : 11.0) *
           static_cast<double>(shape.dims(0).value()) *
           static_cast<double>(shape.dims(1).value());
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    const auto n = static_cast<double>(cols);
    const std::vector<double>& gamma = operands[2];
    const std::vector<double>& rstds = operands[centred_ ? 4 : 3];
    std::vector<double> dx(rows * cols), dgamma(cols), dbeta(cols), h(cols);
    for (int64_t r = 0; r < rows; ++r) {
      const double* dy = &operands[0][r * cols];
      const double* x = &operands[1][r * cols];
      const double mean = centred_ ? operands[3][r] : 0;
      double mean_g = 0;
      double mean_gh = 0;
      for (int64_t c = 0; c < cols; ++c) {
        h[c] = (x[c] - mean) * rstds[r];
        mean_g += dy[c] * gamma[c] / n;
        mean_gh += dy[c] * gamma[c] * h[c] / n;
        dgamma[c] += dy[c] * h[c];
        dbeta[c] += dy[c];
      }
      if (!centred_) mean_g = 0;
      for (int64_t c = 0; c < cols; ++c) {
        dx[r * cols + c] =
            rstds[r] * (dy[c] * gamma[c] - mean_g - h[c] * mean_gh);
      }
    }
    std::vector<std::vector<double>> results = {std::move(dx),
                                                std::move(dgamma)};
    if (centred_) results.push_back(std::move(dbeta));
    return results;
  }

  // dgamma and dbeta are sums over rows of numbers up to 3, as in sum.cc; sums
  // over a row are means here, whose error stays below that of their terms.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto rows = static_cast<double>(shape.dims(0).value());
    const auto cols = static_cast<double>(shape.dims(1).value());
    const double sums = 21 * std::sqrt(rows * std::min(rows, 65536.0));
    return Rounded(
        {(sums + 64 + 4 * std::sqrt(cols)) * 0x1.0p-24, 8 * 0x1.0p-24},
        shape.data_types(0));
  }

 private:
  const std::string name_;
  const bool centred_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_NORM_NORM_H_
