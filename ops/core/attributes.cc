#include "ops/core/attributes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "ops/core/operator.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

const AttributeSpec* Find(const std::vector<AttributeSpec>& specs,
                          absl::string_view name) {
  for (const AttributeSpec& spec : specs) {
    if (spec.default_value.name() == name) return &spec;
  }
  return nullptr;
}

std::string Names(const std::vector<AttributeSpec>& specs) {
  if (specs.empty()) return "none";
  return absl::StrJoin(specs, ", ",
                       [](std::string* out, const AttributeSpec& spec) {
                         absl::StrAppend(out, spec.default_value.name());
                       });
}

std::string Expected(const AttributeSpec& spec) {
  if (spec.default_value.has_variant()) {
    return absl::StrCat("one of ", absl::StrJoin(spec.variants, ", "));
  }
  if (spec.max == std::numeric_limits<int64_t>::max()) {
    return absl::StrCat("an integer of at least ", spec.min);
  }
  return absl::StrCat("an integer from ", spec.min, " to ", spec.max);
}

bool CanBe(const AttributeSpec& spec, const proto::Attribute& value) {
  if (value.value_case() != spec.default_value.value_case()) return false;
  if (value.has_int_()) {
    return spec.min <= value.int_() && value.int_() <= spec.max;
  }
  return std::find(spec.variants.begin(), spec.variants.end(),
                   value.variant()) != spec.variants.end();
}

proto::Attribute ValueOf(const Operator& op, const proto::Shape& shape,
                         absl::string_view name) {
  const std::vector<AttributeSpec> specs = op.attributes();
  const AttributeSpec* spec = Find(specs, name);
  OPTRAIL_CHECK(spec != nullptr)
      << "operator " << op.name() << " declares no attribute \"" << name
      << "\"; it has: " << Names(specs);
  const proto::Attribute* given =
      tuning::FindAttribute(shape.attributes(), name);
  return given == nullptr ? spec->default_value : *given;
}

}  // namespace

AttributeSpec IntAttribute(absl::string_view name, int64_t default_value,
                           int64_t min, int64_t max) {
  AttributeSpec spec;
  spec.default_value.set_name(std::string(name));
  spec.default_value.set_int_(default_value);
  spec.min = min;
  spec.max = max;
  OPTRAIL_CHECK(CanBe(spec, spec.default_value))
      << "attribute " << name << ": the default is not among its values";
  return spec;
}

AttributeSpec VariantAttribute(absl::string_view name,
                               absl::string_view default_value,
                               std::vector<std::string> variants) {
  AttributeSpec spec;
  spec.default_value.set_name(std::string(name));
  spec.default_value.set_variant(std::string(default_value));
  spec.variants = std::move(variants);
  OPTRAIL_CHECK(CanBe(spec, spec.default_value))
      << "attribute " << name << ": the default is not among its variants";
  return spec;
}

absl::StatusOr<proto::Shape> NormaliseAttributes(const Operator& op,
                                                 proto::Shape shape) {
  if (shape.attributes().empty()) return shape;
  const std::vector<AttributeSpec> specs = op.attributes();
  const std::string text = tuning::CanonicalText(shape);
  tuning::Attributes kept;
  for (const proto::Attribute& attribute : shape.attributes()) {
    const AttributeSpec* spec = Find(specs, attribute.name());
    if (spec == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", text, ": operator ", op.name(), " has no attribute \"",
          attribute.name(), "\"; it has: ", Names(specs)));
    }
    if (!CanBe(*spec, attribute)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", text, " of operator ", op.name(), ": attribute ",
          attribute.name(), " is ", tuning::ValueText(attribute), ", expected ",
          Expected(*spec)));
    }
    if (tuning::FindAttribute(kept, attribute.name()) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", text, " of operator ", op.name(),
                       " gives attribute ", attribute.name(), " twice"));
    }
    if (!tuning::SameValue(attribute, spec->default_value)) {
      *kept.Add() = attribute;
    }
  }
  std::sort(kept.begin(), kept.end(),
            [](const proto::Attribute& a, const proto::Attribute& b) {
              return a.name() < b.name();
            });
  *shape.mutable_attributes() = std::move(kept);
  return shape;
}

absl::Status CheckAttributes(const Operator& op, const proto::Shape& shape) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape normal,
                           NormaliseAttributes(op, shape));
  const auto names = [](const proto::Shape& of) {
    return absl::StrJoin(of.attributes(), ",",
                         [](std::string* out, const proto::Attribute& a) {
                           absl::StrAppend(out, a.name());
                         });
  };
  if (names(normal) == names(shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shape ", tuning::CanonicalText(shape), " of operator ",
                   op.name(), ": expected ", tuning::CanonicalText(normal),
                   ", without defaults and sorted by name"));
}

int64_t IntAttributeOf(const Operator& op, const proto::Shape& shape,
                       absl::string_view name) {
  const proto::Attribute value = ValueOf(op, shape, name);
  OPTRAIL_CHECK(value.has_int_())
      << "attribute " << name << " of operator " << op.name()
      << " is a variant, not an integer";
  return value.int_();
}

std::string VariantAttributeOf(const Operator& op, const proto::Shape& shape,
                               absl::string_view name) {
  const proto::Attribute value = ValueOf(op, shape, name);
  OPTRAIL_CHECK(value.has_variant())
      << "attribute " << name << " of operator " << op.name()
      << " is an integer, not a variant";
  return value.variant();
}

absl::Status CheckDeclaredAttributes(
    const Operator& op,
    const google::protobuf::RepeatedPtrField<proto::Attribute>& declared,
    bool shared) {
  const std::vector<AttributeSpec> specs = op.attributes();
  for (const proto::Attribute& attribute : declared) {
    const AttributeSpec* spec = Find(specs, attribute.name());
    if (spec == nullptr && shared) continue;
    if (spec == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op.name(), " has no attribute \"",
                       attribute.name(), "\"; it has: ", Names(specs)));
    }
    if (!tuning::SameValue(attribute, spec->default_value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attribute ", attribute.name(), " has the default ",
          tuning::ValueText(attribute), ", expected the operator's, ",
          tuning::ValueText(spec->default_value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace optrail::ops
