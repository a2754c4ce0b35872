#include "suites/evaluation/random_shapes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/random.h"
#include "ops/core/attributes.h"
#include "tuning/proto/canonical.h"

namespace optrail::suites {
namespace {

enum class Kind {
  kExtent,   // log-uniform, then aligned, prime, beside a power of two or as is
  kColumns,  // the same, or the length of a vocabulary
  kRows,     // an extent, or a batch of 1 to 17
  kBatch,    // 1 to 17, or log-uniform
  kFilter,   // 1, 3, 5 or 7
  kHead,     // the width of an attention head
};

struct DimRule {
  const char* op;  // "": every operator without a rule of its own
  const char* dim;
  Kind kind;
  int64_t low, high;
};

// The first rule that fits decides.
constexpr DimRule kRules[] = {
    {"matmul", "m", Kind::kRows, 1, 11000},
    {"matmul", "n", Kind::kColumns, 1, 16384},
    {"matmul", "k", Kind::kExtent, 1, 16384},
    {"linear", "m", Kind::kRows, 1, 11000},
    {"linear", "n", Kind::kColumns, 1, 16384},
    {"linear", "k", Kind::kExtent, 1, 16384},
    {"batched_matmul", "batch", Kind::kBatch, 1, 512},
    {"batched_matmul", "", Kind::kExtent, 1, 2048},
    {"attention", "batch", Kind::kBatch, 1, 17},
    {"attention", "heads", Kind::kBatch, 1, 64},
    {"attention", "queries", Kind::kRows, 1, 8192},
    {"attention", "keys", Kind::kExtent, 16, 16384},
    {"attention", "d", Kind::kHead, 0, 0},
    {"conv2d", "n", Kind::kBatch, 1, 64},
    {"conv2d", "h", Kind::kExtent, 5, 256},
    {"conv2d", "w", Kind::kExtent, 5, 256},
    {"conv2d", "c", Kind::kExtent, 1, 1024},
    {"conv2d", "k", Kind::kExtent, 1, 1024},
    {"conv2d", "", Kind::kFilter, 0, 0},
    {"depthwise_conv2d", "n", Kind::kBatch, 1, 64},
    {"depthwise_conv2d", "c", Kind::kExtent, 1, 1024},
    {"depthwise_conv2d", "h", Kind::kExtent, 5, 256},
    {"depthwise_conv2d", "w", Kind::kExtent, 5, 256},
    {"depthwise_conv2d", "", Kind::kFilter, 0, 0},
    {"embedding_bag", "rows", Kind::kColumns, 100, 1000000},
    {"embedding_bag", "cols", Kind::kExtent, 4, 1024},
    {"embedding_bag", "bags", Kind::kRows, 1, 16384},
    {"embedding_bag", "lookups", Kind::kBatch, 1, 100},
    {"stencil", "", Kind::kExtent, 40, 4096},
    {"", "n", Kind::kExtent, 1000, 300000000},
    {"", "rows", Kind::kRows, 1, 70000},
    {"", "cols", Kind::kColumns, 1, 300000},
    {"", "", Kind::kExtent, 1, 4096},
};

// Lengths of vocabularies, and of those beside them: GPT-2, Qwen (without its
// padding), Llama 2 and 3, BERT, T5, Gemma.
constexpr int64_t kVocabularies[] = {50257, 151935, 32000, 128256,
                                     30522, 32127,  256000};
constexpr int64_t kHeadWidths[] = {32, 40, 64, 64, 64, 80, 96, 128, 128, 128};

bool IsPrime(int64_t n) {
  if (n < 2) return false;
  for (int64_t i = 2; i * i <= n; ++i) {
    if (n % i == 0) return false;
  }
  return true;
}

int64_t LogUniform(int64_t low, int64_t high, Rng& rng) {
  const double a = std::log(static_cast<double>(low));
  const double b = std::log(static_cast<double>(high) + 1);
  const auto value =
      static_cast<int64_t>(std::exp(a + (b - a) * rng.UniformReal()));
  return std::clamp(value, low, high);
}

int64_t Extent(int64_t low, int64_t high, Rng& rng) {
  int64_t value = LogUniform(low, high, rng);
  switch (rng.UniformInt(10)) {
    case 0:
    case 1:
    case 2:  // a multiple of 64
      value = (value + 63) / 64 * 64;
      break;
    case 3:
    case 4:  // a multiple of 8
      value = (value + 7) / 8 * 8;
      break;
    case 5:  // the prime below
      while (value > low && !IsPrime(value)) --value;
      break;
    case 6: {  // one more or less than a power of two
      int64_t power = 1;
      while (2 * power <= value) power *= 2;
      value = power + (rng.UniformInt(2) == 0 ? 1 : -1);
      break;
    }
    default:
      break;
  }
  return std::clamp(value, low, high);
}

int64_t Draw(const DimRule& rule, Rng& rng) {
  switch (rule.kind) {
    case Kind::kExtent:
      return Extent(rule.low, rule.high, rng);
    case Kind::kColumns:
      if (rng.UniformInt(8) == 0) {
        const int64_t vocabulary =
            kVocabularies[rng.UniformInt(std::size(kVocabularies))];
        if (vocabulary >= rule.low) return vocabulary;
      }
      return Extent(rule.low, rule.high, rng);
    case Kind::kRows:
      if (rng.UniformInt(4) == 0) return 1 + rng.UniformInt(17);
      return Extent(rule.low, rule.high, rng);
    case Kind::kBatch:
      if (rng.UniformInt(2) == 0) {
        return 1 + rng.UniformInt(std::min<int64_t>(17, rule.high));
      }
      return LogUniform(rule.low, rule.high, rng);
    case Kind::kFilter:
      return 1 + 2 * rng.UniformInt(4);
    case Kind::kHead:
      return kHeadWidths[rng.UniformInt(std::size(kHeadWidths))];
  }
  return 1;
}

const DimRule& RuleOf(const std::string& op, const std::string& dim) {
  // A fused convolution is drawn as a plain one.
  const std::string known = op == "conv_bn_relu" ? "conv2d" : op;
  bool has_own = false;
  for (const DimRule& rule : kRules) has_own |= known == rule.op;
  for (const DimRule& rule : kRules) {
    if (rule.op != (has_own ? known : "")) continue;
    if (dim == rule.dim || *rule.dim == '\0') return rule;
  }
  return *std::prev(std::end(kRules));
}

// Half of the shapes have an attribute's default.
void DrawAttribute(const ops::AttributeSpec& spec, proto::Shape* shape,
                   Rng& rng) {
  const bool by_default = rng.UniformInt(2) == 0;
  proto::Attribute attribute = spec.default_value;
  const std::string& name = attribute.name();
  if (!spec.variants.empty()) {
    const auto variants = static_cast<int64_t>(spec.variants.size());
    const int64_t other = rng.UniformInt(variants);
    if (!by_default) attribute.set_variant(spec.variants[other]);
  } else if (name == "padding") {  // the image keeps its size
    const int64_t filter = tuning::DimValue(*shape, "r").value_or(1);
    if (!by_default) attribute.set_int_(filter / 2);
  } else if (name == "group") {
    const int64_t group = int64_t{1} << rng.UniformInt(4);
    if (!by_default) attribute.set_int_(group);
  } else {
    const int64_t more =
        rng.UniformInt(std::min<int64_t>(spec.max - spec.min, 3) + 1);
    if (!by_default) attribute.set_int_(spec.min + std::min<int64_t>(more, 1));
  }
  if (!tuning::SameValue(attribute, spec.default_value)) {
    *shape->add_attributes() = std::move(attribute);
  }
}

proto::Shape DrawShape(const ops::Operator& op,
                       const RandomShapeOptions& options, Rng& rng) {
  proto::Shape shape;
  for (const std::string& name : op.dims()) {
    proto::Dim* const dim = shape.add_dims();
    dim->set_name(name);
    const DimRule& rule = RuleOf(op.name(), name);
    // Filters are square.
    const absl::optional<int64_t> square = rule.kind == Kind::kFilter
                                               ? tuning::DimValue(shape, "r")
                                               : absl::nullopt;
    int64_t value = square.value_or(0) > 0 ? *square : Draw(rule, rng);
    if (rule.kind == Kind::kExtent || rule.kind == Kind::kColumns) {
      value += options.multiple_of - 1;
      value -= value % options.multiple_of;
    }
    dim->set_value(value);
  }
  shape.add_data_types(options.type);
  for (const ops::AttributeSpec& spec : op.attributes()) {
    DrawAttribute(spec, &shape, rng);
  }
  return shape;
}

bool IsWithin(const ops::Operator& op, const proto::Shape& shape,
              const RandomShapeOptions& options) {
  if (!ops::CheckShape(op, shape).ok()) return false;
  const auto operands = op.Operands(shape);
  double bytes = 0;
  for (const ops::OperandSpec& operand : *operands) {
    bytes += static_cast<double>(operand.size_bytes());
  }
  const double max_flop = op.HasPartialReference(shape)
                              ? options.max_flop
                              : options.max_reference_flop;
  const double flop = op.Flop(shape);
  return bytes <= options.max_bytes && flop <= max_flop &&
         flop >= options.min_flop &&
         (options.accepts == nullptr || options.accepts(shape));
}

}  // namespace

absl::StatusOr<std::vector<proto::Shape>> RandomShapes(
    const ops::Operator& op, const RandomShapeOptions& options) {
  bool has_type = false;
  for (const std::vector<proto::DataType>& types : op.data_types()) {
    has_type |= types.size() == 1 && types[0] == options.type;
  }
  if (!has_type) {
    return absl::UnimplementedError(absl::StrCat(
        op.name(), ": no data type ", tuning::DataTypeName(options.type)));
  }
  Rng rng(options.seed ^ StableHash(op.name()));
  std::vector<proto::Shape> shapes;
  std::set<std::string> seen;
  const int64_t attempts = 1000 + int64_t{200} * options.count;
  for (int64_t i = 0; i < attempts; ++i) {
    if (static_cast<int>(shapes.size()) == options.count) return shapes;
    absl::StatusOr<proto::Shape> shape =
        ops::NormaliseAttributes(op, DrawShape(op, options, rng));
    if (!shape.ok() || !IsWithin(op, *shape, options)) continue;
    if (!seen.insert(tuning::CanonicalText(*shape)).second) continue;
    shapes.push_back(*std::move(shape));
  }
  if (static_cast<int>(shapes.size()) == options.count) return shapes;
  return absl::OutOfRangeError(absl::StrCat(
      op.name(), ": ", attempts, " draws gave ", shapes.size(),
      " shapes within ", options.max_bytes, " bytes and ", options.max_flop,
      " operations, expected ", options.count, "; widen the limits"));
}

}  // namespace optrail::suites
