// A product of each pixel's channels with a small matrix, with a known
// bottleneck: the third set of kernels for the evaluation of diagnoses. Not
// listed, and part of no workload.
//
//   y[r][i][c] = sum of w[i][k] * x[r][k][c] over `channels`
//   e[r] = sum of y[r][i][c] over i and c

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/attributes.h"
#include "ops/core/operator.h"
#include "ops/core/registry.h"

namespace optrail::ops {
namespace {

constexpr int64_t kMostChannels = 32;

class ChannelMix : public Operator {
 public:
  std::string name() const override { return "channel_mix"; }
  std::vector<std::string> dims() const override { return {"rows", "cols"}; }
  std::vector<AttributeSpec> attributes() const override {
    return {IntAttribute("channels", 4, /*min=*/1, /*max=*/kMostChannels)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t rows = shape.dims(0).value();
    const int64_t cols = shape.dims(1).value();
    if (cols % 64 != 0) {
      return absl::InvalidArgumentError("expected cols in multiples of 64");
    }
    const int64_t channels = IntAttributeOf(*this, shape, "channels");
    return std::vector<OperandSpec>{
        {"x", proto::F32, {rows, channels, cols}, Role::kInput},
        {"w", proto::F32, {channels, channels}, Role::kInput},
        {"y", proto::F32, {rows, channels, cols}, Role::kOutput},
        {"e", proto::F32, {rows}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const auto channels =
        static_cast<double>(IntAttributeOf(*this, shape, "channels"));
    return static_cast<double>(shape.dims(0).value()) *
           static_cast<double>(shape.dims(1).value()) * channels *
           (2 * channels + 1);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const auto rows = static_cast<size_t>(shape.dims(0).value());
    const auto cols = static_cast<size_t>(shape.dims(1).value());
    const auto channels =
        static_cast<size_t>(IntAttributeOf(*this, shape, "channels"));
    const std::vector<double>& x = operands[0];
    const std::vector<double>& w = operands[1];
    std::vector<double> y(rows * channels * cols), e(rows);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < channels; ++i) {
        double* const to = y.data() + (r * channels + i) * cols;
        for (size_t k = 0; k < channels; ++k) {
          const double* const from = x.data() + (r * channels + k) * cols;
          for (size_t c = 0; c < cols; ++c) {
            to[c] += w[i * channels + k] * from[c];
          }
        }
        for (size_t c = 0; c < cols; ++c) e[r] += to[c];
      }
    }
    return {std::move(y), std::move(e)};
  }

  // Sums of some ten thousand values of either sign, one after the other.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {1e-3, 1e-2};
  }
};

OPTRAIL_REGISTER_OPERATOR(ChannelMix)

}  // namespace
}  // namespace optrail::ops
