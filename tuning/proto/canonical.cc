#include "tuning/proto/canonical.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

constexpr size_t kMaxTextBytes = 4096;

bool IsName(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsVariant(absl::string_view text) {
  if (text.empty() || text[0] == '.' || text[0] == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

// Splits "a=1,b=2" into trimmed (name, value) pairs with distinct names.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParsePairs(
    absl::string_view what, absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " text has ", text.size(),
                     " bytes, expected at most ", kMaxTextBytes));
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  if (absl::StripAsciiWhitespace(text).empty()) return pairs;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(parts.first);
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (!IsName(name) || value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", item, "\" in ", what, " \"", text, "\": expected name=value"));
    }
    for (const auto& [earlier, unused] : pairs) {
      if (earlier == name) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, " \"", text, "\" gives \"", name, "\" twice"));
      }
    }
    pairs.emplace_back(name, value);
  }
  return pairs;
}

template <typename Enum>
absl::StatusOr<Enum> ParseEnum(absl::string_view what, absl::string_view name,
                               bool (*is_valid)(int),
                               std::string (*print)(Enum), int max) {
  std::vector<std::string> known;
  for (int i = 1; i <= max; ++i) {
    if (!is_valid(i)) continue;
    known.push_back(print(static_cast<Enum>(i)));
    if (known.back() == name) return static_cast<Enum>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown ", what, " \"", name,
                                                 "\", expected one of ",
                                                 absl::StrJoin(known, ", ")));
}

}  // namespace

std::string CanonicalText(const proto::KnobValue& value) {
  switch (value.value_case()) {
    case proto::KnobValue::kInt:
      return absl::StrCat(value.int_());
    case proto::KnobValue::kBool:
      return value.bool_() ? "true" : "false";
    case proto::KnobValue::kVariant:
      return value.variant();
    case proto::KnobValue::VALUE_NOT_SET:
      break;
  }
  return "unset";
}

std::string CanonicalText(const proto::Config& config) {
  std::vector<std::pair<std::string, std::string>> items;
  items.reserve(config.set_size());
  for (const proto::KnobValue& value : config.set()) {
    items.push_back({value.knob(), CanonicalText(value)});
  }
  std::sort(items.begin(), items.end());
  return absl::StrJoin(items, ",", absl::PairFormatter("="));
}

absl::StatusOr<proto::Config> ParseConfig(absl::string_view text) {
  OPTRAIL_ASSIGN_OR_RETURN(auto pairs, ParsePairs("config", text));
  std::sort(pairs.begin(), pairs.end());
  proto::Config config;
  for (const auto& [name, value] : pairs) {
    proto::KnobValue* knob = config.add_set();
    knob->set_knob(name);
    int64_t number;
    if (value == "true" || value == "false") {
      knob->set_bool_(value == "true");
    } else if (absl::SimpleAtoi(value, &number)) {
      knob->set_int_(number);
    } else if (IsVariant(value)) {
      knob->set_variant(value);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "value \"", value, "\" of knob \"", name,
          "\": expected an integer, true, false or a variant's name"));
    }
  }
  return config;
}

std::string ValueText(const proto::Attribute& attribute) {
  switch (attribute.value_case()) {
    case proto::Attribute::kInt:
      return absl::StrCat(attribute.int_());
    case proto::Attribute::kVariant:
      return attribute.variant();
    case proto::Attribute::VALUE_NOT_SET:
      break;
  }
  return "unset";
}

bool SameValue(const proto::Attribute& a, const proto::Attribute& b) {
  if (a.value_case() != b.value_case()) return false;
  return a.int_() == b.int_() && a.variant() == b.variant();
}

const proto::Attribute* FindAttribute(const Attributes& attributes,
                                      absl::string_view name) {
  for (const proto::Attribute& attribute : attributes) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

std::string CanonicalText(const Attributes& attributes) {
  std::vector<std::pair<std::string, std::string>> items;
  items.reserve(attributes.size());
  for (const proto::Attribute& attribute : attributes) {
    items.push_back({attribute.name(), ValueText(attribute)});
  }
  std::sort(items.begin(), items.end());
  return absl::StrJoin(items, ",", absl::PairFormatter("="));
}

absl::StatusOr<Attributes> ParseAttributes(absl::string_view text) {
  OPTRAIL_ASSIGN_OR_RETURN(auto pairs, ParsePairs("attributes", text));
  std::sort(pairs.begin(), pairs.end());
  Attributes attributes;
  for (const auto& [name, value] : pairs) {
    proto::Attribute* attribute = attributes.Add();
    attribute->set_name(name);
    int64_t number;
    if (absl::SimpleAtoi(value, &number)) {
      attribute->set_int_(number);
    } else if (IsVariant(value) && value != "true" && value != "false") {
      attribute->set_variant(value);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("value \"", value, "\" of attribute \"", name,
                       "\": expected an integer or a variant's name"));
    }
  }
  return attributes;
}

std::string CanonicalText(const proto::Shape& shape) {
  std::string dims =
      absl::StrJoin(shape.dims(), ",", [](std::string* out, const auto& dim) {
        absl::StrAppend(out, dim.name(), "=", dim.value());
      });
  std::vector<std::string> types;
  for (int type : shape.data_types()) {
    types.push_back(DataTypeName(static_cast<proto::DataType>(type)));
  }
  const std::string attributes = CanonicalText(shape.attributes());
  return absl::StrCat(dims, "/", attributes, attributes.empty() ? "" : "/",
                      absl::StrJoin(types, "+"));
}

absl::StatusOr<proto::Shape> ParseShape(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() != 2 && parts.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape \"", text,
        "\": expected DIM=SIZE,.../TYPE such as m=512,n=64/f32, or "
        "DIM=SIZE,.../ATTRIBUTE=VALUE,.../TYPE"));
  }
  proto::Shape shape;
  OPTRAIL_ASSIGN_OR_RETURN(const auto pairs, ParsePairs("shape", parts[0]));
  for (const auto& [name, value] : pairs) {
    int64_t size;
    if (!absl::SimpleAtoi(value, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension \"", name, "\" of shape \"", text, "\" is \"",
                       value, "\", expected a positive integer"));
    }
    proto::Dim* dim = shape.add_dims();
    dim->set_name(name);
    dim->set_value(size);
  }
  if (parts.size() == 3) {
    OPTRAIL_ASSIGN_OR_RETURN(*shape.mutable_attributes(),
                             ParseAttributes(parts[1]));
    if (shape.attributes().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape \"", text,
          "\" has no attribute between its two \"/\", expected name=value"));
    }
  }
  for (absl::string_view type : absl::StrSplit(parts.back(), '+')) {
    OPTRAIL_ASSIGN_OR_RETURN(const proto::DataType parsed,
                             ParseDataType(absl::StripAsciiWhitespace(type)));
    shape.add_data_types(parsed);
  }
  return shape;
}

absl::optional<int64_t> DimValue(const proto::Shape& shape,
                                 absl::string_view name) {
  for (const proto::Dim& dim : shape.dims()) {
    if (dim.name() == name) return dim.value();
  }
  return absl::nullopt;
}

std::string DataTypeName(proto::DataType type) {
  if (type == proto::DATA_TYPE_UNSPECIFIED) return "unspecified";
  return absl::AsciiStrToLower(proto::DataType_Name(type));
}

absl::StatusOr<proto::DataType> ParseDataType(absl::string_view name) {
  return ParseEnum<proto::DataType>("data type", name, proto::DataType_IsValid,
                                    DataTypeName, proto::DataType_MAX);
}

int DataTypeBytes(proto::DataType type) {
  switch (type) {
    case proto::F64:
    case proto::I64:
      return 8;
    case proto::F32:
    case proto::I32:
      return 4;
    case proto::F16:
    case proto::BF16:
    case proto::I16:
      return 2;
    case proto::F8E4M3:
    case proto::F8E5M2:
    case proto::I8:
    case proto::U8:
    case proto::BOOL:
      return 1;
    default:
      return 0;
  }
}

std::string DeviceName(proto::DeviceKind device) {
  if (device == proto::DEVICE_KIND_UNSPECIFIED) return "unspecified";
  if (!proto::DeviceKind_IsValid(device)) {
    return absl::StrCat(static_cast<int>(device));
  }
  return absl::AsciiStrToLower(proto::DeviceKind_Name(device));
}

absl::StatusOr<proto::DeviceKind> ParseDevice(absl::string_view name) {
  int number = 0;
  if (absl::SimpleAtoi(name, &number) && number > 0 &&
      !proto::DeviceKind_IsValid(number) && absl::StrCat(number) == name) {
    return static_cast<proto::DeviceKind>(number);
  }
  return ParseEnum<proto::DeviceKind>("device", name, proto::DeviceKind_IsValid,
                                      DeviceName, proto::DeviceKind_MAX);
}

std::string CacheModeName(proto::CacheMode mode) {
  if (mode == proto::CACHE_MODE_UNSPECIFIED) return "unspecified";
  return absl::AsciiStrToLower(proto::CacheMode_Name(mode));
}

absl::StatusOr<proto::CacheMode> ParseCacheMode(absl::string_view name) {
  return ParseEnum<proto::CacheMode>("cache mode", name,
                                     proto::CacheMode_IsValid, CacheModeName,
                                     proto::CacheMode_MAX);
}

int Severity(proto::Outcome outcome) {
  static constexpr proto::Outcome kRising[] = {
      proto::OUTCOME_UNSPECIFIED, proto::OK,           proto::CENSORED,
      proto::CONTENDED,           proto::UNSUPPORTED,  proto::INVALID,
      proto::COMPILE_ERROR,       proto::LAUNCH_ERROR, proto::OUT_OF_MEMORY,
      proto::TIMED_OUT,           proto::CRASHED};
  // One that this version does not know is before the worst.
  if (outcome == proto::WRONG_RESULT) return std::size(kRising) + 1;
  const auto* const found =
      std::find(std::begin(kRising), std::end(kRising), outcome);
  return static_cast<int>(found - std::begin(kRising));
}

bool IsFailure(proto::Outcome outcome) {
  return Severity(outcome) > Severity(proto::UNSUPPORTED);
}

std::string OutcomeName(proto::Outcome outcome) {
  // A newer writer may know outcomes that this reader does not.
  if (!proto::Outcome_IsValid(outcome)) {
    return absl::StrCat("OUTCOME_", static_cast<int>(outcome));
  }
  return proto::Outcome_Name(outcome);
}

std::string LaunchModeName(proto::LaunchMode mode) {
  if (mode == proto::LAUNCH_MODE_UNSPECIFIED) return "unspecified";
  if (!proto::LaunchMode_IsValid(mode)) {
    return absl::StrCat(static_cast<int>(mode));
  }
  return absl::AsciiStrToLower(proto::LaunchMode_Name(mode));
}

absl::StatusOr<proto::LaunchMode> ParseLaunchMode(absl::string_view name) {
  return ParseEnum<proto::LaunchMode>("launch mode", name,
                                      proto::LaunchMode_IsValid, LaunchModeName,
                                      proto::LaunchMode_MAX);
}

bool IsBackendName(absl::string_view name) {
  return !name.empty() && name.size() <= 64 && absl::ascii_islower(name[0]) &&
         name != "best" && name != "all" &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

std::string DeviceAndBackend(proto::DeviceKind device,
                             absl::string_view backend) {
  return absl::StrCat(DeviceName(device), backend.empty() ? "" : ":", backend);
}

std::string ObjectivesText(
    const google::protobuf::RepeatedPtrField<proto::Objective>& objectives) {
  std::vector<std::string> texts;
  for (const proto::Objective& objective : objectives) {
    const bool higher = objective.direction() == proto::HIGHER_IS_BETTER;
    std::string text =
        absl::StrCat(objective.metric(), higher ? ":max" : ":min");
    if (objective.has_weight()) {
      absl::StrAppend(&text, "@", objective.weight());
    }
    const char* const relation = higher ? ">=" : "<=";
    if (objective.has_limit_over_best()) {
      absl::StrAppend(&text, relation, objective.limit_over_best(), "x");
    } else if (objective.has_limit()) {
      absl::StrAppend(&text, relation, objective.limit());
    }
    texts.push_back(std::move(text));
  }
  const std::string all = absl::StrJoin(texts, ",");
  return all == "time:min" ? "" : all;
}

std::string TaskText(const proto::Task& task) {
  std::vector<std::string> parts = {
      task.operator_name(),
      DeviceAndBackend(task.device_kind(), task.backend())};
  // A command has neither a shape nor threads that we know of.
  if (task.shape().data_types_size() > 0) {
    parts.push_back(CanonicalText(task.shape()));
  }
  if (task.threads() > 0) {
    parts.push_back(absl::StrCat("threads=", task.threads()));
  }
  if (task.cache_mode() != proto::CACHE_MODE_UNSPECIFIED) {
    parts.push_back(CacheModeName(task.cache_mode()));
  }
  if (task.launch_mode() != proto::LAUNCH_MODE_UNSPECIFIED) {
    parts.push_back(LaunchModeName(task.launch_mode()));
  }
  if (task.devices() > 1) {
    parts.push_back(absl::StrCat("devices=", task.devices()));
  }
  return absl::StrJoin(parts, "/");
}

std::string TrialKey(const proto::Task& task, const proto::Config& config) {
  std::string text = TaskText(task);
  // Journals are named by it, also those of commands from before TaskText left
  // out what they lack.
  if (task.shape().data_types_size() == 0) {
    text = absl::StrCat(task.operator_name(), "/",
                        DeviceAndBackend(task.device_kind(), task.backend()),
                        "///threads=", task.threads(), "/",
                        CacheModeName(task.cache_mode()));
  }
  return absl::StrCat(text, "|", task.kernel_id(), "|", task.hardware_id(), "|",
                      CanonicalText(config));
}

}  // namespace optrail::tuning
