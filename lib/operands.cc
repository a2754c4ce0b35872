#include "lib/operands.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "ops/core/attributes.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"

namespace optrail::lib {
namespace {

absl::StatusOr<const ops::Operator*> FindOperator(const std::string& name) {
  const ops::Registry& registry = ops::Registry::Get();
  const ops::OperatorEntry* const entry = registry.Find(name);
  if (entry == nullptr) return registry.UnknownOperator(name);
  return entry->op.get();
}

// "m=3,n=4,k=5/stride=2/f32", parsed; sizes are not checked.
absl::StatusOr<proto::Shape> MakeShape(const ops::Operator& op,
                                       const std::vector<int64_t>& dims,
                                       const char* attributes,
                                       const std::string& types) {
  std::string text;
  const std::vector<std::string> names = op.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", names[i], "=", dims[i]);
  }
  if (attributes != nullptr && *attributes != '\0') {
    absl::StrAppend(&text, "/", attributes);
  }
  absl::StrAppend(&text, "/", types);
  OPTRAIL_ASSIGN_OR_RETURN(proto::Shape shape, tuning::ParseShape(text));
  return ops::NormaliseAttributes(op, std::move(shape));
}

std::vector<ops::OperandSpec> InputsOf(std::vector<ops::OperandSpec> operands) {
  operands.erase(std::remove_if(operands.begin(), operands.end(),
                                [](const ops::OperandSpec& operand) {
                                  return operand.role == ops::Role::kOutput;
                                }),
                 operands.end());
  return operands;
}

// Shapes with made-up sizes tell which axis of which input is which dimension.
class Probes {
 public:
  Probes(const ops::Operator& op, const char* attributes, std::string types)
      : op_(op), attributes_(attributes), types_(std::move(types)) {}

  // The first axis of an input that is the dimension itself, by dimension;
  // (-1, -1) where there is none. InvalidArgument if no sizes are accepted.
  absl::StatusOr<std::vector<std::pair<int, int>>> Axes() {
    OPTRAIL_RETURN_IF_ERROR(Next());
    const std::vector<int64_t> sizes = sizes_;
    const std::vector<ops::OperandSpec> first = inputs_;
    // A product of two dimensions may equal a third in one probe, but hardly in
    // another, which some operators do not have.
    for (int i = 0; i < 100 && sizes_ == sizes && sizes.size() > 1; ++i) {
      OPTRAIL_RETURN_IF_ERROR(Next());
    }
    std::vector<std::pair<int, int>> axes(sizes.size(), {-1, -1});
    for (size_t i = first.size(); i-- > 0;) {
      for (size_t k = std::min(first[i].dims.size(), inputs_[i].dims.size());
           k-- > 0;) {
        for (size_t d = 0; d < sizes.size(); ++d) {
          if (first[i].dims[k] == sizes[d] && inputs_[i].dims[k] == sizes_[d]) {
            axes[d] = {static_cast<int>(i), static_cast<int>(k)};
          }
        }
      }
    }
    return axes;
  }

 private:
  // Different powers of two, so that any divides any larger one.
  absl::Status Next() {
    absl::Status refused;
    for (int attempt = 0; attempt < 1000; ++attempt) {
      std::vector<int64_t> sizes(op_.dims().size());
      // Filters are small, and what they are moved over is not; a stencil of
      // many steps takes more from each side.
      const int64_t least = int64_t{2} << attempt % 3 * 3;  // 2, 16, 128
      for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = least << d;
      for (size_t d = sizes.size(); d > 1; --d) {
        std::swap(sizes[d - 1], sizes[static_cast<size_t>(
                                    rng_.UniformInt(static_cast<int64_t>(d)))]);
      }
      OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape shape,
                               MakeShape(op_, sizes, attributes_, types_));
      absl::StatusOr<std::vector<ops::OperandSpec>> operands =
          op_.Operands(shape);
      if (!operands.ok()) {
        refused = operands.status();
        continue;
      }
      sizes_ = std::move(sizes);
      inputs_ = InputsOf(*std::move(operands));
      return absl::OkStatus();
    }
    return refused;
  }

  const ops::Operator& op_;
  const char* const attributes_;
  const std::string types_;
  Rng rng_{1};
  std::vector<int64_t> sizes_;
  std::vector<ops::OperandSpec> inputs_;
};

std::string Text(const char* type, absl::Span<const int64_t> dims) {
  return absl::StrCat(absl::StrJoin(dims, "x"), " ", type);
}

// InvalidArgument unless the inputs are those of a call of `shape`.
absl::Status CheckInputs(const ops::Operator& op, const proto::Shape& shape,
                         const optrail_operand* inputs, size_t count) {
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(op, shape));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<ops::OperandSpec> operands,
                           op.Operands(shape));
  operands = InputsOf(std::move(operands));
  if (operands.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name(), " has ", operands.size(), " inputs, and ",
                     count, " are given"));
  }
  for (size_t i = 0; i < count; ++i) {
    const absl::Span<const int64_t> dims(inputs[i].dims,
                                         static_cast<size_t>(inputs[i].rank));
    const std::string given = Text(inputs[i].type, dims);
    const std::string expected = Text(
        tuning::DataTypeName(operands[i].data_type).c_str(), operands[i].dims);
    if (given != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          op.name(), ": input ", i, " (", operands[i].name, ") is ", given,
          ", expected ", expected, " for ", tuning::CanonicalText(shape)));
    }
  }
  return absl::OkStatus();
}

// The shape, if the operator has these data types.
absl::StatusOr<std::string> InferWithTypes(const ops::Operator& op,
                                           const optrail_operand* inputs,
                                           size_t count, const char* attributes,
                                           const std::string& types) {
  const std::vector<std::string> names = op.dims();
  OPTRAIL_ASSIGN_OR_RETURN(const auto axes,
                           Probes(op, attributes, types).Axes());
  std::vector<int64_t> dims(names.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto [input, axis] = axes[d];
    if (input < 0) {
      return absl::UnimplementedError(absl::StrCat(
          "the inputs of ", op.name(), " do not tell its dimension ", names[d],
          "; next: give the shape's text"));
    }
    if (static_cast<size_t>(input) >= count || axis >= inputs[input].rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          op.name(), ": expected dimension ", names[d], " at axis ", axis,
          " of input ", input, ", which is not given"));
    }
    dims[d] = inputs[input].dims[axis];
  }
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape shape,
                           MakeShape(op, dims, attributes, types));
  OPTRAIL_RETURN_IF_ERROR(CheckInputs(op, shape, inputs, count));
  return tuning::CanonicalText(shape);
}

}  // namespace

optrail_operand Operand::View() const {
  optrail_operand view = OPTRAIL_OPERAND_INIT;
  view.name = spec.name.c_str();
  view.type = type.c_str();
  view.role = spec.role == ops::Role::kInput    ? OPTRAIL_INPUT
              : spec.role == ops::Role::kOutput ? OPTRAIL_OUTPUT
                                                : OPTRAIL_IN_OUT;
  view.rank = static_cast<int32_t>(spec.dims.size());
  view.dims = spec.dims.data();
  view.bytes = bytes;
  return view;
}

absl::StatusOr<std::vector<Operand>> OperandsOf(const ops::Operator& op,
                                                const proto::Shape& shape) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<ops::OperandSpec> specs,
                           op.Operands(shape));
  std::vector<Operand> operands;
  for (ops::OperandSpec& spec : specs) {
    Operand operand;
    operand.type = tuning::DataTypeName(spec.data_type);
    operand.bytes = spec.size_bytes();
    operand.alignment = std::max(tuning::DataTypeBytes(spec.data_type), 1);
    operand.spec = std::move(spec);
    operands.push_back(std::move(operand));
  }
  return operands;
}

absl::Status NoSuchOperand(const std::string& what, size_t index,
                           size_t count) {
  return absl::InvalidArgumentError(absl::StrCat(
      "index is ", index, ", and ", what, " has ", count, " operands"));
}

absl::StatusOr<const std::vector<Operand>*> OperandsOfText(
    const std::string& name, const std::string& text) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Operator* op, FindOperator(name));
  OPTRAIL_ASSIGN_OR_RETURN(proto::Shape shape, tuning::ParseShape(text));
  OPTRAIL_ASSIGN_OR_RETURN(shape,
                           ops::NormaliseAttributes(*op, std::move(shape)));
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*op, shape));
  static auto& mutex = *new std::mutex();
  static auto& known = *new std::map<std::string, std::vector<Operand>>();
  const std::string key = absl::StrCat(name, " ", tuning::CanonicalText(shape));
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(key);
  if (found != known.end()) return &found->second;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<Operand> operands,
                           OperandsOf(*op, shape));
  return &known.emplace(key, std::move(operands)).first->second;
}

absl::StatusOr<std::string> ShapeText(const std::string& name,
                                      const int64_t* dims, size_t count,
                                      const char* attributes,
                                      const char* types) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Operator* op, FindOperator(name));
  const std::vector<std::string> names = op->dims();
  if (count != names.size() || dims == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", names.size(), " dimensions (",
                     absl::StrJoin(names, ", "), "), and ",
                     dims == nullptr ? 0 : count, " are given"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::Shape shape,
      MakeShape(*op, std::vector<int64_t>(dims, dims + count), attributes,
                types));
  OPTRAIL_RETURN_IF_ERROR(ops::CheckShape(*op, shape));
  return tuning::CanonicalText(shape);
}

absl::StatusOr<std::string> InferShape(const std::string& name,
                                       const optrail_operand* inputs,
                                       size_t count, const char* attributes) {
  OPTRAIL_ASSIGN_OR_RETURN(const ops::Operator* op, FindOperator(name));
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i].struct_size == sizeof(optrail_operand) &&
        inputs[i].type != nullptr && inputs[i].rank >= 0 &&
        (inputs[i].dims != nullptr || inputs[i].rank == 0)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs[", i, "] lacks its struct_size, type, rank or dims"));
  }
  absl::Status first;
  for (const std::vector<proto::DataType>& types : op->data_types()) {
    const absl::StatusOr<std::string> shape =
        InferWithTypes(*op, inputs, count, attributes, ops::TypesText(types));
    if (shape.ok()) return shape;
    if (first.ok()) first = shape.status();
  }
  return first;
}

}  // namespace optrail::lib
