#include "tracker/series/series_key.h"

#include <algorithm>
#include <utility>
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
constexpr absl::string_view kDevices = "devices=";
constexpr absl::string_view kLaunch = "launch=";
constexpr absl::string_view kObjective = "objective=";

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

// "-" for 0; numbers that this build has no name for come from a newer schema.
template <typename Enum>
std::string NameOrNumber(Enum value, bool (*is_known)(int),
                         std::string (*name)(Enum)) {
  if (value == 0) return std::string(kAbsent);
  return is_known(value) ? name(value) : absl::StrCat(static_cast<int>(value));
}

std::string SelectionText(const proto::BenchmarkKey& key) {
  switch (key.selection()) {
    case proto::CONFIG_SELECTION_UNSPECIFIED:
      if (key.config_name().empty()) return std::string(kAbsent);
      return absl::StrCat("-=", Escape(key.config_name()));
    case proto::DEFAULT:
      return "default";
    case proto::TUNED:
      if (key.objective().empty()) return "tuned";
      return absl::StrCat("tuned=", Escape(key.objective()));
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
         key.cache_mode() == 0 && key.backend().empty() &&
         key.launch_mode() == 0 && key.objective().empty() &&
         key.devices() == 0 && key.shape().attributes().empty();
}

std::string DeviceAndBackendText(const proto::BenchmarkKey& key) {
  const std::string device = NameOrNumber(
      key.device_kind(), proto::DeviceKind_IsValid, tuning::DeviceName);
  if (key.backend().empty()) return device;
  return absl::StrCat(device, ":", Escape(key.backend()));
}

std::string AttributesText(const proto::Shape& shape) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const proto::Attribute& attribute : shape.attributes()) {
    items.push_back(
        {Escape(attribute.name()), Escape(tuning::ValueText(attribute))});
  }
  std::sort(items.begin(), items.end());
  return absl::StrJoin(items, ",", absl::PairFormatter("="));
}

// The parts after the cache mode: only those that a key has.
std::string OptionalText(const proto::BenchmarkKey& key) {
  std::string text;
  if (key.launch_mode() != 0) {
    if (proto::LaunchMode_IsValid(key.launch_mode())) {
      absl::StrAppend(&text, "/", tuning::LaunchModeName(key.launch_mode()));
    } else {
      absl::StrAppend(&text, "/", kLaunch, static_cast<int>(key.launch_mode()));
    }
  }
  if (key.devices() != 0) {
    absl::StrAppend(&text, "/", kDevices, key.devices());
  }
  if (key.selection() != proto::TUNED && !key.objective().empty()) {
    absl::StrAppend(&text, "/", kObjective, Escape(key.objective()));
  }
  return text;
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
    names.push_back(NameOrNumber(static_cast<proto::DataType>(type),
                                 proto::DataType_IsValid,
                                 tuning::DataTypeName));
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

  // "cpu", "cpu:openblas".
  absl::Status DeviceAndBackend(absl::string_view component,
                                proto::BenchmarkKey* key) const {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(component, absl::MaxSplits(':', 1));
    OPTRAIL_ASSIGN_OR_RETURN(
        const proto::DeviceKind device,
        EnumValue("a device", parts.first, &tuning::ParseDevice));
    key->set_device_kind(device);
    if (parts.first == component) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(*key->mutable_backend(),
                             Unescape(parts.second, text_));
    return absl::OkStatus();
  }

  // Takes a part after the cache mode; its form says which one it is.
  absl::Status OptionalPart(absl::string_view component,
                            proto::BenchmarkKey* key) const {
    absl::string_view rest = component;
    if (absl::ConsumePrefix(&rest, kDevices)) {
      OPTRAIL_ASSIGN_OR_RETURN(const int32_t devices,
                               Number("devices=N", component, rest));
      key->set_devices(devices);
    } else if (absl::ConsumePrefix(&rest, kObjective)) {
      OPTRAIL_ASSIGN_OR_RETURN(*key->mutable_objective(),
                               Unescape(rest, text_));
    } else if (absl::ConsumePrefix(&rest, kLaunch)) {
      OPTRAIL_ASSIGN_OR_RETURN(const int32_t mode,
                               Number("launch=N", component, rest));
      key->set_launch_mode(static_cast<proto::LaunchMode>(mode));
    } else if (const auto mode = tuning::ParseLaunchMode(component);
               mode.ok()) {
      key->set_launch_mode(*mode);
    } else {
      return Version(component, key);
    }
    return absl::OkStatus();
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

  // A component of the form name=value,...; where it stands, nothing else has
  // an equals sign.
  absl::Status Attributes(absl::string_view component,
                          proto::Shape* shape) const {
    for (const absl::string_view item : absl::StrSplit(component, ',')) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(item, absl::MaxSplits('=', 1));
      proto::Attribute* attribute = shape->add_attributes();
      OPTRAIL_ASSIGN_OR_RETURN(*attribute->mutable_name(),
                               Unescape(parts.first, text_));
      int64_t number = 0;
      if (absl::SimpleAtoi(parts.second, &number) &&
          absl::StrCat(number) == parts.second) {
        attribute->set_int_(number);
        continue;
      }
      OPTRAIL_ASSIGN_OR_RETURN(std::string variant,
                               Unescape(parts.second, text_));
      attribute->set_variant(std::move(variant));
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
    } else if (parts.first == "tuned") {
      key->set_selection(proto::TUNED);
      if (component == parts.first) return absl::OkStatus();
      OPTRAIL_ASSIGN_OR_RETURN(*key->mutable_objective(),
                               Unescape(parts.second, text_));
    } else if (absl::StrContains(component, '=') &&
               (parts.first == "named" || parts.first == kAbsent)) {
      if (parts.first == "named") key->set_selection(proto::NAMED);
      OPTRAIL_ASSIGN_OR_RETURN(*key->mutable_config_name(),
                               Unescape(parts.second, text_));
    } else {
      constexpr absl::string_view kWhat =
          "default, tuned, tuned=OBJECTIVE or named=NAME";
      OPTRAIL_ASSIGN_OR_RETURN(const int32_t number,
                               Number(kWhat, component, component));
      key->set_selection(static_cast<proto::ConfigSelection>(number));
    }
    return absl::OkStatus();
  }

  absl::Status Version(absl::string_view component,
                       proto::BenchmarkKey* key) const {
    absl::string_view digits = component;
    constexpr absl::string_view kWhat =
        "stream, graph, devices=N or a version like v2";
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
      {name, DeviceAndBackendText(key),
       key.shape().attributes().empty()
           ? DimsText(key.shape())
           : absl::StrCat(DimsText(key.shape()), "/",
                          AttributesText(key.shape())),
       TypesText(key.shape()), SelectionText(key),
       absl::StrCat("threads=", key.threads()),
       absl::StrCat(NameOrNumber(key.cache_mode(), proto::CacheMode_IsValid,
                                 tuning::CacheModeName),
                    OptionalText(key))},
      "/");
}

std::string CanonicalText(const proto::BenchmarkKey& key) {
  std::string text = TextWithoutVersion(key);
  if (key.version() != 0) absl::StrAppend(&text, "/v", key.version());
  return text;
}

std::string SelectionName(const proto::BenchmarkKey& key) {
  switch (key.selection()) {
    case proto::DEFAULT:
      return "default";
    case proto::TUNED:
      return key.objective().empty()
                 ? "tuned"
                 : absl::StrCat("tuned for ", key.objective());
    case proto::NAMED:
      return key.config_name();
    default:
      return "";
  }
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
  size_t next = 1;
  const auto take = [&] {
    return next < parts.size() ? parts[next++] : absl::string_view();
  };
  if (parts.size() < 7) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': expected at least 7 components like ",
        "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot, found ",
        parts.size()));
  }
  OPTRAIL_RETURN_IF_ERROR(parser.DeviceAndBackend(take(), &key));
  OPTRAIL_RETURN_IF_ERROR(parser.Dims(take(), key.mutable_shape()));
  if (absl::StrContains(parts[next], '=')) {
    OPTRAIL_RETURN_IF_ERROR(parser.Attributes(take(), key.mutable_shape()));
  }
  OPTRAIL_RETURN_IF_ERROR(parser.Types(take(), key.mutable_shape()));
  OPTRAIL_RETURN_IF_ERROR(parser.Selection(take(), &key));
  const absl::string_view threads = take();
  absl::string_view digits = threads;
  if (!absl::ConsumePrefix(&digits, "threads=")) {
    return parser.Expected("threads=N", threads);
  }
  OPTRAIL_ASSIGN_OR_RETURN(const int32_t thread_count,
                           parser.Number("threads=N", threads, digits));
  key.set_threads(thread_count);
  OPTRAIL_ASSIGN_OR_RETURN(
      const proto::CacheMode cache,
      parser.EnumValue("hot or cold", take(), &tuning::ParseCacheMode));
  key.set_cache_mode(cache);
  while (next < parts.size()) {
    OPTRAIL_RETURN_IF_ERROR(parser.OptionalPart(take(), &key));
  }
  // Neither another order nor a part twice.
  if (CanonicalText(key) != text) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected '", CanonicalText(key), "'"));
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
