#include "graph/onnx/testing/conformance_cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "graph/onnx/import.h"
#include "graph/onnx/onnx_model.h"

namespace optrail::graph {
namespace {

// Cases that are not claimed though their operators are, and why.
const std::map<std::string, std::string>& NotClaimed() {
  const char* const text = "values are text";
  const char* const shape = "its data do not have the shape it declares";
  const char* const tie = "a tie of f32 that is none in double precision";
  const char* const sequence = "inputs or outputs are sequences";
  const char* const random = "training draws random numbers";
  static const auto* const cases = new std::map<std::string, std::string>{
      {"test_cast_FLOAT_to_STRING", text},
      {"test_cast_STRING_to_FLOAT", text},
      {"test_cast_FLOAT_to_BFLOAT16", "the case truncates instead of rounding"},
      {"test_castlike_BFLOAT16_to_FLOAT", shape},
      {"test_castlike_BFLOAT16_to_FLOAT_expanded", shape},
      {"test_castlike_FLOAT_to_BFLOAT16", shape},
      {"test_castlike_FLOAT_to_BFLOAT16_expanded", shape},
      {"test_castlike_FLOAT_to_STRING", text},
      {"test_castlike_FLOAT_to_STRING_expanded", text},
      {"test_castlike_STRING_to_FLOAT", text},
      {"test_castlike_STRING_to_FLOAT_expanded", text},
      {"test_dynamicquantizelinear", tie},
      {"test_dynamicquantizelinear_expanded", tie},
      {"test_identity_opt", "values are optional sequences"},
      {"test_identity_sequence", sequence},
      {"test_if_seq", sequence},
      {"test_loop13_seq", sequence},
      {"test_maxunpool_export_with_output_shape",
       "its places count in another shape than its output, as ONNX has "
       "corrected since"},
      {"test_scan_sum", "before opset 9 a Scan has batches of its own"},
      {"test_sequence_insert_at_back", sequence},
      {"test_sequence_insert_at_front", sequence},
      {"test_sequence_map_add_1_sequence_1_tensor_expanded", sequence},
      {"test_sequence_map_add_2_sequences_expanded", sequence},
      {"test_sequence_map_extract_shapes_expanded", sequence},
      {"test_sequence_map_identity_1_sequence_expanded", sequence},
      {"test_sequence_map_identity_1_sequence_1_tensor_expanded", sequence},
      {"test_sequence_map_identity_2_sequences_expanded", sequence},
      {"test_training_dropout", random},
      {"test_training_dropout_default", random},
      {"test_training_dropout_default_mask", random},
      {"test_training_dropout_mask", random},
  };
  return *cases;
}

void CollectOps(const OnnxGraph& graph, std::set<std::string>& ops) {
  for (const OnnxNode& node : graph.nodes) {
    ops.insert(absl::StrCat(node.domain, node.op));
    for (const auto& [name, attribute] : node.attributes) {
      if (attribute.graph != nullptr) CollectOps(*attribute.graph, ops);
    }
  }
}

bool IsClaimed(const OnnxModel& model) {
  static const auto* const claimed = [] {
    auto* const set = new std::set<std::string>();
    for (const std::string& op : ImportedOperators()) set->insert(op);
    return set;
  }();
  std::set<std::string> ops;
  CollectOps(model.graph, ops);
  return std::includes(claimed->begin(), claimed->end(), ops.begin(),
                       ops.end());
}

absl::StatusOr<std::vector<Array>> ReadTensors(const std::string& folder,
                                               const std::string& kind) {
  std::vector<Array> arrays;
  for (int i = 0;; ++i) {
    const std::string path =
        JoinPath(folder, absl::StrCat(kind, "_", i, ".pb"));
    if (!ReadFile(path).ok()) return arrays;
    OPTRAIL_ASSIGN_OR_RETURN(const OnnxTensor tensor, ReadOnnxTensor(path));
    if (!tensor.problem.empty()) {
      return absl::UnimplementedError(tensor.problem);
    }
    arrays.push_back(ConstantArray(tensor.type, tensor.constant));
  }
}

// The cases keep bf16 as u16.
void RestoreType(const OnnxValue& declared, Array& array) {
  if (declared.type.type == proto::ELEMENT_BF16 &&
      array.type.type == proto::ELEMENT_U16) {
    array =
        *Array::Decode({proto::ELEMENT_BF16, array.type.dims}, array.Encode());
  }
}

std::string MismatchOf(const Array& ours, const Array& expected) {
  if (!(ours.type == expected.type)) {
    return absl::StrCat(TypeText(ours.type), "; expected ",
                        TypeText(expected.type));
  }
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = ours.At(i), b = expected.At(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= 1e-7 + 1e-3 * std::fabs(b))) {
      return absl::StrCat("element ", i, " is ", a, "; expected ", b);
    }
  }
  return "";
}

// Imports with as few inputs known as it takes.
absl::StatusOr<Imported> ImportWith(const OnnxModel& model,
                                    const std::vector<Array>& inputs) {
  ImportOptions options;
  for (size_t i = 0; i < inputs.size() && i < model.graph.inputs.size(); ++i) {
    const std::vector<std::string>& symbols = model.graph.inputs[i].symbols;
    const Dims& dims = inputs[i].type.dims;
    for (size_t d = 0; d < symbols.size() && d < dims.size(); ++d) {
      if (!symbols[d].empty()) options.dims[symbols[d]] = dims[d];
    }
  }
  absl::StatusOr<Imported> imported = ImportOnnxModel(model, options);
  for (const bool reals : {false, true}) {
    if (!imported.ok() || imported->uncovered.empty()) return imported;
    for (size_t i = 0; i < inputs.size() && i < model.graph.inputs.size();
         ++i) {
      if (!inputs[i].is_real() || reals) {
        options.known_inputs[model.graph.inputs[i].name] = inputs[i];
      }
    }
    imported = ImportOnnxModel(model, options);
  }
  return imported;
}

}  // namespace

absl::StatusOr<ConformanceCases> FindConformanceCases(
    const std::string& folder) {
  if (!ListDirectory(folder).ok()) {
    return absl::NotFoundError(absl::StrCat(
        folder, " is not there; next: apt-get install libonnx-testdata"));
  }
  ConformanceCases found;
  for (const char* suite :
       {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    const std::string cases = JoinPath(folder, suite);
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<std::string> names,
                             ListDirectory(cases));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string place = JoinPath(cases, name);
      const auto model = ReadOnnxModel(JoinPath(place, "model.onnx"));
      const auto exempt = NotClaimed().find(name);
      if (!model.ok() || !IsClaimed(*model)) {
        ++found.not_claimed;
      } else if (exempt != NotClaimed().end()) {
        found.exempt.push_back({place, exempt->second});
      } else {
        found.claimed.push_back(place);
      }
    }
  }
  return found;
}

absl::StatusOr<ConformanceCase> LoadConformanceCase(const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const OnnxModel model,
                           ReadOnnxModel(JoinPath(folder, "model.onnx")));
  const std::string data = JoinPath(folder, "test_data_set_0");
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<Array> inputs,
                           ReadTensors(data, "input"));
  ConformanceCase result;
  OPTRAIL_ASSIGN_OR_RETURN(result.expected, ReadTensors(data, "output"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    RestoreType(model.graph.inputs[i], inputs[i]);
  }
  for (size_t i = 0; i < result.expected.size(); ++i) {
    RestoreType(model.graph.outputs[i], result.expected[i]);
  }
  OPTRAIL_ASSIGN_OR_RETURN(Imported imported, ImportWith(model, inputs));
  if (!imported.uncovered.empty()) {
    return absl::UnimplementedError(imported.uncovered[0].reason);
  }
  OPTRAIL_RETURN_IF_ERROR(Validate(imported.graph));
  for (const int input : imported.graph.inputs) {
    for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
      if (model.graph.inputs[i].name == imported.graph.values[input].name) {
        result.inputs.push_back(inputs[i]);
      }
    }
  }
  result.graph = std::move(imported.graph);
  return result;
}

std::string Mismatch(const std::vector<Array>& ours,
                     const std::vector<Array>& expected) {
  if (ours.size() != expected.size()) {
    return absl::StrCat(ours.size(), " outputs of ", expected.size());
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string mismatch = MismatchOf(ours[i], expected[i]);
    if (!mismatch.empty()) return absl::StrCat("output ", i, ": ", mismatch);
  }
  return "";
}

}  // namespace optrail::graph
