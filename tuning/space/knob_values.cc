#include "tuning/space/knob_values.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

constexpr int kMaxLevels = 4096;
constexpr int kMaxParts = 8;

absl::Status ReadInts(const proto::Space::Knob& knob,
                      const TextProtoPlace& place, ParsedKnob* parsed) {
  if (knob.ints_size() > kMaxLevels) {
    return place.Child("ints", 0).Error(
        absl::StrCat("knob \"", knob.name(), "\" has ", knob.ints_size(),
                     " values, expected at most ", kMaxLevels));
  }
  std::set<int64_t> seen;
  for (int i = 0; i < knob.ints_size(); ++i) {
    if (!seen.insert(knob.ints(i)).second) {
      return place.Child("ints", i).Error(absl::StrCat(
          "knob \"", knob.name(), "\" has the value ", knob.ints(i), " twice"));
    }
  }
  parsed->ints.assign(seen.begin(), seen.end());
  return absl::OkStatus();
}

absl::Status ReadPow2(const proto::Space::Knob& knob,
                      const TextProtoPlace& place, ParsedKnob* parsed) {
  const TextProtoPlace at = place.Child("pow2");
  const int64_t min = knob.pow2().has_min() ? knob.pow2().min() : 1;
  if (!knob.pow2().has_max()) {
    return at.Error(
        absl::StrCat("pow2 of knob \"", knob.name(), "\" lacks max"));
  }
  for (const auto& [field, value] :
       {std::make_pair("min", min), {"max", knob.pow2().max()}}) {
    if (value < 1 || (value & (value - 1)) != 0) {
      return at.Child(field).Error(absl::StrCat(field, " of knob \"",
                                                knob.name(), "\" is ", value,
                                                ", expected a power of two"));
    }
  }
  if (knob.pow2().max() < min) {
    return at.Child("max").Error(
        absl::StrCat("max of knob \"", knob.name(), "\" is ", knob.pow2().max(),
                     ", expected at least min, ", min));
  }
  for (int64_t v = min; v <= knob.pow2().max(); v *= 2) {
    parsed->ints.push_back(v);
    if (v == int64_t{1} << 62) break;
  }
  return absl::OkStatus();
}

absl::Status CheckDim(const proto::Space::Knob& knob, const std::string& dim,
                      const TextProtoPlace& place) {
  if (!IsDimName(dim)) {
    return place.Child("dim").Error(
        absl::StrCat("dim of knob \"", knob.name(), "\" is \"", dim,
                     "\", expected the name of a dimension"));
  }
  return absl::OkStatus();
}

absl::Status ReadDivisors(const proto::Space::Knob& knob,
                          const TextProtoPlace& place, ParsedKnob* parsed) {
  const proto::Space::Divisors& divisors = knob.divisors();
  const TextProtoPlace at = place.Child("divisors");
  OPTRAIL_RETURN_IF_ERROR(CheckDim(knob, divisors.dim(), at));
  parsed->kind = ParsedKnob::kDivisors;
  parsed->dim = divisors.dim();
  parsed->min = divisors.has_min() ? divisors.min() : 1;
  parsed->max = divisors.has_max() ? divisors.max() : INT64_MAX;
  if (parsed->min < 1 || parsed->max < parsed->min) {
    return at.Error(absl::StrCat("divisors of knob \"", knob.name(),
                                 "\" between ", parsed->min, " and ",
                                 parsed->max, ", expected 1 <= min <= max"));
  }
  return absl::OkStatus();
}

absl::Status ReadSplit(const proto::Space::Knob& knob,
                       const TextProtoPlace& place, ParsedKnob* parsed) {
  const TextProtoPlace at = place.Child("split");
  const int parts = knob.split().parts();
  OPTRAIL_RETURN_IF_ERROR(CheckDim(knob, knob.split().dim(), at));
  if (!knob.absent().empty()) {
    return place.Child("absent").Error(
        absl::StrCat("knob \"", knob.name(),
                     "\" is a split, whose parts depend on the shape, "
                     "expected no absent"));
  }
  if (parts < 2 || parts > kMaxParts) {
    return at.Child("parts").Error(absl::StrCat("parts of knob \"", knob.name(),
                                                "\" is ", parts,
                                                ", expected 2 to ", kMaxParts));
  }
  parsed->kind = ParsedKnob::kSplitPart;
  parsed->dim = knob.split().dim();
  parsed->split_parts = parts;
  return absl::OkStatus();
}

absl::Status ReadVariants(const proto::Space::Knob& knob,
                          const TextProtoPlace& place, ParsedKnob* parsed) {
  parsed->kind = ParsedKnob::kVariants;
  std::set<std::string> seen;
  for (int i = 0; i < knob.variants_size(); ++i) {
    const std::string& variant = knob.variants(i);
    if (!IsVariantName(variant)) {
      return place.Child("variants", i)
          .Error(absl::StrCat(
              "variant \"", variant, "\" of knob \"", knob.name(),
              "\": expected [A-Za-z0-9_][A-Za-z0-9_.-]*, no number, true or "
              "false"));
    }
    if (!seen.insert(variant).second) {
      return place.Child("variants", i)
          .Error(absl::StrCat("knob \"", knob.name(), "\" has the variant \"",
                              variant, "\" twice"));
    }
    parsed->variants.push_back(variant);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsVariantName(absl::string_view name) {
  int64_t number;
  if (name.empty() || name == "true" || name == "false" || name[0] == '.' ||
      name[0] == '-' || absl::SimpleAtoi(name, &number)) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

bool IsDimName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status ReadValues(const proto::Space::Knob& knob,
                        const TextProtoPlace& place, ParsedKnob* parsed) {
  std::vector<std::string> kinds;
  if (!knob.ints().empty()) kinds.push_back("ints");
  if (knob.has_pow2()) kinds.push_back("pow2");
  if (knob.has_divisors()) kinds.push_back("divisors");
  if (knob.has_split()) kinds.push_back("split");
  if (knob.boolean()) kinds.push_back("boolean");
  if (!knob.variants().empty()) kinds.push_back("variants");
  if (kinds.size() != 1) {
    return place.Error(absl::StrCat(
        "knob \"", knob.name(), "\" has ",
        kinds.empty() ? "no values" : absl::StrJoin(kinds, " and "),
        ", expected one of ints, pow2, divisors, split, boolean, variants"));
  }
  if (!knob.ints().empty()) return ReadInts(knob, place, parsed);
  if (knob.has_pow2()) return ReadPow2(knob, place, parsed);
  if (knob.has_divisors()) return ReadDivisors(knob, place, parsed);
  if (knob.has_split()) return ReadSplit(knob, place, parsed);
  if (!knob.boolean()) return ReadVariants(knob, place, parsed);
  parsed->kind = ParsedKnob::kBoolean;
  return absl::OkStatus();
}

absl::optional<int64_t> ValueOf(const ParsedKnob& knob,
                                const proto::KnobValue& value) {
  switch (value.value_case()) {
    case proto::KnobValue::kInt:
      if (knob.ordinal()) return value.int_();
      break;
    case proto::KnobValue::kBool:
      if (knob.kind == ParsedKnob::kBoolean) return value.bool_() ? 1 : 0;
      break;
    case proto::KnobValue::kVariant: {
      const auto found = std::find(knob.variants.begin(), knob.variants.end(),
                                   value.variant());
      if (found != knob.variants.end()) return found - knob.variants.begin();
      break;
    }
    case proto::KnobValue::VALUE_NOT_SET:
      break;
  }
  return absl::nullopt;
}

std::string ExpectedValue(const ParsedKnob& knob) {
  switch (knob.kind) {
    case ParsedKnob::kInts:
      if (knob.ints.size() > 16) {
        return absl::StrCat("one of ", knob.ints.size(), " integers from ",
                            knob.ints.front(), " to ", knob.ints.back());
      }
      return absl::StrCat("one of ", absl::StrJoin(knob.ints, ", "));
    case ParsedKnob::kDivisors:
    case ParsedKnob::kSplitPart:
      return absl::StrCat("an integer, a divisor of dim.", knob.dim);
    case ParsedKnob::kBoolean:
      return "true or false";
    case ParsedKnob::kVariants:
      return absl::StrCat("one of ", absl::StrJoin(knob.variants, ", "));
  }
  return "?";
}

}  // namespace optrail::tuning
