// y = softmax(q k^T / sqrt(d)) v for every head: q and y [batch, heads,
// queries, d], k and v [batch, heads / group, keys, d]. With group > 1 so many
// heads share their keys and values (Ainslie et al., "GQA", 2023). causal=yes
// hides from a query the keys after its own, the last query's being the last
// key: queries=1 is a step of decoding over a cache of keys and values. A
// hidden value that is not finite may spoil a row all the same: kernels
// multiply it by 0.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/core/data_type.h"
#include "ops/core/registry.h"
#include "ops/lib/reference.h"

namespace optrail::ops {
namespace {

class Attention : public FloatOperator {
 public:
  Attention()
      : FloatOperator("attention", {"batch", "heads", "queries", "keys", "d"}) {
  }

  std::vector<AttributeSpec> attributes() const override {
    return {VariantAttribute("causal", "no", {"no", "yes"}),
            IntAttribute("group", 1, /*min=*/1, /*max=*/1 << 20)};
  }

  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    if (s.heads % s.group != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attention: ", s.heads, " heads are not groups of ", s.group));
    }
    if (s.causal && s.queries > s.keys) {
      return absl::InvalidArgumentError(
          absl::StrCat("attention: of ", s.queries, " queries over ", s.keys,
                       " keys some see no key with causal=yes"));
    }
    const int64_t kv_heads = s.heads / s.group;
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{
        // Scores of deviation 4/3; hard values make some win outright.
        {"q",
         type,
         {s.batch, s.heads, s.queries, s.d},
         Role::kInput,
         0,
         -2,
         2,
         {6, -6}},
        {"k",
         type,
         {s.batch, kv_heads, s.keys, s.d},
         Role::kInput,
         0,
         -2,
         2,
         {6, -6}},
        {"v", type, {s.batch, kv_heads, s.keys, s.d}, Role::kInput},
        {"y", type, {s.batch, s.heads, s.queries, s.d}, Role::kOutput},
    };
  }

  // Two products and five per score; of a causal one what is not hidden.
  double Flop(const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    double seen = static_cast<double>(s.queries) * static_cast<double>(s.keys);
    if (s.causal) {
      const auto q = static_cast<double>(s.queries);
      seen -= q * (q - 1) / 2;
    }
    return (4.0 * static_cast<double>(s.d) + 5) * seen *
           static_cast<double>(s.batch) * static_cast<double>(s.heads);
  }

  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    const Size s = SizeOf(shape);
    std::vector<double> y(operands[0].size());
    ForEachReference(
        s.batch * s.heads * s.queries,
        2.0 * static_cast<double>(y.size()) * static_cast<double>(s.keys),
        [&](int64_t row) { ComputeRow(s, operands, row, &y[row * s.d]); });
    return {std::move(y)};
  }

  // A row is a query of a head.
  bool HasPartialReference(const proto::Shape& shape) const override {
    return true;
  }

  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    const Size s = SizeOf(shape);
    std::vector<double> y(s.d);
    ComputeRow(s, operands, row, y.data());
    return y;
  }

  // In units of 2^-24 of values up to 1: the error of a score, a sum of d
  // products of up to 36 that is scaled, goes into its exponential; then come
  // the sums over keys, whose weights add up to 1. With 16 bits weights are
  // rounded before they multiply values up to 1, and the result once more.
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    const Size s = SizeOf(shape);
    const double scores = 64 + 4 * static_cast<double>(s.d);
    const double sums = 2 * std::sqrt(static_cast<double>(s.keys));
    const proto::DataType type = shape.data_types(0);
    const double weights = type == proto::F32 ? 0 : RoundingOf(type).relative;
    return Rounded(
        {(scores + sums) * 0x1.0p-24 + weights, (scores + sums) * 0x1.0p-24},
        type);
  }

 private:
  struct Size {
    int64_t batch, heads, queries, keys, d, group;
    bool causal;
  };
  // y [s.d], zeros before.
  static void ComputeRow(const Size& s,
                         absl::Span<const std::vector<double>> operands,
                         int64_t row, double* y) {
    const double scale = 1 / std::sqrt(static_cast<double>(s.d));
    std::vector<double> scores(s.keys);
    const int64_t query = row % s.queries;
    const int64_t kv_head = row / s.queries / s.group;
    const double* const q = &operands[0][row * s.d];
    const double* const k = &operands[1][kv_head * s.keys * s.d];
    const double* const v = &operands[2][kv_head * s.keys * s.d];
    const int64_t keys = s.causal ? s.keys - s.queries + query + 1 : s.keys;
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = 0; c < s.d; ++c) scores[j] += q[c] * k[j * s.d + c];
      scores[j] *= scale;
    }
    const double max = *std::max_element(scores.begin(), scores.begin() + keys);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      scores[j] = std::exp(scores[j] - max);
      sum += scores[j];
    }
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = 0; c < s.d; ++c) {
        y[c] += scores[j] / sum * v[j * s.d + c];
      }
    }
  }

  Size SizeOf(const proto::Shape& shape) const {
    return {shape.dims(0).value(),
            shape.dims(1).value(),
            shape.dims(2).value(),
            shape.dims(3).value(),
            shape.dims(4).value(),
            IntAttributeOf(*this, shape, "group"),
            VariantAttributeOf(*this, shape, "causal") == "yes"};
  }
};

OPTRAIL_REGISTER_OPERATOR(Attention)

}  // namespace
}  // namespace optrail::ops
