#include "ops/core/operand_values.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/status_macros.h"
#include "ops/core/data_type.h"
#include "ops/core/input_file.h"
#include "ops/core/pieces.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// A denormal costs many processors a hundred cycles wherever it is met, and in
// a product it meets a row or a column of the other operand: with one in
// eighteen a check of 2048^3 took a hundred times as long as a call. An
// operand of more than some three hundred elements therefore has about this
// many denormals.
constexpr double kDenormals = 16;

// The elements of an operand that share hard values: a row, or of one dimension
// some of its elements.
int64_t RowOf(const OperandSpec& spec) {
  constexpr int64_t kPiece = 64;
  return spec.dims.size() < 2 ? kPiece : std::max<int64_t>(spec.dims.back(), 1);
}

// One in eight elements becomes special: a hard value, or the same as the one
// before it. A row has the operand's own hard values up to one that is drawn:
// where a single one decides what becomes of a row, as the largest exponent
// does, others are left in which all elements show.
void SprinkleHardValues(const OperandSpec& spec, Rng& rng,
                        absl::Span<double> values) {
  std::vector<double> hard = {0.0,      -0.0,        0x1.0p-149, -0x1.0p-149,
                              0x1p-126, -0x1.8p-130, spec.low,   spec.high};
  const auto common = static_cast<int64_t>(hard.size());
  hard.insert(hard.end(), spec.hard_values.begin(), spec.hard_values.end());
  const auto own = static_cast<int64_t>(spec.hard_values.size());
  const auto row = static_cast<size_t>(RowOf(spec));
  int64_t choices = 0;  // of this row
  constexpr int kOneIn = 8;
  const auto is_denormal = [](double value) {
    return value != 0 && std::abs(value) < 0x1p-126;
  };
  const double denormals =
      static_cast<double>(std::count_if(hard.begin(), hard.end(), is_denormal));
  const double kept =
      kDenormals * kOneIn * static_cast<double>(hard.size() + 1) /
      (std::max(denormals, 1.0) * static_cast<double>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % row == 0) {
      choices = common + (own > 0 ? rng.UniformInt(own + 1) : 0);
    }
    if (rng.UniformInt(kOneIn) != 0) continue;
    const auto choice = static_cast<size_t>(rng.UniformInt(choices + 1));
    if (choice < static_cast<size_t>(choices)) {
      const bool left_out =
          is_denormal(hard[choice]) && kept < 1 && rng.UniformReal() >= kept;
      values[i] = left_out ? 0 : hard[choice];
    } else if (i > 0) {
      values[i] = values[i - 1];
    }
  }
}

// Rounds values to what the kernel will see: the reference starts from the same
// numbers.
void Round(proto::DataType type, absl::Span<double> values) {
  std::vector<char> encoded(values.size() * 8);
  EncodeValues(type, values, encoded.data());
  DecodeValues(type, encoded.data(), 0, values);
}

// Normal values of deviation 1, cut off at 4.1: piecewise uniform between
// quantiles. Eight times as fast as exact ones, of which the operands of a
// product take millions in every process that measures.
class NormalValues {
 public:
  void Fill(Rng& rng, absl::Span<double> values) const {
    uint64_t bits = 0;
    for (size_t i = 0; i < values.size(); ++i, bits >>= 32) {
      if (i % 2 == 0) bits = rng();
      const auto half = static_cast<uint32_t>(bits);
      const double* const node = &nodes_[half >> 20];
      values[i] = node[0] + (node[1] - node[0]) * (half & 0xfffff) * 0x1p-20;
    }
  }

  static const NormalValues& Get() {
    static const auto* const normal = new NormalValues;
    return *normal;
  }

 private:
  static constexpr int kPieces = 1 << 12;  // the upper bits of 32
  static constexpr double kEnd = 4.1;

  NormalValues() : nodes_(kPieces + 1) {
    for (int i = kPieces / 2; i < kPieces; ++i) {
      nodes_[i] = NormalQuantile(static_cast<double>(i) / kPieces);
      nodes_[kPieces - i] = -nodes_[i];
    }
    nodes_[0] = -kEnd;
    nodes_[kPieces] = kEnd;
  }

  std::vector<double> nodes_;
};

// Values of one piece of an operand, not yet rounded to its type.
void FillPiece(const OperandSpec& spec, uint64_t seed, Values kind,
               int64_t begin, absl::Span<double> piece) {
  // A generator for each piece.
  Rng rng(seed ^ static_cast<uint64_t>(begin) << 22);
  if (!IsFloat(spec.data_type)) {
    const int64_t limit = std::max<int64_t>(spec.index_limit, 1);
    for (double& value : piece) {
      value = spec.index_skew == 1
                  ? static_cast<double>(rng.UniformInt(limit))
                  : std::floor(static_cast<double>(limit) *
                               std::pow(rng.UniformReal(), spec.index_skew));
    }
  } else if (spec.normal) {
    NormalValues::Get().Fill(rng, piece);
  } else {
    const double width = spec.high - spec.low;
    for (double& value : piece) value = spec.low + width * rng.UniformReal();
  }
  if (IsFloat(spec.data_type) && kind == Values::kHard) {
    SprinkleHardValues(spec, rng, piece);
  }
}

}  // namespace

std::vector<double> RandomValues(const OperandSpec& spec, uint64_t seed,
                                 Values kind) {
  std::vector<double> values(spec.elements());
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    const auto piece = absl::MakeSpan(values).subspan(begin, size);
    FillPiece(spec, seed, kind, begin, piece);
    Round(spec.data_type, piece);
  });
  return values;
}

std::vector<double> RecordedValues(const OperandSpec& spec,
                                   absl::Span<const double> recorded,
                                   uint64_t seed, Values kind) {
  std::vector<double> values(spec.elements());
  Rng rng(seed);
  size_t at = rng.UniformInt(static_cast<int64_t>(recorded.size()));
  for (double& value : values) {
    value = recorded[at];
    if (++at == recorded.size()) at = 0;
  }
  if (IsFloat(spec.data_type) && kind == Values::kHard) {
    SprinkleHardValues(spec, rng, absl::MakeSpan(values));
  }
  Round(spec.data_type, absl::MakeSpan(values));
  return values;
}
void RandomBytes(const OperandSpec& spec, uint64_t seed, Values kind,
                 char* bytes) {
  const auto element_bytes =
      static_cast<int64_t>(tuning::DataTypeBytes(spec.data_type));
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    std::vector<double> piece(size);
    FillPiece(spec, seed, kind, begin, absl::MakeSpan(piece));
    EncodeValues(spec.data_type, piece, bytes + begin * element_bytes);
  });
}

void EncodeOperand(const OperandSpec& spec, absl::Span<const double> values,
                   char* bytes) {
  const auto element_bytes =
      static_cast<int64_t>(tuning::DataTypeBytes(spec.data_type));
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    EncodeValues(spec.data_type, values.subspan(begin, size),
                 bytes + begin * element_bytes);
  });
}

absl::StatusOr<std::vector<double>> ReadRecorded(const OperandSpec& spec) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<double> values,
                           ReadInputFile(spec.file));
  if (spec.index_limit <= 0) return values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < static_cast<double>(spec.index_limit)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        spec.file, ": value ", i, " is ", values[i], ", expected 0 to ",
        spec.index_limit - 1, " for operand \"", spec.name, "\""));
  }
  return values;
}

}  // namespace optrail::ops
