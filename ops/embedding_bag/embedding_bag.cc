// y[b] = the sum of table[indices[b, i]] over the lookups i of bag b: how a
// recommendation model reads its tables. Indices must lie in [0, rows): like
// the libraries' kernels ours does not look. indices=skewed draws small ones
// more often, as users do: it decides about the caches, not about the sum.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

// Index = rows u^8 for u uniform in [0, 1): half of the lookups go to .4% of
// the rows, as in traces of recommendation models (Gupta et al., "The
// architectural implications of Facebook's DNN-based personalized
// recommendation", 2020, figure 14, lies between this and uniform).
constexpr double kSkew = 8;

// How many of `rows` rows are among `lookups` draws of rows u^skew: of n rows
// that share a slice of u, each is missed with probability e^(-draws / n).
double DistinctRows(int64_t rows, double skew, double lookups) {
  constexpr int kSlices = 1000;
  double distinct = 0;
  double begin = 0;
  for (int slice = 1; slice <= kSlices; ++slice) {
    const double end = static_cast<double>(rows) *
                       std::pow(static_cast<double>(slice) / kSlices, skew);
    distinct -= (end - begin) * std::expm1(-lookups / kSlices / (end - begin));
    begin = end;
  }
  return distinct;
}

// The table and y have the shape's type; indices have 32 bits.
class EmbeddingBag : public FloatOperator {
 public:
  EmbeddingBag()
      : FloatOperator("embedding_bag", {"rows", "cols", "bags", "lookups"}) {}

  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("indices", "uniform", {"uniform", "skewed"})};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const auto [rows, cols, bags, lookups] = SizeOf(shape);
    if (rows > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("embedding_bag: indices have 32 bits, rows is ", rows));
    }
    const proto::DataType type = shape.data_types(0);
    OperandSpec indices = {"indices", proto::I32, {bags, lookups}};
    indices.index_limit = rows;
    if (VariantAttributeOf(*this, shape, "indices") == "skewed") {
      indices.index_skew = kSkew;
    }
    OperandSpec table = {"table", type, {rows, cols}};
    table.touched_elements =
        static_cast<double>(cols) *
        DistinctRows(rows, indices.index_skew,
                     static_cast<double>(bags) * static_cast<double>(lookups));
    return std::vector<OperandSpec>{
        std::move(table),
        std::move(indices),
        {"y", type, {bags, cols}, Role::kOutput},
    };
  }

  double Flop(const proto::Shape& shape) const override {
    const auto [rows, cols, bags, lookups] = SizeOf(shape);
    return static_cast<double>(cols) * static_cast<double>(bags) *
           static_cast<double>(lookups);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const auto [rows, cols, bags, lookups] = SizeOf(shape);
    std::vector<double> y(bags * cols);
    for (int64_t bag = 0; bag < bags; ++bag) {
      for (int64_t i = 0; i < lookups; ++i) {
        const auto row = static_cast<int64_t>(operands[1][bag * lookups + i]);
        for (int64_t c = 0; c < cols; ++c) {
          y[bag * cols + c] += operands[0][row * cols + c];
        }
      }
    }
    return {std::move(y)};
  }

  // A sum of `lookups` numbers below 1, as in sum.cc; the same row may come
  // again and again, so that it is no random walk: lookups^2 / 2 roundings. 16
  // bits are added up in f32, too.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const auto lookups = static_cast<double>(SizeOf(shape).lookups);
    return Rounded({0.5 * lookups * lookups * 0x1.0p-24, 0},
                   shape.data_types(0));
  }

 private:
  struct Size {
    int64_t rows, cols, bags, lookups;
  };
  static Size SizeOf(const proto::Shape& shape) {
    return {shape.dims(0).value(), shape.dims(1).value(), shape.dims(2).value(),
            shape.dims(3).value()};
  }
};

OPTRAIL_REGISTER_OPERATOR(EmbeddingBag)

}  // namespace
}  // namespace optrail::ops
