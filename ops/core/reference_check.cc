#include "ops/core/reference_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/hash/crc32c.h"
#include "base/hash/hash.h"
#include "base/process/machine_memory.h"
#include "base/random.h"
#include "base/stats/distributions.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "ops/core/data_type.h"
#include "ops/core/input_file.h"
#include "ops/core/pieces.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// Inputs and references of earlier seeds are kept up to this size, or of so
// many fillings: the seeds of a session, with hard and with typical values.
// Making them anew takes longer than everything else.
constexpr int64_t kCacheBytes = int64_t{256} << 20;
constexpr int64_t kCachedFillings = 8;
// So many of those keep a reference: the seeds of a search.
constexpr int64_t kCachedReferences = 3;
// And of the machine's memory no more than this part: others need some, too.
constexpr int64_t kPartOfMemory = 4;

// What is left of it is the system's.
constexpr double kMostOfMemory = 7. / 8;

// Independent streams for the operands of one seed.
uint64_t OperandSeed(uint64_t seed, int index) {
  return seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index);
}

// Rounds each MiB by itself, on all cores.
template <typename T>
std::vector<T> OfPieces(absl::string_view bytes,
                        absl::FunctionRef<T(absl::string_view)> hash) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<T> hashes((bytes.size() + kPiece - 1) / kPiece);
  ParallelFor(static_cast<int64_t>(hashes.size()),
              /*threads=*/hashes.size() > 1 ? 0 : 1, [&](int64_t i) {
                hashes[i] = hash(bytes.substr(i * kPiece, kPiece));
              });
  return hashes;
}

template <typename Bytes>
absl::string_view ViewOf(const Bytes& bytes) {
  return {bytes.data(), bytes.size()};
}

uint64_t HashBytes(absl::string_view bytes) {
  return absl::HashOf(OfPieces<uint64_t>(
      bytes, [](absl::string_view piece) { return absl::HashOf(piece); }));
}

double PoisonOf(proto::DataType type) {
  return IsFloat(type) ? std::numeric_limits<double>::quiet_NaN()
                       : -std::numeric_limits<double>::infinity();
}

bool IsResult(Role role) { return role != Role::kInput; }

template <typename Bytes>
Bytes Encoded(const OperandSpec& spec, absl::Span<const double> values) {
  Bytes bytes(spec.size_bytes());
  const auto element_bytes =
      static_cast<int64_t>(tuning::DataTypeBytes(spec.data_type));
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    EncodeValues(spec.data_type, values.subspan(begin, size),
                 bytes.data() + begin * element_bytes);
  });
  return bytes;
}

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

// Returns the values of an operand with a file.
absl::StatusOr<std::vector<double>> Recorded(const OperandSpec& spec) {
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

// Rows are the last dimension.
std::pair<int64_t, int64_t> MatrixOf(const OperandSpec& spec) {
  const int64_t columns = spec.dims.empty() ? 1 : spec.dims.back();
  return {spec.elements() / columns, columns};
}

// The operator's parts of a reference, on several threads at a time; operands
// are made when they are needed.
class PartOf : public PartialReference {
 public:
  using Values = std::vector<std::vector<double>>;
  PartOf(const Operator& op, const proto::Shape& shape,
         std::function<Values()> make_values)
      : op_(op), shape_(shape), make_values_(std::move(make_values)) {}

  std::vector<double> Row(int64_t row) const override {
    return op_.ReferenceRow(shape_, values(), row);
  }
  std::vector<double> Times(absl::Span<const double> x,
                            int count) const override {
    return op_.ReferenceTimes(shape_, values(), x, count);
  }

 private:
  const Values& values() const {
    std::call_once(once_, [this] { values_ = make_values_(); });
    return values_;
  }

  const Operator& op_;
  const proto::Shape& shape_;
  const std::function<Values()> make_values_;
  mutable std::once_flag once_;
  mutable Values values_;
};

// Each list behind its length, as they lie in memory: for this machine alone.
std::string EncodeLists(const std::vector<std::vector<double>>& lists) {
  std::string bytes;
  for (const std::vector<double>& list : lists) {
    const uint64_t size = list.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes.append(reinterpret_cast<const char*>(list.data()),
                 list.size() * sizeof(double));
  }
  return bytes;
}

absl::optional<std::vector<std::vector<double>>> DecodeLists(
    absl::string_view bytes) {
  std::vector<std::vector<double>> lists;
  while (!bytes.empty()) {
    uint64_t size = 0;
    if (bytes.size() < sizeof(size)) return absl::nullopt;
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    if (size > bytes.size() / sizeof(double)) return absl::nullopt;
    std::vector<double>& list = lists.emplace_back(size);
    if (size == 0) continue;
    std::memcpy(list.data(), bytes.data(), size * sizeof(double));
    bytes.remove_prefix(size * sizeof(double));
  }
  return lists;
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

// RandomValues, encoded: each piece while it is in a cache.
template <typename Bytes>
Bytes RandomBytes(const OperandSpec& spec, uint64_t seed, Values kind) {
  Bytes bytes(spec.size_bytes());
  const auto element_bytes =
      static_cast<int64_t>(tuning::DataTypeBytes(spec.data_type));
  InPieces(spec.elements(), [&](int64_t begin, int64_t size) {
    std::vector<double> piece(size);
    FillPiece(spec, seed, kind, begin, absl::MakeSpan(piece));
    EncodeValues(spec.data_type, piece, bytes.data() + begin * element_bytes);
  });
  return bytes;
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

int64_t CheckedOperands::DataSet::bytes() const {
  size_t bytes = 0;
  for (const auto& operand : inputs) bytes += operand.size();
  for (const auto& operand : reference)
    bytes += operand.size() * sizeof(double);
  if (part) {
    bytes +=
        (part->products.size() + part->sampled_values.size()) * sizeof(double);
  }
  return static_cast<int64_t>(bytes);
}

CheckedOperands::CheckedOperands(const Operator& op, const proto::Shape& shape,
                                 Device* device, std::vector<OperandSpec> specs)
    : op_(op), shape_(shape), device_(device), specs_(std::move(specs)) {}

absl::StatusOr<std::unique_ptr<CheckedOperands>> CheckedOperands::Create(
    const Operator& op, const proto::Shape& shape, Device& device, int sets) {
  return CreateOn(&device, op, shape, sets);
}

absl::StatusOr<std::unique_ptr<CheckedOperands>> CheckedOperands::CreateToMake(
    const Operator& op, const proto::Shape& shape) {
  return CreateOn(nullptr, op, shape, /*sets=*/1);
}

absl::StatusOr<std::unique_ptr<CheckedOperands>> CheckedOperands::CreateOn(
    Device* device, const Operator& op, const proto::Shape& shape, int sets) {
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
  if (device != nullptr) {
    // Said before anything is made: it would take half a minute, and memory
    // that others need.
    const double needed = checked->LeastHostBytes(sets);
    const auto there = static_cast<double>(MachineMemoryBytes());
    if (needed > there * kMostOfMemory) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "operands, copies of their inputs and the reference take ",
          FormatBytes(needed), " or more; the machine has ",
          FormatBytes(there)));
    }
  }
  for (const OperandSpec& spec : checked->specs_) {
    Operand operand;
    const int copies = device == nullptr           ? 0
                       : spec.role == Role::kInOut ? sets
                                                   : 1;
    for (int copy = 0; copy < copies; ++copy) {
      OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer,
                               device->Allocate(spec.size_bytes()));
      operand.buffers.push_back(std::move(buffer));
    }
    if (!spec.file.empty() && spec.role != Role::kOutput) {
      OPTRAIL_ASSIGN_OR_RETURN(operand.recorded, Recorded(spec));
    }
    checked->has_in_out_ |= spec.role == Role::kInOut;
    checked->bytes_per_set_ += static_cast<int64_t>(spec.size_bytes());
    checked->bytes_.push_back(static_cast<int64_t>(spec.size_bytes()));
    checked->operands_.push_back(std::move(operand));
  }
  if (device == nullptr) return checked;
  checked->addresses_.resize(checked->has_in_out_ ? sets : 1);
  for (int set = 0; set < checked->sets(); ++set) {
    for (int i = 0; i < static_cast<int>(checked->specs_.size()); ++i) {
      checked->addresses_[set].push_back(checked->buffer(i, set).data());
    }
  }
  return checked;
}

double CheckedOperands::LeastHostBytes(int sets) const {
  const bool far = device_->kind() != proto::CPU;
  const bool whole = PartialResult() < 0;
  double bytes = 0;
  for (const OperandSpec& spec : specs_) {
    const auto size = static_cast<double>(spec.size_bytes());
    if (!far) bytes += size * (spec.role == Role::kInOut ? sets : 1);
    if (spec.role != Role::kOutput) bytes += size;
    // The reference and what it is computed from.
    if (whole) bytes += 8 * static_cast<double>(spec.elements());
  }
  return bytes;
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

std::vector<double> CheckedOperands::ValuesOf(const DataSet& data,
                                              int index) const {
  const Bytes& bytes = data.inputs[index];
  std::vector<double> values(specs_[index].elements());
  InPieces(specs_[index].elements(), [&](int64_t begin, int64_t size) {
    DecodeValues(specs_[index].data_type, bytes.data(), begin,
                 absl::MakeSpan(values).subspan(begin, size));
  });
  return values;
}

void CheckedOperands::TrimCache() {
  int64_t reference_bytes = 0;
  for (const OperandSpec& spec : specs_) {
    if (IsResult(spec.role) && PartialResult() < 0) {
      reference_bytes += spec.elements() * static_cast<int64_t>(sizeof(double));
    }
  }
  const int64_t limit =
      std::max(kCacheBytes, std::min(MachineMemoryBytes() / kPartOfMemory,
                                     kCachedFillings * bytes_per_set_ +
                                         kCachedReferences * reference_bytes));
  int64_t bytes = 0;
  for (auto it = cache_.begin(); it != cache_.end();) {
    bytes += (*it)->bytes();
    it = it != cache_.begin() && bytes > limit ? cache_.erase(it)
                                               : std::next(it);
  }
}

std::vector<std::vector<double>> CheckedOperands::AllValues(
    const DataSet& data) const {
  // Values of outputs are empty: a reference cannot depend on them.
  std::vector<std::vector<double>> values(specs_.size());
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (specs_[i].role != Role::kOutput) values[i] = ValuesOf(data, i);
  }
  return values;
}

int CheckedOperands::PartialResult() const {
  if (!op_.HasPartialReference(shape_) ||
      op_.Flop(shape_) <= kMaxWholeReferenceFlop) {
    return -1;
  }
  int found = -1;
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (!IsResult(specs_[i].role)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

void CheckedOperands::ShareReferences(const std::string& folder,
                                      const std::string& build) {
  shared_.emplace(folder, ".reference");
  shared_build_ = build;
}

std::string CheckedOperands::SharedKey() const {
  std::string text =
      absl::StrCat(shared_build_, "\n", op_.name(), " ", op_.version(), " ",
                   tuning::CanonicalText(shape_), " ",
                   current().values == Values::kHard ? "hard" : "typical");
  // Of the inputs that the reference is of, whatever they were made of.
  for (const Bytes& bytes : current().inputs) {
    for (const uint32_t sum : OfPieces<uint32_t>(
             ViewOf(bytes),
             [](absl::string_view piece) { return Crc32c(piece); })) {
      absl::StrAppend(&text, " ", sum);
    }
  }
  return absl::StrCat(Fingerprint(text), Fingerprint(absl::StrCat("2 ", text)),
                      "-", current().seed);
}

bool CheckedOperands::FindShared(const std::string& key) {
  const absl::StatusOr<std::string> bytes = shared_->Get(key);
  if (!bytes.ok()) return false;
  const absl::optional<std::vector<std::vector<double>>> lists =
      DecodeLists(*bytes);
  if (!lists.has_value()) return false;
  DataSet& data = current();
  if (const int index = PartialResult(); index >= 0) {
    if (lists->size() != 2) return false;
    const auto [rows, columns] = MatrixOf(specs_[index]);
    PartialExpectation part =
        PlanPartially(rows, columns, data.seed, !(*lists)[0].empty());
    part.products = (*lists)[0];
    part.sampled_values = (*lists)[1];
    if ((!part.products.empty() &&
         part.products.size() != static_cast<size_t>(rows * kProjections)) ||
        part.sampled_values.size() != part.sampled.size() * columns) {
      return false;
    }
    data.part = std::move(part);
    return true;
  }
  size_t result = 0;
  for (const OperandSpec& spec : specs_) {
    if (!IsResult(spec.role)) continue;
    if (result >= lists->size() ||
        static_cast<int64_t>((*lists)[result++].size()) != spec.elements()) {
      return false;
    }
  }
  data.reference = *lists;
  return true;
}

void CheckedOperands::Share(const std::string& key) const {
  const DataSet& data = current();
  const std::string bytes =
      data.part ? EncodeLists({data.part->products, data.part->sampled_values})
                : EncodeLists(data.reference);
  // Without it the next process computes it again.
  (void)shared_->Put(key, bytes);
}

void CheckedOperands::ComputeReference() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  DataSet& data = current();
  if (data.has_reference()) return;
  const std::string key = shared_ ? SharedKey() : "";
  if (shared_ && FindShared(key)) {
    TrimCache();
    return;
  }
  if (const int index = PartialResult(); index >= 0) {
    const auto [rows, columns] = MatrixOf(specs_[index]);
    data.part =
        ExpectPartially(PartOf(op_, shape_, [&] { return AllValues(data); }),
                        rows, columns, data.seed);
  } else {
    std::vector<std::vector<double>> reference =
        op_.Reference(shape_, AllValues(data));
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
    data.reference = std::move(reference);
  }
  if (shared_) Share(key);
  TrimCache();
}

void CheckedOperands::Make(uint64_t seed, Values values) {
  const auto cached =
      std::find_if(cache_.begin(), cache_.end(), [&](const auto& data) {
        return data->seed == seed && data->values == values;
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
      const std::vector<double>& recorded = operands_[i].recorded;
      const uint64_t own_seed = OperandSeed(seed, i);
      if (values == Values::kZeros && IsFloat(specs_[i].data_type)) {
        data.inputs.back() =
            Bytes(static_cast<size_t>(specs_[i].size_bytes()), '\0');
        continue;
      }
      data.inputs.back() =
          recorded.empty()
              ? RandomBytes<Bytes>(specs_[i], own_seed, values)
              : Encoded<Bytes>(specs_[i], RecordedValues(specs_[i], recorded,
                                                         own_seed, values));
    }
    cache_.push_front(std::make_shared<DataSet>(std::move(data)));
    TrimCache();
  }
  filled_ = true;
}

absl::Status CheckedOperands::Fill(uint64_t seed, Values values) {
  Make(seed, values);
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (specs_[i].role == Role::kOutput) continue;
    const Bytes& bytes = current().inputs[i];
    if (specs_[i].role == Role::kInput && operands_[i].buffers[0]->far()) {
      OPTRAIL_RETURN_IF_ERROR(FillFar(i));
      continue;
    }
    for (const auto& buffer : operands_[i].buffers) {
      OPTRAIL_RETURN_IF_ERROR(buffer->CopyFromHost(bytes.data()));
    }
    if (specs_[i].role == Role::kInput) {
      operands_[i].input_hash = HashBytes(ViewOf(bytes));
    } else {
      operands_[i].initial.assign(bytes.begin(), bytes.end());
    }
  }
  return absl::OkStatus();
}

CheckedOperands::Made CheckedOperands::TakeMade(uint64_t seed) {
  Made made;
  for (auto it = cache_.begin(); it != cache_.end();) {
    const auto here = it++;
    if ((*here)->seed != seed) continue;
    made.data_.push_back(std::move(*here));
    cache_.erase(here);
  }
  filled_ &= !cache_.empty();
  return made;
}

void CheckedOperands::Adopt(Made made) {
  for (std::shared_ptr<DataSet>& data : made.data_) {
    const bool known =
        std::any_of(cache_.begin(), cache_.end(), [&](const auto& other) {
          return other->seed == data->seed && other->values == data->values;
        });
    if (known) continue;
    // The current inputs stay so.
    cache_.insert(cache_.empty() ? cache_.begin() : std::next(cache_.begin()),
                  std::move(data));
  }
  TrimCache();
}

absl::Status CheckedOperands::FillFar(int index) {
  DataSet& data = current();
  Buffer& operand = *operands_[index].buffers[0];
  data.kept.resize(specs_.size());
  if (data.kept[index] == nullptr) {
    auto kept = device_->Allocate(specs_[index].size_bytes());
    // What there is no room for comes from the host each time.
    if (!kept.ok()) {
      OPTRAIL_RETURN_IF_ERROR(operand.CopyFromHost(data.inputs[index].data()));
      operands_[index].input_hash = HashBytes(ViewOf(data.inputs[index]));
      return absl::OkStatus();
    }
    OPTRAIL_RETURN_IF_ERROR((*kept)->CopyFromHost(data.inputs[index].data()));
    data.kept[index] = *std::move(kept);
  }
  return operand.CopyFrom(*data.kept[index]);
}

absl::StatusOr<bool> CheckedOperands::InputIsUnchanged(int index) {
  DataSet& data = current();
  Buffer& operand = *operands_[index].buffers[0];
  if (index < static_cast<int>(data.kept.size()) &&
      data.kept[index] != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool equal,
                             operand.Equals(*data.kept[index]));
    if (equal) return true;
    // The host's bytes decide; it may be what was kept that was written to.
    data.kept[index].reset();
    operands_[index].input_hash = HashBytes(ViewOf(data.inputs[index]));
  }
  scratch_.resize(specs_[index].size_bytes());
  OPTRAIL_RETURN_IF_ERROR(operand.CopyToHost(scratch_.data()));
  return HashBytes(ViewOf(scratch_)) == operands_[index].input_hash;
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
    if (operands_[i].buffers[0]->far() && element_bytes <= 4) {
      for (const auto& buffer : operands_[i].buffers) {
        OPTRAIL_RETURN_IF_ERROR(buffer->FillWith(element, element_bytes));
      }
      continue;
    }
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

bool CheckedOperands::far() const { return buffer(0, 0).far(); }

absl::StatusOr<absl::optional<double>> CheckedOperands::ErrorWhereItLies(
    int set) {
  const DataSet& data = current();
  if (!far() || !data.part || data.part->products.empty()) {
    return absl::optional<double>();
  }
  const int index = PartialResult();
  const OperandSpec& spec = specs_[index];
  if (spec.data_type != proto::F32 && spec.data_type != proto::F16 &&
      spec.data_type != proto::BF16) {
    return absl::optional<double>();
  }
  const PartialExpectation& part = *data.part;
  const Tolerance tolerance = op_.ToleranceFor(shape_);
  RowSums sums;
  sums.data_type = spec.data_type;
  sums.rows = part.rows;
  sums.signs = SignWords(part.columns, part.seed);
  sums.absolute = tolerance.absolute;
  sums.relative = tolerance.relative;
  static_assert(kRowSums == kProjections + 1);
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> of_rows,
                           buffer(index, set).SumRows(sums));
  const size_t row_bytes = part.columns * tuning::DataTypeBytes(spec.data_type);
  std::vector<char> sampled(part.sampled.size() * row_bytes);
  for (size_t i = 0; i < part.sampled.size(); ++i) {
    OPTRAIL_RETURN_IF_ERROR(buffer(index, set)
                                .CopyPartToHost(part.sampled[i] * row_bytes,
                                                absl::MakeSpan(sampled).subspan(
                                                    i * row_bytes, row_bytes)));
  }
  return ErrorByParts(spec.data_type, sampled.data(), of_rows, part, tolerance);
}

absl::StatusOr<CheckedOperands::Results> CheckedOperands::TakeResults(int set) {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  OPTRAIL_RETURN_IF_ERROR(CheckInputsAndGuards());
  ComputeReference();
  Results results(*this, cache_.front());
  OPTRAIL_ASSIGN_OR_RETURN(results.error_, ErrorWhereItLies(set));
  if (results.error_) return results;
  // Memory that was used already: to get as much from the system may take
  // longer than to copy.
  if (taken_ == nullptr || taken_.use_count() > 1) {
    taken_ = std::make_shared<std::vector<std::vector<char>>>(specs_.size());
  }
  results.bytes_ = taken_;
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (!IsResult(specs_[i].role)) continue;
    std::vector<char>& bytes = (*taken_)[i];
    bytes.resize(specs_[i].size_bytes());
    OPTRAIL_RETURN_IF_ERROR(buffer(i, set).CopyToHost(bytes.data()));
  }
  return results;
}

absl::StatusOr<CheckedOperands::ResultBytes> CheckedOperands::CopyResults(
    int set) {
  ResultBytes bytes(specs_.size());
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    if (!IsResult(specs_[i].role)) continue;
    bytes[i].resize(specs_[i].size_bytes());
    OPTRAIL_RETURN_IF_ERROR(buffer(i, set).CopyToHost(bytes[i].data()));
  }
  return bytes;
}

uint64_t CheckedOperands::BitsOf(const ResultBytes& bytes) const {
  std::string hashes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!IsResult(specs_[i].role)) continue;
    absl::StrAppend(&hashes, Fingerprint(ViewOf(bytes[i])));
  }
  return StableHash(hashes);
}

absl::StatusOr<double> CheckedOperands::Results::Compare() const {
  if (error_) return *error_;
  const CheckedOperands& all = *operands_;
  const DataSet& data = *data_;
  const Tolerance tolerance = all.op_.ToleranceFor(all.shape_);
  double max_error = 0;
  size_t result = 0;
  for (int i = 0; i < static_cast<int>(all.specs_.size()); ++i) {
    const OperandSpec& spec = all.specs_[i];
    if (!IsResult(spec.role)) continue;
    const char* const bytes = (*bytes_)[i].data();
    const CompareResult compared =
        data.part
            ? ComparePartially(spec.data_type, bytes, *data.part, tolerance,
                               PartOf(all.op_, all.shape_,
                                      [&] { return all.AllValues(data); }))
            : ops::Compare(spec.data_type, bytes, data.reference[result],
                           tolerance);
    ++result;
    max_error = std::max(max_error, compared.max_error_in_tolerances);
    if (!compared.ok()) {
      return absl::DataLossError(absl::StrCat(
          all.Name(i), " is wrong in ", data.part ? "at least " : "",
          compared.wrong_count, " of ", spec.elements(),
          " elements; first at index ", compared.first_wrong_index, ": ",
          compared.first_wrong_value, ", expected ",
          compared.first_wrong_expected, " within ", tolerance.absolute, " + ",
          tolerance.relative, " * |expected|; largest error ",
          compared.max_error_in_tolerances, " tolerances (input seed ",
          data.seed, data.values == Values::kHard ? ", hard values)" : ")"));
    }
  }
  return max_error;
}

absl::optional<uint64_t> CheckedOperands::Results::Bits() const {
  if (bytes_ == nullptr) return absl::nullopt;
  return operands_->BitsOf(*bytes_);
}

absl::StatusOr<double> CheckedOperands::Verify(int set) {
  OPTRAIL_ASSIGN_OR_RETURN(const Results results, TakeResults(set));
  return results.Compare();
}

absl::StatusOr<bool> CheckedOperands::AreSoundWhereTheyLie() {
  if (!far()) return false;
  DataSet& data = current();
  data.kept.resize(specs_.size());
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role == Role::kInput && data.kept[i] == nullptr) return false;
  }
  for (size_t i = 0; i < specs_.size(); ++i) {
    for (const auto& buffer : operands_[i].buffers) {
      OPTRAIL_RETURN_IF_ERROR(buffer->BeginCheck(
          specs_[i].role == Role::kInput ? data.kept[i].get() : nullptr));
    }
  }
  return buffer(0, 0).EndCheck();
}

absl::Status CheckedOperands::CheckInputsAndGuards() {
  OPTRAIL_CHECK(filled_) << "Fill() comes first";
  OPTRAIL_RETURN_IF_ERROR(device_->Synchronize());
  OPTRAIL_ASSIGN_OR_RETURN(const bool sound, AreSoundWhereTheyLie());
  if (sound) return absl::OkStatus();
  // One by one, to say what is wrong.
  for (int i = 0; i < static_cast<int>(specs_.size()); ++i) {
    for (const auto& buffer : operands_[i].buffers) {
      if (const absl::Status guards = buffer->CheckGuards(); !guards.ok()) {
        return absl::Status(
            guards.code(),
            absl::StrCat("outside of ", Name(i), ": ", guards.message()));
      }
    }
    if (specs_[i].role != Role::kInput) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const bool unchanged, InputIsUnchanged(i));
    if (unchanged) continue;
    const CompareResult changed = Compare(specs_[i].data_type, scratch_.data(),
                                          ValuesOf(current(), i), {});
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
  OPTRAIL_RETURN_IF_ERROR(Fill(current().seed, current().values));
  return Arm();
}

}  // namespace optrail::ops
