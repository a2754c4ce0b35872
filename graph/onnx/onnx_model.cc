#include "graph/onnx/onnx_model.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/unknown_field_set.h"
#include "graph/ir/ops.h"
#include "graph/onnx/inline_functions.h"
#include "graph/onnx/node_order.h"

// How Debian's library was built.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include "onnx/onnx_pb.h"

namespace optrail::graph {
namespace {

constexpr int kMostSubgraphDepth = 16;

proto::ElementType ElementTypeOf(int type) {
  static constexpr std::pair<int, proto::ElementType> kTypes[] = {
      {onnx::TensorProto::FLOAT, proto::ELEMENT_F32},
      {onnx::TensorProto::DOUBLE, proto::ELEMENT_F64},
      {onnx::TensorProto::FLOAT16, proto::ELEMENT_F16},
      {onnx::TensorProto::BFLOAT16, proto::ELEMENT_BF16},
      {onnx::TensorProto::INT64, proto::ELEMENT_I64},
      {onnx::TensorProto::INT32, proto::ELEMENT_I32},
      {onnx::TensorProto::INT16, proto::ELEMENT_I16},
      {onnx::TensorProto::INT8, proto::ELEMENT_I8},
      {onnx::TensorProto::UINT64, proto::ELEMENT_U64},
      {onnx::TensorProto::UINT32, proto::ELEMENT_U32},
      {onnx::TensorProto::UINT16, proto::ELEMENT_U16},
      {onnx::TensorProto::UINT8, proto::ELEMENT_U8},
      {onnx::TensorProto::BOOL, proto::ELEMENT_BOOL},
  };
  for (const auto& [of_onnx, own] : kTypes) {
    if (of_onnx == type) return own;
  }
  return proto::ELEMENT_TYPE_UNSPECIFIED;
}

std::string TypeProblem(int type) {
  const std::string name =
      onnx::TensorProto::DataType_IsValid(type)
          ? onnx::TensorProto::DataType_Name(
                static_cast<onnx::TensorProto::DataType>(type))
          : absl::StrCat(type);
  return absl::StrCat("element type ", name, " is not supported");
}

// Values in the typed fields of TensorProto: 16-bit floats are the low bits of
// int32_data, as are small integers.
absl::StatusOr<std::string> TypedBytes(const onnx::TensorProto& tensor,
                                       const TensorType& type) {
  const int64_t size = ElementBytes(type.type);
  std::string bytes;
  const auto append = [&](const auto& values, auto convert) {
    bytes.reserve(values.size() * size);
    for (const auto value : values) {
      const auto converted = convert(value);
      bytes.append(reinterpret_cast<const char*>(&converted), size);
    }
  };
  const auto same = [](auto value) { return value; };
  if (type.type == proto::ELEMENT_F32) {
    append(tensor.float_data(), same);
  } else if (type.type == proto::ELEMENT_F64) {
    append(tensor.double_data(), same);
  } else if (type.type == proto::ELEMENT_I64) {
    append(tensor.int64_data(), same);
  } else if (type.type == proto::ELEMENT_U64 ||
             type.type == proto::ELEMENT_U32) {
    append(tensor.uint64_data(), same);
  } else {
    append(tensor.int32_data(), same);
  }
  if (static_cast<int64_t>(bytes.size()) == type.bytes()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(bytes.size() / size, " values; expected ",
                   Elements(type.dims), " for ", TypeText(type)));
}

struct ExternalPlace {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;
};

absl::StatusOr<ExternalPlace> PlaceOf(const onnx::TensorProto& tensor) {
  ExternalPlace place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      place.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t number = 0;
      if (!absl::SimpleAtoi(entry.value(), &number) || number < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "external data ", entry.key(), "=", Quoted(entry.value()),
            ": expected a number of bytes"));
      }
      (entry.key() == "offset" ? place.offset : place.length) = number;
    }
  }
  return place;
}

// The file, if it lies below the folder once links are followed; "" if it is
// not there.
absl::StatusOr<std::string> PathWithin(const std::string& folder,
                                       const std::string& location) {
  namespace fs = std::filesystem;
  const fs::path relative(location);
  bool climbs = location.empty() || relative.is_absolute() ||
                absl::StrContains(location, absl::string_view("\0", 1));
  for (const fs::path& part : relative) climbs = climbs || part == "..";
  const auto outside = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("external data in ", Quoted(location),
                     ": expected a file below the model's folder"));
  };
  if (climbs) return outside();
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return std::string();
  const fs::path path = fs::canonical(root / relative, error);
  if (error) return std::string();
  const auto [end, unused] =
      std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) return outside();
  return path.string();
}

class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<OnnxTensor> Tensor(const onnx::TensorProto& tensor) {
    absl::StatusOr<OnnxTensor> result = TensorOf(tensor);
    if (result.ok()) return result;
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", Quoted(tensor.name()), ": ", result.status().message()));
  }

  absl::StatusOr<OnnxGraph> Graph(const onnx::GraphProto& graph, int depth) {
    OnnxGraph result;
    result.name = graph.name();
    for (const auto& tensor : graph.initializer()) {
      OPTRAIL_ASSIGN_OR_RETURN(OnnxTensor added, Tensor(tensor));
      result.initializers.push_back(std::move(added));
    }
    for (const auto& tensor : graph.sparse_initializer()) {
      OnnxTensor added;
      added.name = tensor.values().name();
      added.problem = "sparse constants are not supported";
      result.initializers.push_back(std::move(added));
    }
    for (const auto& value : graph.input())
      result.inputs.push_back(ValueOf(value));
    for (const auto& value : graph.output())
      result.outputs.push_back(ValueOf(value));
    for (const auto& value : graph.value_info())
      result.values.push_back(ValueOf(value));
    OPTRAIL_ASSIGN_OR_RETURN(result.nodes, Nodes(graph.node(), depth));
    return result;
  }

  absl::StatusOr<OnnxFunction> Function(const onnx::FunctionProto& function) {
    OnnxFunction result;
    result.name = function.name();
    result.domain = OwnDomain(function.domain());
    result.overload = NewerText(function.unknown_fields(), 13);
    result.inputs.assign(function.input().begin(), function.input().end());
    result.outputs.assign(function.output().begin(), function.output().end());
    for (const auto& opset : function.opset_import()) {
      if (OwnDomain(opset.domain()).empty()) result.opset = opset.version();
    }
    absl::StatusOr<std::vector<OnnxNode>> nodes = Nodes(function.node(), 0);
    absl::Status status = nodes.status();
    if (nodes.ok()) {
      result.nodes = *std::move(nodes);
      status = AddDefaults(function, result);
    }
    if (status.ok()) return result;
    return absl::InvalidArgumentError(absl::StrCat(
        "function ", Quoted(function.name()), ": ", status.message()));
  }

 private:
  static std::string OwnDomain(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
  }

  // A text in a field that 1.12 does not know: overloads came with 1.16.
  static std::string NewerText(const google::protobuf::UnknownFieldSet& fields,
                               int number) {
    std::string text;
    for (int i = 0; i < fields.field_count(); ++i) {
      const google::protobuf::UnknownField& field = fields.field(i);
      if (field.number() == number &&
          field.type() ==
              google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        text = field.length_delimited();
      }
    }
    return text;
  }

  template <class List>
  absl::StatusOr<std::vector<OnnxNode>> Nodes(const List& list, int depth) {
    std::vector<OnnxNode> nodes;
    nodes.reserve(list.size());
    for (const auto& node : list) {
      absl::StatusOr<OnnxNode> added = NodeOf(node, nodes.size(), depth);
      if (!added.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", Quoted(node.name()), " (", node.op_type(),
                         "): ", added.status().message()));
      }
      nodes.push_back(*std::move(added));
    }
    return nodes;
  }

  // They came with ONNX 1.13, in a field that 1.12 does not know.
  absl::Status AddDefaults(const onnx::FunctionProto& function,
                           OnnxFunction& result) {
    constexpr int kDefault = 11;
    const google::protobuf::UnknownFieldSet& fields = function.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i) {
      if (fields.field(i).number() != kDefault) continue;
      onnx::AttributeProto attribute;
      if (fields.field(i).type() !=
              google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
          !attribute.ParseFromString(fields.field(i).length_delimited())) {
        return absl::InvalidArgumentError("a default of it is no attribute");
      }
      if (attribute.has_g()) {
        return absl::InvalidArgumentError(
            absl::StrCat("its default of ", Quoted(attribute.name()),
                         " is a graph; expected that calls name it"));
      }
      OPTRAIL_ASSIGN_OR_RETURN(result.defaults[attribute.name()],
                               AttributeOf(attribute, 0));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<OnnxTensor> TensorOf(const onnx::TensorProto& tensor) {
    OnnxTensor result;
    result.name = tensor.name();
    result.type.type = ElementTypeOf(tensor.data_type());
    result.type.dims.assign(tensor.dims().begin(), tensor.dims().end());
    OPTRAIL_RETURN_IF_ERROR(CheckDims(result.type.dims));
    if (result.type.type == proto::ELEMENT_TYPE_UNSPECIFIED) {
      result.problem = TypeProblem(tensor.data_type());
      return result;
    }
    std::string bytes;
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool found,
                               External(tensor, result.type, bytes));
      if (!found) return result;
    } else if (tensor.has_raw_data()) {
      bytes = tensor.raw_data();
    } else {
      OPTRAIL_ASSIGN_OR_RETURN(bytes, TypedBytes(tensor, result.type));
    }
    if (static_cast<int64_t>(bytes.size()) != result.type.bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(bytes.size(), " bytes; expected ", result.type.bytes(),
                       " for ", TypeText(result.type)));
    }
    result.constant.bytes =
        std::make_shared<const std::string>(std::move(bytes));
    return result;
  }

  // False where the file is not there.
  absl::StatusOr<bool> External(const onnx::TensorProto& tensor,
                                const TensorType& type, std::string& bytes) {
    OPTRAIL_ASSIGN_OR_RETURN(const ExternalPlace place, PlaceOf(tensor));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string path,
                             PathWithin(folder_, place.location));
    if (folder_.empty() || path.empty()) return false;
    if (path != open_path_) {
      OPTRAIL_ASSIGN_OR_RETURN(open_contents_,
                               ReadRegularFile(path, int64_t{64} << 30));
      open_path_ = path;
    }
    const int64_t length = place.length < 0 ? type.bytes() : place.length;
    const int64_t size = static_cast<int64_t>(open_contents_.size());
    if (place.offset > size || length > size - place.offset) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bytes ", place.offset, " to ", place.offset, "+", length, " of ",
          Quoted(place.location), ", which has ", size));
    }
    bytes = open_contents_.substr(place.offset, length);
    return true;
  }

  OnnxValue ValueOf(const onnx::ValueInfoProto& value) {
    OnnxValue result;
    result.name = value.name();
    if (!value.type().has_tensor_type()) {
      if (value.type().value_case() != 0) {
        result.problem =
            "is a sequence, a map or another type that is no tensor";
      }
      return result;
    }
    const auto& type = value.type().tensor_type();
    result.type.type = ElementTypeOf(type.elem_type());
    if (result.type.type == proto::ELEMENT_TYPE_UNSPECIFIED) {
      result.problem = TypeProblem(type.elem_type());
    }
    result.has_shape = type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      result.type.dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
      result.symbols.push_back(dim.has_dim_value() ? "" : dim.dim_param());
      if (dim.has_dim_value() && dim.dim_value() < 0) {
        result.problem = absl::StrCat("has a dimension of ", dim.dim_value());
      }
    }
    return result;
  }

  absl::StatusOr<OnnxNode> NodeOf(const onnx::NodeProto& node, size_t place,
                                  int depth) {
    OnnxNode result;
    result.name = node.name().empty() ? absl::StrCat(node.op_type(), "_", place)
                                      : node.name();
    result.op = node.op_type();
    result.domain = OwnDomain(node.domain());
    result.overload = NewerText(node.unknown_fields(), 8);
    result.inputs.assign(node.input().begin(), node.input().end());
    result.outputs.assign(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) {
      OPTRAIL_ASSIGN_OR_RETURN(result.attributes[attribute.name()],
                               AttributeOf(attribute, depth));
    }
    return result;
  }

  absl::StatusOr<OnnxAttribute> AttributeOf(
      const onnx::AttributeProto& attribute, int depth) {
    OnnxAttribute result;
    result.reference = attribute.ref_attr_name();
    result.integer = attribute.i();
    result.real = attribute.f();
    result.text = attribute.s();
    result.integers.assign(attribute.ints().begin(), attribute.ints().end());
    result.reals.assign(attribute.floats().begin(), attribute.floats().end());
    result.texts.assign(attribute.strings().begin(), attribute.strings().end());
    if (attribute.has_t()) {
      OPTRAIL_ASSIGN_OR_RETURN(OnnxTensor tensor, Tensor(attribute.t()));
      result.tensor = std::make_shared<const OnnxTensor>(std::move(tensor));
    }
    if (attribute.has_g() && depth < kMostSubgraphDepth) {
      OPTRAIL_ASSIGN_OR_RETURN(OnnxGraph graph,
                               Graph(attribute.g(), depth + 1));
      result.graph = std::make_shared<const OnnxGraph>(std::move(graph));
    }
    return result;
  }

  const std::string folder_;
  // Models keep all of their values in one file: the last one stays open.
  std::string open_path_;
  std::string open_contents_;
};

template <class Message>
bool ParseMessage(absl::string_view contents, Message& message) {
  google::protobuf::io::ArrayInputStream stream(
      contents.data(), static_cast<int>(contents.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT_MAX);
  return message.ParseFromCodedStream(&coded) && coded.ConsumedEntireMessage();
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<OnnxModel> ParseOnnxModel(absl::string_view contents,
                                         const std::string& folder) {
  onnx::ModelProto model;
  if (contents.size() > INT_MAX || !ParseMessage(contents, model) ||
      !model.has_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is no complete ONNX model (", contents.size(),
        " bytes); expected a ModelProto with a graph, as torch.onnx.export "
        "writes it; next: download or export it again"));
  }
  OnnxModel result;
  for (const auto& opset : model.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") {
      result.opset = opset.version();
    }
  }
  if (result.opset == 0) result.opset = 1;
  Reader reader(folder);
  OPTRAIL_ASSIGN_OR_RETURN(result.graph, reader.Graph(model.graph(), 0));
  std::vector<OnnxFunction> functions;
  for (const auto& function : model.functions()) {
    OPTRAIL_ASSIGN_OR_RETURN(OnnxFunction read, reader.Function(function));
    functions.push_back(std::move(read));
  }
  OPTRAIL_RETURN_IF_ERROR(InlineFunctions(functions, result.graph));
  return result;
}

absl::StatusOr<OnnxModel> ReadOnnxModel(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  absl::StatusOr<OnnxModel> model = ParseOnnxModel(contents, folder);
  if (!model.ok()) return InFile(path, model.status());
  return model;
}

absl::StatusOr<OnnxTensor> ReadOnnxTensor(const std::string& path) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  onnx::TensorProto tensor;
  if (!ParseMessage(contents, tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is no TensorProto"));
  }
  absl::StatusOr<OnnxTensor> result = Reader("").Tensor(tensor);
  if (!result.ok()) return InFile(path, result.status());
  return result;
}

}  // namespace optrail::graph
