#include "ops/core/operator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

std::string DimNames(const proto::Shape& shape) {
  return absl::StrJoin(shape.dims(), ",",
                       [](std::string* out, const proto::Dim& dim) {
                         absl::StrAppend(out, dim.name());
                       });
}

}  // namespace

std::string TypesText(const std::vector<proto::DataType>& types) {
  return absl::StrJoin(types, "+", [](std::string* out, proto::DataType type) {
    absl::StrAppend(out, tuning::DataTypeName(type));
  });
}

double Operator::MovedBytes(const proto::Shape& shape) const {
  const absl::StatusOr<std::vector<OperandSpec>> operands = Operands(shape);
  if (!operands.ok()) return 0;
  double bytes = 0;
  for (const OperandSpec& operand : *operands) {
    const double times = operand.role == Role::kInOut ? 2 : 1;
    const double elements = operand.touched_elements < 0
                                ? static_cast<double>(operand.elements())
                                : operand.touched_elements;
    bytes += times * elements * tuning::DataTypeBytes(operand.data_type);
  }
  return bytes;
}

int64_t OperandSpec::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

size_t OperandSpec::size_bytes() const {
  return static_cast<size_t>(elements()) * tuning::DataTypeBytes(data_type);
}

namespace {

// Says where attributes are written, if some stand among the dimensions.
std::string AttributesHint(const Operator& op, const proto::Shape& shape) {
  const auto count = static_cast<int>(op.dims().size());
  if (shape.dims_size() <= count || op.attributes().empty()) return "";
  proto::Shape right = shape;
  right.mutable_dims()->DeleteSubrange(count, shape.dims_size() - count);
  for (int i = count; i < shape.dims_size(); ++i) {
    proto::Attribute* attribute = right.add_attributes();
    attribute->set_name(shape.dims(i).name());
    attribute->set_int_(shape.dims(i).value());
  }
  return absl::StrCat("; attributes are written behind them: ",
                      tuning::CanonicalText(right));
}

}  // namespace

absl::Status CheckShape(const Operator& op, const proto::Shape& shape) {
  const std::vector<std::string> names = op.dims();
  const std::string expected = absl::StrJoin(names, ",");
  if (DimNames(shape) != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", tuning::CanonicalText(shape), " of operator ", op.name(),
        " has dimensions \"", DimNames(shape), "\", expected \"", expected,
        "\" in this order", AttributesHint(op, shape)));
  }
  std::vector<proto::DataType> types;
  for (const int type : shape.data_types()) {
    types.push_back(static_cast<proto::DataType>(type));
  }
  const auto supported = op.data_types();
  if (std::find(supported.begin(), supported.end(), types) == supported.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", tuning::CanonicalText(shape), " of operator ", op.name(),
        ": its data type is ", types.empty() ? "missing" : TypesText(types),
        ", supported is ",
        absl::StrJoin(supported, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, TypesText(one));
        })));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckAttributes(op, shape));
  // Products of dimensions stay far from overflow in operators' own arithmetic.
  constexpr int64_t kMaxBytes = int64_t{1} << 46;
  double elements = 1;
  for (const proto::Dim& dim : shape.dims()) {
    if (dim.value() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", tuning::CanonicalText(shape), " of operator ",
                       op.name(), ": dimension ", dim.name(), " is ",
                       dim.value(), ", expected at least 1"));
    }
    elements *= static_cast<double>(dim.value());
    if (elements > 1e18) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", tuning::CanonicalText(shape), " of operator ", op.name(),
          ": the product of its dimensions exceeds 10^18"));
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<OperandSpec> operands,
                           op.Operands(shape));
  for (const OperandSpec& operand : operands) {
    double bytes = tuning::DataTypeBytes(operand.data_type);
    for (int64_t dim : operand.dims) bytes *= static_cast<double>(dim);
    if (bytes > static_cast<double>(kMaxBytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", tuning::CanonicalText(shape), " of operator ",
                       op.name(), ": operand ", operand.name, " would have ",
                       bytes, " bytes, at most ", kMaxBytes, " are supported"));
    }
  }
  return absl::OkStatus();
}

}  // namespace optrail::ops
