#include "ops/core/reference_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/parallel_for.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "ops/core/data_type.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// Inputs and references of earlier seeds are kept up to this size, or of so
// many fillings: the seeds of a session, with hard and with typical values.
// Making them anew takes longer than everything else.
constexpr int64_t kCacheBytes = int64_t{256} << 20;
constexpr int64_t kCachedFillings = 8;

// Independent streams for the operands of one seed.
uint64_t OperandSeed(uint64_t seed, int index) {
  return seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index);
}

uint64_t HashBytes(const std::vector<char>& bytes) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<uint64_t> hashes((bytes.size() + kPiece - 1) / kPiece);
  ParallelFor(static_cast<int64_t>(hashes.size()),
              /*threads=*/hashes.size() > 1 ? 0 : 1, [&](int64_t i) {
                hashes[i] =
                    absl::HashOf(absl::string_view(bytes.data(), bytes.size())
                                     .substr(i * kPiece, kPiece));
              });
  return absl::HashOf(hashes);
}

double PoisonOf(proto::DataType type) {
  return IsFloat(type) ? std::numeric_limits<double>::quiet_NaN()
                       : -std::numeric_limits<double>::infinity();
}

bool IsResult(Role role) { return role != Role::kInput; }

// Calls work(begin, size) for pieces of `count` elements: all cores for large
// operands, none but this one for small ones.
void InPieces(int64_t count, absl::FunctionRef<void(int64_t, int64_t)> work) {
  constexpr int64_t kPiece = int64_t{1} << 18;
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  ParallelFor(pieces, /*threads=*/pieces > 1 ? 0 : 1, [&](int64_t index) {
    work(index * kPiece, std::min(kPiece, count - index * kPiece));
  });
}

std::vector<char> Encoded(const OperandSpec& spec,
                          absl::Span<const double> values) {
  std::vector<char> bytes(spec.size_bytes());
  const auto element_bytes =
      static_cast<int64_t>(tuning::DataTypeBytes(spec.data_type));
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    EncodeValues(spec.data_type, values.subspan(begin, size),
                 bytes.data() + begin * element_bytes);
  });
  return bytes;
}

// One in eight elements becomes special: a hard value, or the same as the one
// before it.
void SprinkleHardValues(const OperandSpec& spec, Rng& rng,
                        absl::Span<double> values) {
  std::vector<double> hard = {0.0,      -0.0,        0x1.0p-149, -0x1.0p-149,
                              0x1p-126, -0x1.8p-130, spec.low,   spec.high};
  hard.insert(hard.end(), spec.hard_values.begin(), spec.hard_values.end());
  constexpr int kOneIn = 8;
  for (size_t i = 0; i < values.size(); ++i) {
    if (rng.UniformInt(kOneIn) != 0) continue;
    const auto choice = static_cast<size_t>(
        rng.UniformInt(static_cast<int64_t>(hard.size()) + 1));
    if (choice < hard.size()) {
      values[i] = hard[choice];
    } else if (i > 0) {
      values[i] = values[i - 1];
    }
  }
}

}  // namespace

std::vector<double> RandomValues(const OperandSpec& spec, uint64_t seed,
                                 Values kind) {
  std::vector<double> values(spec.elements());
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    // A generator for each piece.
    Rng rng(seed ^ static_cast<uint64_t>(begin) << 22);
    const auto piece = absl::MakeSpan(values).subspan(begin, size);
    if (!IsFloat(spec.data_type)) {
      const int64_t limit = std::max<int64_t>(spec.index_limit, 1);
      for (double& value : piece) {
        value = spec.index_skew == 1
                    ? static_cast<double>(rng.UniformInt(limit))
                    : std::floor(static_cast<double>(limit) *
                                 std::pow(rng.UniformReal(), spec.index_skew));
      }
    } else if (spec.normal) {
      for (double& value : piece) value = rng.Gaussian();
    } else {
      const double width = spec.high - spec.low;
      for (double& value : piece) value = spec.low + width * rng.UniformReal();
    }
    if (IsFloat(spec.data_type) && kind == Values::kHard) {
      SprinkleHardValues(spec, rng, piece);
    }
    // Rounded as the kernel will see them: the reference starts from the same
    // numbers.
    std::vector<char> encoded(piece.size() * 8);
    EncodeValues(spec.data_type, piece, encoded.data());
    DecodeValues(spec.data_type, encoded.data(), 0, piece);
  });
  return values;
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void Take(const CompareResult& other, CompareResult* result) {
  result->max_error_in_tolerances =
      std::max(result->max_error_in_tolerances, other.max_error_in_tolerances);
  if (other.wrong_count == 0) return;
  result->wrong_count += other.wrong_count;
  if (result->first_wrong_index >= 0 &&
      result->first_wrong_index < other.first_wrong_index) {
    return;
  }
  result->first_wrong_index = other.first_wrong_index;
  result->first_wrong_value = other.first_wrong_value;
  result->first_wrong_expected = other.first_wrong_expected;
}

}  // namespace

CompareResult Compare(proto::DataType type, const void* values,
                      absl::Span<const double> expected, Tolerance tolerance) {
  CompareResult all;
  std::mutex mutex;
  InPieces(
      static_cast<int64_t>(expected.size()), [&](int64_t from, int64_t count) {
        CompareResult mine;
        double piece[1024];
        for (int64_t begin = from; begin < from + count; begin += 1024) {
          const auto expected_piece = expected.subspan(
              begin, std::min<int64_t>(1024, from + count - begin));
          const auto got = absl::MakeSpan(piece, expected_piece.size());
          DecodeValues(type, values, begin, got);
          for (size_t i = 0; i < got.size(); ++i) {
            const double want = expected_piece[i];
            // Covers equal infinities, whose difference is NaN.
            if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) {
              continue;
            }
            double error =
                std::fabs(got[i] - want) /
                (tolerance.absolute + tolerance.relative * std::fabs(want));
            // NaN here: one of the two is NaN, or an infinity over an infinity.
            if (!(error < kInfinity)) error = kInfinity;
            if (!std::isfinite(want)) error = kInfinity;
            mine.max_error_in_tolerances =
                std::max(mine.max_error_in_tolerances, error);
            if (error <= 1) continue;
            if (mine.wrong_count++ == 0) {
              mine.first_wrong_index = begin + static_cast<int64_t>(i);
              mine.first_wrong_value = got[i];
              mine.first_wrong_expected = want;
            }
          }
        }
        const std::lock_guard<std::mutex> lock(mutex);
        Take(mine, &all);
      });
  return all;
}

CompareResult CompareFolded(proto::DataType type, const void* values,
                            absl::Span<const double> folded,
                            absl::Span<const double> weights,
                            Tolerance tolerance) {
  const auto columns = static_cast<int64_t>(weights.size());
  const int64_t runs = (columns + kFoldRun - 1) / kFoldRun;
  const int64_t rows = static_cast<int64_t>(folded.size()) / runs;
  CompareResult all;
  std::mutex mutex;
  constexpr int64_t kRowsAtOnce = 64;
  ParallelFor((rows + kRowsAtOnce - 1) / kRowsAtOnce, 0, [&](int64_t piece) {
    CompareResult mine;
    std::vector<double> row(columns);
    for (int64_t r = piece * kRowsAtOnce;
         r < std::min(rows, (piece + 1) * kRowsAtOnce); ++r) {
      DecodeValues(type, values, r * columns, absl::MakeSpan(row));
      for (int64_t run = 0; run < runs; ++run) {
        double sum = 0, allowed = 0;
        const int64_t begin = run * kFoldRun;
        for (int64_t c = begin; c < std::min(columns, begin + kFoldRun); ++c) {
          sum += weights[c] * row[c];
          allowed +=
              std::fabs(weights[c]) *
              (tolerance.absolute + tolerance.relative * std::fabs(row[c]));
        }
        const double want = folded[r * runs + run];
        double error = std::fabs(sum - want) / allowed;
        if (!(error < kInfinity)) error = kInfinity;
        mine.max_error_in_tolerances =
            std::max(mine.max_error_in_tolerances, error);
        if (error <= 1 || mine.wrong_count++ > 0) continue;
        mine.first_wrong_index = r * columns + begin;
        mine.first_wrong_value = sum;
        mine.first_wrong_expected = want;
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    Take(mine, &all);
  });
  return all;
}

int64_t CheckedOperands::DataSet::bytes() const {
  size_t bytes = 0;
  for (const auto& operand : inputs) bytes += operand.size();
  for (const auto& operand : reference)
    bytes += operand.size() * sizeof(double);
  return static_cast<int64_t>(bytes);
}

CheckedOperands::CheckedOperands(const Operator& op, const proto::Shape& shape,
                                 Device& device, std::vector<OperandSpec> specs)
    : op_(op), shape_(shape), device_(device), specs_(std::move(specs)) {}

absl::StatusOr<std::unique_ptr<CheckedOperands>> CheckedOperands::Create(
    const Operator& op, const proto::Shape& shape, Device& device, int sets) {
  OPTRAIL_CHECK(sets >= 1) << sets;
  OPTRAIL_RETURN_IF_ERROR(CheckShape(op, shape));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<OperandSpec> specs, op.Operands(shape));
  for (const OperandSpec& spec : specs) {
    if (!IsConvertible(spec.data_type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", spec.name, " of operator ", op.name(),
                       " has data type ", tuning::DataTypeName(spec.data_type),
                       ", which the reference check cannot convert"));
    }
  }
  auto checked = std::unique_ptr<CheckedOperands>(
      new CheckedOperands(op, shape, device, std::move(specs)));
  for (const OperandSpec& spec : checked->specs_) {
    Operand operand;
    const int copies = spec.role == Role::kInOut ? sets : 1;
    for (int copy = 0; copy < copies; ++copy) {
      OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                               device.Allocate(spec.size_bytes()));
      operand.buffers.push_back(std::move(buffer));
    }
    checked->has_in_out_ |= spec.role == Role::kInOut;
    checked->bytes_per_set_ += static_cast<int64_t>(spec.size_bytes());
    checked->bytes_.push_back(static_cast<int64_t>(spec.size_bytes()));
    checked->operands_.push_back(std::move(operand));
  }
  checked->addresses_.resize(checked->has_in_out_ ? sets : 1);
  for (int set = 0; set < checked->sets(); ++set) {
    for (int i = 0; i < static_cast<int>(checked->specs_.size()); ++i) {
      checked->addresses_[set].push_back(checked->buffer(i, set).data());
    }
  }
  return checked;
}

std::string CheckedOperands::Name(int index) const {
  const char* role = specs_[index].role == Role::kInput    ? "input "
                     : specs_[index].role == Role::kOutput ? "output "
                                                           : "in-out ";
  return absl::StrCat(role, "operand \"", specs_[index].name, "\" of ",
                      op_.name(), " ", tuning::CanonicalText(shape_));
}

Buffer& CheckedOperands::buffer(int index, int set) const {
  const auto& buffers = operands_[index].buffers;
  return *buffers[buffers.size() == 1 ? 0 : set];
}

int64_t CheckedOperands::page_bytes() const {
  size_t smallest = std::numeric_limits<size_t>::max();
  for (const Operand& operand : operands_) {
    for (const auto& buffer : operand.buffers) {
      smallest = std::min(smallest, buffer->page_bytes());
    }
  }
  return static_cast<int64_t>(smallest);
}

std::vector<double> CheckedOperands::ValuesOf(int index) const {
  const std::vector<char>& bytes = cache_.front().inputs[index];
  std::vector<double> values(specs_[index].elements());
  InPieces(specs_[index].elements(), [&](int64_t begin, int64_t size) {
    DecodeValues(specs_[index].data_type, bytes.data(), begin,
                 absl::MakeSpan(values).subspan(begin, size));
  });
  return values;
}

void CheckedOperands::TrimCache() {
  const int64_t limit = std::max(kCacheBytes, kCachedFillings * bytes_per_set_);
  int64_t bytes = 0;
  for (auto it = cache_.begin(); it != cache_.end();) {
    bytes += it->bytes();
    it = it != cache_.begin() && bytes > limit ? cache_.erase(it)
                                               : std::next(it);
  }
}

void CheckedOperands::ComputeReference() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  if (!cache_.front().reference.empty()) return;
  // Values of outputs are empty: a reference cannot depend on them.
  std::vector<std::vector<double>> values(specs_.size());
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (specs_[i].role != Role::kOutput) values[i] = ValuesOf(i);
  }
  if (op_.Flop(shape_) > kFoldAboveFlop &&
      specs_.back().role == Role::kOutput &&
      std::count_if(specs_.begin(), specs_.end(), [](const OperandSpec& spec) {
        return IsResult(spec.role);
      }) == 1) {
    // Of both signs, none of them near zero and no two alike.
    Rng rng(OperandSeed(cache_.front().seed, static_cast<int>(specs_.size())));
    std::vector<double> weights(specs_.back().dims.back());
    for (double& weight : weights) {
      weight = (rng.UniformInt(2) == 0 ? 1 : -1) * (0.5 + rng.UniformReal());
    }
    std::vector<double> folded =
        op_.FoldedReference(shape_, values, weights, kFoldRun);
    if (!folded.empty()) {
      cache_.front().reference = {std::move(folded)};
      cache_.front().weights = std::move(weights);
      TrimCache();
      return;
    }
  }
  std::vector<std::vector<double>> reference = op_.Reference(shape_, values);
  size_t result = 0;
  for (const OperandSpec& spec : specs_) {
    if (!IsResult(spec.role)) continue;
    OPTRAIL_CHECK(result < reference.size() &&
                  static_cast<int64_t>(reference[result].size()) ==
                      spec.elements())
        << "Reference() of operator " << op_.name() << " for shape "
        << tuning::CanonicalText(shape_)
        << " does not give one vector per output or in-out operand with as "
           "many values as operand \""
        << spec.name << "\" has";
    ++result;
  }
  cache_.front().reference = std::move(reference);
  TrimCache();
}

absl::Status CheckedOperands::Fill(uint64_t seed, Values values) {
  const auto cached =
      std::find_if(cache_.begin(), cache_.end(), [&](const DataSet& data) {
        return data.seed == seed && data.values == values;
      });
  if (cached != cache_.end()) {
    cache_.splice(cache_.begin(), cache_, cached);
  } else {
    DataSet data;
    data.seed = seed;
    data.values = values;
    for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
      data.inputs.emplace_back();
      if (specs_[i].role == Role::kOutput) continue;
      data.inputs.back() = Encoded(
          specs_[i], RandomValues(specs_[i], OperandSeed(seed, i), values));
    }
    cache_.push_front(std::move(data));
    TrimCache();
  }
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (specs_[i].role == Role::kOutput) continue;
    const std::vector<char>& bytes = cache_.front().inputs[i];
    for (const auto& buffer : operands_[i].buffers) {
      OPTRAIL_RETURN_IF_ERROR(buffer->CopyFromHost(bytes.data()));
    }
    if (specs_[i].role == Role::kInput) {
      operands_[i].input_hash = HashBytes(bytes);
    } else {
      operands_[i].initial = bytes;
    }
  }
  filled_ = true;
  return absl::OkStatus();
}

absl::Status CheckedOperands::Restore() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  for (const Operand& operand : operands_) {
    if (operand.initial.empty()) continue;
    for (const auto& buffer : operand.buffers) {
      OPTRAIL_RETURN_IF_ERROR(buffer->CopyFromHost(operand.initial.data()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedOperands::PoisonOutputs() {
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    const OperandSpec& spec = specs_[i];
    if (spec.role != Role::kOutput) continue;
    // Every element has the same bytes: encode one and repeat it.
    char element[8];
    EncodeValues(spec.data_type, {PoisonOf(spec.data_type)}, element);
    const size_t element_bytes = tuning::DataTypeBytes(spec.data_type);
    scratch_.resize(spec.size_bytes());
    for (size_t at = 0; at < scratch_.size(); at += element_bytes) {
      std::memcpy(scratch_.data() + at, element, element_bytes);
    }
    for (const auto& buffer : operands_[i].buffers) {
      OPTRAIL_RETURN_IF_ERROR(buffer->CopyFromHost(scratch_.data()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckedOperands::Arm() {
  OPTRAIL_RETURN_IF_ERROR(Restore());
  OPTRAIL_RETURN_IF_ERROR(PoisonOutputs());
  for (const Operand& operand : operands_) {
    for (const auto& buffer : operand.buffers) buffer->ArmGuards();
  }
  return absl::OkStatus();
}

absl::StatusOr<double> CheckedOperands::Verify(int set) {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  OPTRAIL_RETURN_IF_ERROR(CheckInputsAndGuards());

  ComputeReference();
  const std::vector<std::vector<double>>& reference = cache_.front().reference;
  const Tolerance tolerance = op_.ToleranceFor(shape_);
  double max_error = 0;
  size_t result = 0;
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    const OperandSpec& spec = specs_[i];
    if (!IsResult(spec.role)) continue;
    const std::vector<double>& expected = reference[result++];
    scratch_.resize(spec.size_bytes());
    OPTRAIL_RETURN_IF_ERROR(buffer(i, set).CopyToHost(scratch_.data()));
    const std::vector<double>& weights = cache_.front().weights;
    const CompareResult compared =
        weights.empty()
            ? Compare(spec.data_type, scratch_.data(), expected, tolerance)
            : CompareFolded(spec.data_type, scratch_.data(), expected, weights,
                            tolerance);
    max_error = std::max(max_error, compared.max_error_in_tolerances);
    if (!compared.ok()) {
      return absl::DataLossError(absl::StrCat(
          Name(i), " is wrong in ", compared.wrong_count, " of ",
          expected.size(),
          weights.empty() ? " elements" : " weighted sums of neighbours",
          "; first at index ", compared.first_wrong_index, ": ",
          compared.first_wrong_value, ", expected ",
          compared.first_wrong_expected, " within ", tolerance.absolute, " + ",
          tolerance.relative, " * |expected|; largest error ",
          compared.max_error_in_tolerances, " tolerances (input seed ",
          cache_.front().seed,
          cache_.front().values == Values::kHard ? ", hard values)" : ")"));
    }
  }
  return max_error;
}

absl::Status CheckedOperands::CheckInputsAndGuards() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  OPTRAIL_RETURN_IF_ERROR(device_.Synchronize());
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    for (const auto& buffer : operands_[i].buffers) {
      if (const absl::Status guards = buffer->CheckGuards(); !guards.ok()) {
        return absl::Status(
            guards.code(),
            absl::StrCat("outside of ", Name(i), ": ", guards.message()));
      }
    }
    if (specs_[i].role != Role::kInput) continue;
    scratch_.resize(specs_[i].size_bytes());
    OPTRAIL_RETURN_IF_ERROR(
        operands_[i].buffers[0]->CopyToHost(scratch_.data()));
    if (HashBytes(scratch_) == operands_[i].input_hash) continue;
    const CompareResult changed =
        Compare(specs_[i].data_type, scratch_.data(), ValuesOf(i), {});
    return absl::DataLossError(
        absl::StrCat(Name(i), " was changed in ", changed.wrong_count, " of ",
                     specs_[i].elements(), " elements; first at index ",
                     changed.first_wrong_index, ": ", changed.first_wrong_value,
                     " was ", changed.first_wrong_expected));
  }
  return absl::OkStatus();
}

absl::Status CheckedOperands::Repair() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  OPTRAIL_RETURN_IF_ERROR(Fill(cache_.front().seed, cache_.front().values));
  return Arm();
}

}  // namespace optrail::ops
