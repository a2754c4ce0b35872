#include "tracker/series/series_key.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

constexpr absl::string_view kAbsent = "-";
constexpr absl::string_view kSeparators = "%/|,=+";

std::string Escape(absl::string_view text) {
  if (text.empty()) return std::string(kAbsent);
  if (text == kAbsent) return "%2D";
  std::string escaped;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || absl::StrContains(kSeparators, c)) {
      absl::StrAppendFormat(&escaped, "%%%02X", byte);
    } else {
      escaped.push_back(c);
    }
  }
  return escaped;
}

absl::StatusOr<std::string> Unescape(absl::string_view component,
                                     absl::string_view text) {
  if (component == kAbsent) return std::string();
  std::string plain;
  for (size_t i = 0; i < component.size(); ++i) {
    if (component[i] != '%') {
      plain.push_back(component[i]);
      continue;
    }
    uint32_t byte = 0;
    if (i + 2 < component.size() &&
        absl::SimpleHexAtoi(component.substr(i + 1, 2), &byte)) {
      plain.push_back(static_cast<char>(byte));
      i += 2;
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected two hexadecimal digits after '%' ",
                     "in '", component, "'"));
  }
  // One text per key: what need not be escaped must not be.
  if (Escape(plain) != component) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected '", Escape(plain), "' instead of ",
                     "'", component, "'"));
  }
  return plain;
}

// Numbers that this build has no name for come from a newer schema.
std::string NameOrNumber(int value, bool known, const std::string& name) {
  if (value == 0) return std::string(kAbsent);
  return known ? name : absl::StrCat(value);
}

std::string DeviceText(proto::DeviceKind device) {
  const bool known = proto::DeviceKind_IsValid(device);
  return NameOrNumber(device, known, known ? tuning::DeviceName(device) : "");
}

std::string TypeText(proto::DataType type) {
  const bool known = proto::DataType_IsValid(type);
  return NameOrNumber(type, known, known ? tuning::DataTypeName(type) : "");
}

std::string CacheText(proto::CacheMode mode) {
  const bool known = proto::CacheMode_IsValid(mode);
  return NameOrNumber(mode, known, known ? tuning::CacheModeName(mode) : "");
}

std::string SelectionText(const proto::BenchmarkKey& key) {
  switch (key.selection()) {
    case proto::CONFIG_SELECTION_UNSPECIFIED:
      if (key.config_name().empty()) return std::string(kAbsent);
      return absl::StrCat("-=", Escape(key.config_name()));
    case proto::DEFAULT:
      return "default";
    case proto::TUNED:
      return "tuned";
    case proto::NAMED:
      return absl::StrCat("named=", Escape(key.config_name()));
    default:
      return absl::StrCat(static_cast<int>(key.selection()));
  }
}

bool IsImported(const proto::BenchmarkKey& key) {
  return key.device_kind() == 0 && key.shape().dims().empty() &&
         key.shape().data_types().empty() && key.selection() == 0 &&
         key.config_name().empty() && key.threads() == 0 &&
         key.cache_mode() == 0;
}

std::string DimsText(const proto::Shape& shape) {
  if (shape.dims().empty()) return std::string(kAbsent);
  return absl::StrJoin(
      shape.dims(), ",", [](std::string* out, const proto::Dim& dim) {
        absl::StrAppend(out, Escape(dim.name()), "=", dim.value());
      });
}

std::string TypesText(const proto::Shape& shape) {
  if (shape.data_types().empty()) return std::string(kAbsent);
  std::vector<std::string> names;
  for (const int type : shape.data_types()) {
    names.push_back(TypeText(static_cast<proto::DataType>(type)));
  }
  return absl::StrJoin(names, "+");
}

// Reads the components of one key, with the whole text for messages.
class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::Status Expected(absl::string_view what,
                        absl::string_view component) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text_, "': expected ", what, " instead of '", component, "'"));
  }

  absl::StatusOr<int32_t> Number(absl::string_view what,
                                 absl::string_view component,
                                 absl::string_view digits) const {
    int32_t number = 0;
    if (!absl::SimpleAtoi(digits, &number) || absl::StrCat(number) != digits) {
      return Expected(what, component);
    }
    return number;
  }

  // A name through `parse`, "-" for 0, or a number of a newer schema.
  template <typename Enum>
  absl::StatusOr<Enum> EnumValue(
      absl::string_view what, absl::string_view component,
      absl::StatusOr<Enum> (*parse)(absl::string_view)) const {
    if (component == kAbsent) return static_cast<Enum>(0);
    if (!component.empty() && absl::ascii_isdigit(component[0])) {
      OPTRAIL_ASSIGN_OR_RETURN(const int32_t number,
                               Number(what, component, component));
      return static_cast<Enum>(number);
    }
    const absl::StatusOr<Enum> value = parse(component);
    if (!value.ok() || *value == 0) return Expected(what, component);
    return *value;
  }

  absl::Status Dims(absl::string_view component, proto::Shape* shape) const {
    if (component == kAbsent) return absl::OkStatus();
    for (const absl::string_view dim : absl::StrSplit(component, ',')) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(dim, absl::MaxSplits('=', 1));
      int64_t value = 0;
      if (!absl::SimpleAtoi(parts.second, &value) ||
          absl::StrCat(value) != parts.second) {
        return Expected("a dimension like m=512", dim);
      }
      OPTRAIL_ASSIGN_OR_RETURN(std::string name, Unescape(parts.first, text_));
      proto::Dim* parsed = shape->add_dims();
      parsed->set_name(std::move(name));
      parsed->set_value(value);
    }
    return absl::OkStatus();
  }

  absl::Status Types(absl::string_view component, proto::Shape* shape) const {
    if (component == kAbsent) return absl::OkStatus();
    for (const absl::string_view name : absl::StrSplit(component, '+')) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const proto::DataType type,
          EnumValue("a data type", name, &tuning::ParseDataType));
      shape->add_data_types(type);
    }
    return absl::OkStatus();
  }

  absl::Status Selection(absl::string_view component,
                         proto::BenchmarkKey* key) const {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(component, absl::MaxSplits('=', 1));
    if (component == kAbsent) return absl::OkStatus();
    if (component == "default") {
      key->set_selection(proto::DEFAULT);
    } else if (component == "tuned") {
      key->set_selection(proto::TUNED);
    } else if (absl::StrContains(component, '=') &&
               (parts.first == "named" || parts.first == kAbsent)) {
      if (parts.first == "named") key->set_selection(proto::NAMED);
      OPTRAIL_ASSIGN_OR_RETURN(*key->mutable_config_name(),
                               Unescape(parts.second, text_));
    } else {
      constexpr absl::string_view kWhat = "default, tuned or named=NAME";
      OPTRAIL_ASSIGN_OR_RETURN(const int32_t number,
                               Number(kWhat, component, component));
      key->set_selection(static_cast<proto::ConfigSelection>(number));
    }
    return absl::OkStatus();
  }

  absl::Status Version(absl::string_view component,
                       proto::BenchmarkKey* key) const {
    absl::string_view digits = component;
    constexpr absl::string_view kWhat = "a version like v2";
    if (!absl::ConsumePrefix(&digits, "v")) return Expected(kWhat, component);
    OPTRAIL_ASSIGN_OR_RETURN(const int32_t version,
                             Number(kWhat, component, digits));
    if (version == 0) return Expected(kWhat, component);
    key->set_version(version);
    return absl::OkStatus();
  }

 private:
  absl::string_view text_;
};

}  // namespace

std::string TextWithoutVersion(const proto::BenchmarkKey& key) {
  const std::string name = Escape(key.operator_name());
  if (IsImported(key)) return name;
  return absl::StrJoin(
      {name, DeviceText(key.device_kind()), DimsText(key.shape()),
       TypesText(key.shape()), SelectionText(key),
       absl::StrCat("threads=", key.threads()), CacheText(key.cache_mode())},
      "/");
}

std::string CanonicalText(const proto::BenchmarkKey& key) {
  std::string text = TextWithoutVersion(key);
  if (key.version() != 0) absl::StrAppend(&text, "/v", key.version());
  return text;
}

std::string DisplayName(const proto::BenchmarkKey& key) {
  if (!IsImported(key)) return CanonicalText(key);
  if (key.version() == 0) return key.operator_name();
  return absl::StrCat(key.operator_name(), "/v", key.version());
}

std::string CanonicalText(const SeriesKey& key) {
  return absl::StrJoin(
      {CanonicalText(key.benchmark), Escape(key.metric), Escape(key.unit),
       Escape(key.hardware_id), Escape(key.branch)},
      "|");
}

absl::StatusOr<proto::BenchmarkKey> ParseBenchmarkKey(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  const Parser parser(text);
  proto::BenchmarkKey key;
  if (parts[0].empty()) return parser.Expected("a benchmark", text);
  OPTRAIL_ASSIGN_OR_RETURN(*key.mutable_operator_name(),
                           Unescape(parts[0], text));
  if (parts.size() == 1) return key;
  if (parts.size() == 2) {
    OPTRAIL_RETURN_IF_ERROR(parser.Version(parts[1], &key));
    return key;
  }
  if (parts.size() != 7 && parts.size() != 8) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': expected 7 components like ",
        "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot and perhaps a ",
        "version, found ", parts.size()));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::DeviceKind device,
      parser.EnumValue("a device", parts[1], &tuning::ParseDevice));
  key.set_device_kind(device);
  OPTRAIL_RETURN_IF_ERROR(parser.Dims(parts[2], key.mutable_shape()));
  OPTRAIL_RETURN_IF_ERROR(parser.Types(parts[3], key.mutable_shape()));
  OPTRAIL_RETURN_IF_ERROR(parser.Selection(parts[4], &key));
  absl::string_view threads = parts[5];
  if (!absl::ConsumePrefix(&threads, "threads=")) {
    return parser.Expected("threads=N", parts[5]);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const int32_t thread_count,
                           parser.Number("threads=N", parts[5], threads));
  key.set_threads(thread_count);
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::CacheMode cache,
      parser.EnumValue("hot or cold", parts[6], &tuning::ParseCacheMode));
  key.set_cache_mode(cache);
  if (parts.size() == 8) {
    OPTRAIL_RETURN_IF_ERROR(parser.Version(parts[7], &key));
  }
  return key;
}

absl::StatusOr<SeriesKey> ParseSeriesKey(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '|');
  if (parts.size() != 5) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': expected benchmark|metric|unit|hardware|branch, found ",
        parts.size(), " components"));
  }
  SeriesKey key;
  OPTRAIL_ASSIGN_OR_RETURN(key.benchmark, ParseBenchmarkKey(parts[0]));
  OPTRAIL_ASSIGN_OR_RETURN(key.metric, Unescape(parts[1], text));
  OPTRAIL_ASSIGN_OR_RETURN(key.unit, Unescape(parts[2], text));
  OPTRAIL_ASSIGN_OR_RETURN(key.hardware_id, Unescape(parts[3], text));
  OPTRAIL_ASSIGN_OR_RETURN(key.branch, Unescape(parts[4], text));
  return key;
}

}  // namespace optrail::tracker
