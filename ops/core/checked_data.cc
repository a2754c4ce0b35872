// The data of CheckedOperands on the host: inputs of some seeds, and their
// references, which are computed, whole or in part, or found in the folder that
// processes share.

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/hash/crc32c.h"
#include "base/hash/hash.h"
#include "base/process/machine_memory.h"
#include "ops/core/data_type.h"
#include "ops/core/operand_values.h"
#include "ops/core/pieces.h"
#include "ops/core/reference_check.h"
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

// Independent streams for the operands of one seed.
uint64_t OperandSeed(uint64_t seed, int index) {
  return seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index);
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

}  // namespace

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
      Bytes& bytes = data.inputs.emplace_back();
      if (specs_[i].role == Role::kOutput) continue;
      const auto size = static_cast<size_t>(specs_[i].size_bytes());
      if (values == Values::kZeros && IsFloat(specs_[i].data_type)) {
        bytes.assign(size, '\0');
        continue;
      }
      bytes = Bytes(size);
      const std::vector<double>& recorded = operands_[i].recorded;
      const uint64_t own_seed = OperandSeed(seed, i);
      if (recorded.empty()) {
        RandomBytes(specs_[i], own_seed, values, bytes.data());
      } else {
        EncodeOperand(specs_[i],
                      RecordedValues(specs_[i], recorded, own_seed, values),
                      bytes.data());
      }
    }
    cache_.push_front(std::make_shared<DataSet>(std::move(data)));
    TrimCache();
  }
  filled_ = true;
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
    if (IsResult(spec) && PartialResult() < 0) {
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
    if (!IsResult(specs_[i])) continue;
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
             {bytes.data(), bytes.size()},
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
    if (!IsResult(spec)) continue;
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
      if (!IsResult(spec)) continue;
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

absl::StatusOr<double> CheckedOperands::Results::Compare() const {
  if (error_) return *error_;
  const CheckedOperands& all = *operands_;
  const DataSet& data = *data_;
  const Tolerance tolerance = all.op_.ToleranceFor(all.shape_);
  double max_error = 0;
  size_t result = 0;
  for (int i = 0; i < static_cast<int>(all.specs_.size()); ++i) {
    const OperandSpec& spec = all.specs_[i];
    if (!IsResult(spec)) continue;
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

}  // namespace optrail::ops
