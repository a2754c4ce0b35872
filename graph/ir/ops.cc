#include "graph/ir/ops.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace optrail::graph {
namespace {

using OpTable = std::map<std::string, OpSpec, std::less<>>;

OpTable MakeTable() {
  OpTable table;
  for (auto family : {ElementwiseOps, MovementOps, IndexingOps, ReductionOps,
                      ContractionOps, WindowOps, NormOps, FusedOps}) {
    for (OpSpec& op : family()) {
      std::string name = op.name;
      OPTRAIL_CHECK(table.emplace(std::move(name), std::move(op)).second)
          << "an operator twice";
    }
  }
  return table;
}

const OpTable& Table() {
  static const OpTable* const table = new OpTable(MakeTable());
  return *table;
}

}  // namespace

bool IsView(const Node& node) {
  return node.op == "reshape" || node.op == "transpose" ||
         node.op == "expand" || node.op == "slice";
}

const OpSpec* FindOp(absl::string_view name) {
  const auto found = Table().find(name);
  return found == Table().end() ? nullptr : &found->second;
}

int64_t Product(const Dims& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= dims[d];
  return product;
}

absl::Status CheckAxis(const Node& node, const TensorType& type) {
  const int64_t axis = node.Int("axis");
  if (axis >= 0 && axis < static_cast<int64_t>(type.dims.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("axis=", axis, " of ", TypeText(type)));
}

absl::Status CheckDims(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", absl::StrJoin(dims, ","), "] has a negative dimension"));
    }
    if (dim > kMostElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", absl::StrJoin(dims, ","), "] has more than 2^40 ", "elements"));
    }
    elements *= std::max<int64_t>(dim, 1);
  }
  return absl::OkStatus();
}

Types InferTypes(const Node& node, const TypeList& inputs) {
  const OpSpec* const op = FindOp(node.op);
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no operator \"", node.op, "\""));
  }
  const int count = static_cast<int>(inputs.size());
  if (count < op->min_inputs ||
      (op->max_inputs >= 0 && count > op->max_inputs)) {
    return absl::InvalidArgumentError(absl::StrCat(
        count, " inputs; ", node.op, " takes ", op->min_inputs,
        op->max_inputs < 0 ? " or more"
                           : absl::StrCat(" to ", op->max_inputs)));
  }
  for (int i = 0; i < count; ++i) {
    if (inputs[i] == nullptr && (i < op->min_inputs || op->max_inputs < 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " of ", node.op, " is left out"));
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                           op->infer(node, inputs));
  for (const TensorType& type : types) {
    OPTRAIL_RETURN_IF_ERROR(CheckDims(type.dims));
  }
  return types;
}

}  // namespace optrail::graph
