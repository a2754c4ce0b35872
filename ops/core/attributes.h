#ifndef OPTRAIL_OPS_CORE_ATTRIBUTES_H_
#define OPTRAIL_OPS_CORE_ATTRIBUTES_H_

// Attributes decide about a computation beside its dimensions and types:
// padding, stride, causal, transposed, activation, layout. An operator declares
// its attributes with their defaults:
//
//   std::vector<AttributeSpec> attributes() const override {
//     return {IntAttribute("padding", 0, /*min=*/0),
//             VariantAttribute("act", "none", {"none", "relu"})};
//   }
//
// and asks for them, in Operands() and Reference() as in a kernel:
//
//   const int64_t padding = IntAttributeOf(*this, shape, "padding");
//
// A shape says only what differs from the defaults. A default therefore never
// changes: shapes that are stored would change their meaning.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

class Operator;

struct AttributeSpec {
  proto::Attribute default_value;  // with the name
  // The least and largest value of an integer.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
  // Of a variant, all there are.
  std::vector<std::string> variants;
};

AttributeSpec IntAttribute(absl::string_view name, int64_t default_value,
                           int64_t min = 0,
                           int64_t max = std::numeric_limits<int64_t>::max());
AttributeSpec VariantAttribute(absl::string_view name,
                               absl::string_view default_value,
                               std::vector<std::string> variants);

// The shape as it is stored and compared: attributes sorted, those that have
// their default taken out. InvalidArgument names an attribute that the operator
// does not have, or a value that it can't have.
absl::StatusOr<proto::Shape> NormaliseAttributes(const Operator& op,
                                                 proto::Shape shape);

// InvalidArgument unless NormaliseAttributes would leave the shape as it is.
absl::Status CheckAttributes(const Operator& op, const proto::Shape& shape);

// The shape's value, else the default. The operator must declare the attribute
// with this type.
int64_t IntAttributeOf(const Operator& op, const proto::Shape& shape,
                       absl::string_view name);
std::string VariantAttributeOf(const Operator& op, const proto::Shape& shape,
                               absl::string_view name);

// Checks that the attributes that a space declares
// (docs/reference/space_format.md) are the operator's, with its defaults;
// InvalidArgument names the first that is not. With `shared`, several operators
// have the space, and may lack attributes.
absl::Status CheckDeclaredAttributes(
    const Operator& op,
    const google::protobuf::RepeatedPtrField<proto::Attribute>& declared,
    bool shared = false);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_ATTRIBUTES_H_
