#include "graph/onnx/filled_model.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "graph/onnx/import.h"
#include "graph/onnx/onnx_model.h"

// How Debian's library was built.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

namespace optrail::graph {
namespace {

// Readers that map files want a tensor to begin at a multiple of this.
constexpr int64_t kAlignment = 4096;

void SetPlace(onnx::TensorProto& tensor, int64_t offset, int64_t length) {
  tensor.clear_external_data();
  const auto add = [&](const char* key, std::string value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(std::move(value));
  };
  add("location", "weights.bin");
  add("offset", absl::StrCat(offset));
  add("length", absl::StrCat(length));
}

}  // namespace

absl::Status WriteFilledModel(const std::string& path, uint64_t seed,
                              const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const OnnxModel read, ReadOnnxModel(path));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  onnx::ModelProto model;
  if (!model.ParseFromString(contents)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no complete ONNX model"));
  }
  const std::string weights_path = JoinPath(folder, "weights.bin");
  std::ofstream weights;
  int64_t offset = 0;
  for (int i = 0; i < model.graph().initializer_size(); ++i) {
    onnx::TensorProto& tensor = *model.mutable_graph()->mutable_initializer(i);
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    const OnnxTensor& known = read.graph.initializers[i];
    if (!known.problem.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          path, ": constant \"", known.name, "\": ", known.problem));
    }
    Constant constant = known.constant;
    if (constant.absent()) constant = FillerOf(known.type, seed, i);
    const std::string bytes = ConstantBytes(known.type, constant);
    if (!weights.is_open()) {
      weights.open(weights_path, std::ios::binary | std::ios::trunc);
    }
    weights.seekp(offset);
    weights.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    SetPlace(tensor, offset, static_cast<int64_t>(bytes.size()));
    offset += (static_cast<int64_t>(bytes.size()) + kAlignment - 1) /
              kAlignment * kAlignment;
  }
  weights.close();
  if (offset > 0 && !weights) {
    return absl::UnavailableError(
        absl::StrCat(weights_path, ": could not be written; next: free ",
                     offset, " bytes there"));
  }
  return WriteFileAtomically(JoinPath(folder, "model.onnx"),
                             model.SerializeAsString());
}

}  // namespace optrail::graph
