#include "tuning/space/shapes.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/textproto.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.pb.h"

namespace optrail::tuning {
namespace {

std::string DimNames(const proto::Shape& shape) {
  return absl::StrJoin(shape.dims(), ",", [](std::string* out, const auto& d) {
    absl::StrAppend(out, d.name());
  });
}

absl::StatusOr<NamedShape> ReadShape(const proto::ShapeEntry& entry,
                                     const TextProtoPlace& place) {
  if (entry.dims().empty()) {
    return place.Error(
        "shape without dims, expected dims such as \"rows=64,cols=32\"");
  }
  if (entry.dtype().empty()) {
    return place.Error(absl::StrCat("shape \"", entry.dims(),
                                    "\" without dtype, such as dtype: F32"));
  }
  std::vector<std::string> types;
  for (int i = 0; i < entry.dtype_size(); ++i) {
    if (entry.dtype(i) == proto::DATA_TYPE_UNSPECIFIED) {
      return place.Child("dtype", i)
          .Error(absl::StrCat("dtype of shape \"", entry.dims(),
                              "\" is DATA_TYPE_UNSPECIFIED"));
    }
    types.push_back(DataTypeName(entry.dtype(i)));
  }
  absl::StatusOr<proto::Shape> shape =
      ParseShape(absl::StrCat(entry.dims(), "/", absl::StrJoin(types, "+")));
  if (!shape.ok()) {
    return place.Child("dims").Error(shape.status().message());
  }
  absl::StatusOr<Attributes> attributes = ParseAttributes(entry.attributes());
  if (!attributes.ok()) {
    return place.Child("attributes").Error(attributes.status().message());
  }
  *shape->mutable_attributes() = *std::move(attributes);
  NamedShape named;
  named.shape = *shape;
  named.name = entry.name().empty() ? CanonicalText(*shape) : entry.name();
  named.doc = entry.doc();
  named.tags.assign(entry.tags().begin(), entry.tags().end());
  named.line = place.line();
  return named;
}

}  // namespace

absl::StatusOr<std::vector<NamedShape>> ParseShapes(
    absl::string_view text, absl::string_view filename) {
  OPTRAIL_ASSIGN_OR_RETURN(const auto file,
                           ParseTextProto<proto::ShapeEntries>(text, filename));
  if (file.message.shape().empty()) {
    return file.root().Error("the file lists no shape, expected at least one");
  }
  std::vector<NamedShape> shapes;
  std::map<std::string, int> line_of_shape;
  std::map<std::string, int> line_of_name;
  for (int i = 0; i < file.message.shape_size(); ++i) {
    const TextProtoPlace place = file.root().Child("shape", i);
    OPTRAIL_ASSIGN_OR_RETURN(NamedShape shape,
                             ReadShape(file.message.shape(i), place));
    if (!shapes.empty() && DimNames(shape.shape) != DimNames(shapes[0].shape)) {
      return place.Child("dims").Error(absl::StrCat(
          "the dimensions are ", DimNames(shape.shape), ", expected ",
          DimNames(shapes[0].shape), " as in line ", shapes[0].line));
    }
    const std::string text_of_shape = CanonicalText(shape.shape);
    const auto by_shape = line_of_shape.emplace(text_of_shape, shape.line);
    if (!by_shape.second) {
      return place.Error(absl::StrCat("shape ", text_of_shape,
                                      " is given twice, first in line ",
                                      by_shape.first->second));
    }
    const auto by_name = line_of_name.emplace(shape.name, shape.line);
    if (!by_name.second) {
      return place.Error(absl::StrCat("the name \"", shape.name,
                                      "\" is given twice, first in line ",
                                      by_name.first->second));
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace optrail::tuning
