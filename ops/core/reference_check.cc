#include "ops/core/reference_check.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/hash/hash.h"
#include "base/process/machine_memory.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "ops/core/data_type.h"
#include "ops/core/pieces.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// What is left of it is the system's.
constexpr double kMostOfMemory = 7. / 8;

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

}  // namespace

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
      OPTRAIL_ASSIGN_OR_RETURN(operand.recorded, ReadRecorded(spec));
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
    if (!IsResult(specs_[i])) continue;
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
    if (!IsResult(specs_[i])) continue;
    bytes[i].resize(specs_[i].size_bytes());
    OPTRAIL_RETURN_IF_ERROR(buffer(i, set).CopyToHost(bytes[i].data()));
  }
  return bytes;
}

uint64_t CheckedOperands::BitsOf(const ResultBytes& bytes) const {
  std::string hashes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!IsResult(specs_[i])) continue;
    absl::StrAppend(&hashes, Fingerprint(ViewOf(bytes[i])));
  }
  return StableHash(hashes);
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
