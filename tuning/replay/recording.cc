#include "tuning/replay/recording.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "base/file/compression.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace optrail::tuning {
namespace {

// The order of knobs in a T4 file is that of its configurations' members.
using Json = nlohmann::ordered_json;

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kMaxKnobs = 256;
// The significant digits of numbers in a cache of differences.
constexpr int kStoredDigits = 5;

absl::Status Error(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

std::string BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != absl::string_view::npos) path.remove_prefix(slash + 1);
  path = WithoutCompressionSuffix(path);
  absl::ConsumeSuffix(&path, ".json");
  absl::ConsumeSuffix(&path, "_T4");
  return std::string(path);
}

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= '0' && c <= '9');
}

// Python writes NaN, Infinity and -Infinity where JSON has no word.
std::string NonFiniteToNull(std::string text) {
  if (!absl::StrContains(text, "NaN") && !absl::StrContains(text, "Infinity")) {
    return text;
  }
  std::string result;
  result.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\' && i + 1 < text.size()) result += text[i++];
      in_string = c != '"';
      result += text[i++];
      continue;
    }
    in_string = c == '"';
    const bool word_starts = i == 0 || !IsWordChar(text[i - 1]);
    bool replaced = false;
    for (const absl::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (word_starts &&
          text.compare(i, word.size(), word.data(), word.size()) == 0) {
        result += "null";
        i += word.size();
        replaced = true;
        break;
      }
    }
    if (!replaced) result += text[i++];
  }
  return result;
}

absl::StatusOr<Json> ParseJson(const std::string& text,
                               absl::string_view name) {
  // The library reports where a text stops being JSON only by exception.
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    return Error(name, absl::StrCat("expected JSON of a Kernel Tuner cache or "
                                    "a T4 file; truncated or damaged: ",
                                    JsonReason(e)));
  }
}

// The value of a knob in a config, before levels are known.
struct Value {
  absl::optional<int64_t> integer;
  std::string label;
  bool operator<(const Value& other) const {
    if (integer && other.integer) return *integer < *other.integer;
    if (integer.has_value() != other.integer.has_value()) {
      return integer.has_value();
    }
    return label < other.label;
  }
};

absl::optional<Value> ToValue(const Json& json) {
  Value value;
  if (json.is_number_unsigned()) {
    const uint64_t u = json.get<uint64_t>();
    if (u > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return absl::nullopt;
    }
    value.integer = static_cast<int64_t>(u);
  } else if (json.is_number_integer()) {
    value.integer = json.get<int64_t>();
  } else if (json.is_number_float()) {
    const double d = json.get<double>();
    if (d == std::floor(d) && std::abs(d) < 1e15) {
      value.integer = static_cast<int64_t>(d);
    }
    value.label = absl::StrCat(d);
  } else if (json.is_boolean()) {
    value.label = json.get<bool>() ? "true" : "false";
  } else if (json.is_string()) {
    value.label = json.get<std::string>();
  } else {
    return absl::nullopt;
  }
  if (value.integer) value.label = absl::StrCat(*value.integer);
  return value;
}

// A positive, finite number; nullopt for anything else.
absl::optional<double> ToPositive(const Json& json) {
  if (!json.is_number()) return absl::nullopt;
  const double value = json.get<double>();
  if (!std::isfinite(value) || value <= 0) return absl::nullopt;
  return value;
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::vector<double> PositiveNumbers(const Json* array) {
  std::vector<double> result;
  if (array == nullptr || !array->is_array()) return result;
  for (const Json& item : *array) {
    if (const absl::optional<double> value = ToPositive(item)) {
      result.push_back(*value);
    }
  }
  return result;
}

proto::Outcome FailureOutcome(absl::string_view reason) {
  const std::string text = absl::AsciiStrToLower(reason);
  if (absl::StrContains(text, "compil")) {
    return proto::COMPILE_ERROR;
  }
  if (absl::StrContains(text, "runtime")) {
    return proto::LAUNCH_ERROR;
  }
  if (absl::StrContains(text, "correctness")) {
    return proto::WRONG_RESULT;
  }
  if (absl::StrContains(text, "timeout")) {
    return proto::TIMED_OUT;
  }
  return proto::INVALID;
}

struct RawConfig {
  std::vector<Value> values;
  RecordedConfig config;
};

absl::StatusOr<std::vector<Value>> ReadValues(
    const Json& object, const std::vector<std::string>& knobs,
    absl::string_view name, absl::string_view where) {
  if (!object.is_object()) {
    return Error(name, absl::StrCat(where, ": expected an object"));
  }
  std::vector<Value> values;
  for (const std::string& knob : knobs) {
    const Json* member = Find(object, knob.c_str());
    if (member == nullptr) {
      return Error(name, absl::StrCat(where, ": knob '", knob, "' is missing"));
    }
    absl::optional<Value> value = ToValue(*member);
    if (!value) {
      return Error(name, absl::StrCat(where, ": knob '", knob,
                                      "': expected a 64-bit integer, a number, "
                                      "a boolean or a string"));
    }
    values.push_back(*std::move(value));
  }
  return values;
}

// Restores what a row stored as differences leaves out: "times" from "least"
// and "above_1", "above_2" and so on, then "time" as their mean. N / 10^d is
// the double that the N's decimal text would be parsed to.
void RestoreTimes(Json& row) {
  const Json* least = Find(row, "least");
  const absl::optional<double> least_ms =
      least == nullptr ? absl::nullopt : ToPositive(*least);
  if (!least_ms) return;
  const int exponent =
      kStoredDigits - 1 - static_cast<int>(std::floor(std::log10(*least_ms)));
  const double scale = std::pow(10, std::abs(exponent));
  const double units =
      std::round(exponent < 0 ? *least_ms / scale : *least_ms * scale);
  Json times = Json::array();
  double sum = 0;
  for (int i = 1;; ++i) {
    const Json* above = Find(row, absl::StrCat("above_", i).c_str());
    if (above == nullptr || !above->is_number_integer()) break;
    const double sample = units + above->get<int64_t>();
    times.push_back(exponent < 0 ? sample * scale : sample / scale);
    sum += times.back().get<double>();
  }
  double mean = 0;
  if (!times.empty() && Find(row, "time") == nullptr &&
      absl::SimpleAtod(
          absl::StrFormat("%.*g", kStoredDigits, sum / times.size()), &mean)) {
    row["time"] = mean;
  }
  row["times"] = std::move(times);
}

// The rows of a cache that is stored by columns: {"tile_m": [32, 64], "time":
// [0.78, 0.61]}. What a config lacks is null there.
absl::StatusOr<Json> RowsOf(const Json& columns, absl::string_view name) {
  Json rows = Json::array();
  for (const auto& column : columns.items()) {
    const Json& values = column.value();
    if (!values.is_array()) {
      return Error(name, absl::StrCat("columns[\"", column.key(),
                                      "\"]: expected a list"));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (i == rows.size()) rows.push_back(Json::object());
      if (!values[i].is_null()) rows[i][column.key()] = values[i];
    }
  }
  for (Json& row : rows) RestoreTimes(row);
  return rows;
}

absl::Status ReadCache(const Json& root, absl::string_view name,
                       std::vector<std::string>& knobs,
                       std::vector<RawConfig>& configs) {
  const Json* keys = Find(root, "tune_params_keys");
  if (keys == nullptr || !keys->is_array() || keys->empty()) {
    return Error(name, "tune_params_keys: expected a list of knob names");
  }
  for (const Json& key : *keys) {
    if (!key.is_string()) {
      return Error(name, "tune_params_keys: expected strings");
    }
    knobs.push_back(key.get<std::string>());
  }
  const Json* columns = Find(root, "columns");
  Json rows;
  if (columns != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(rows, RowsOf(*columns, name));
  } else if (!root["cache"].is_object()) {
    return Error(name, "cache: expected an object");
  }
  const Json& cache = columns != nullptr ? rows : root["cache"];
  for (const auto& item : cache.items()) {
    const std::string where = columns != nullptr
                                  ? absl::StrCat("columns[", item.key(), "]")
                                  : absl::StrCat("cache[\"", item.key(), "\"]");
    RawConfig raw;
    OPTRAIL_ASSIGN_OR_RETURN(raw.values,
                             ReadValues(item.value(), knobs, name, where));
    const Json* time = Find(item.value(), "time");
    if (time == nullptr) {
      return Error(name, absl::StrCat(where, ": 'time' is missing"));
    }
    if (time->is_string()) {
      raw.config.outcome = FailureOutcome(time->get<std::string>());
    } else if (const absl::optional<double> mean = ToPositive(*time)) {
      raw.config.time_ms = *mean;
      raw.config.repeats_ms = PositiveNumbers(Find(item.value(), "times"));
    } else {
      raw.config.outcome = proto::WRONG_RESULT;
    }
    if (const Json* compile = Find(item.value(), "compile_time")) {
      raw.config.compile_ms = ToPositive(*compile).value_or(0);
    }
    if (const Json* energy = Find(item.value(), "nvml_energy")) {
      raw.config.joules = ToPositive(*energy).value_or(0);
    }
    if (const Json* facts = Find(item.value(), "facts");
        facts != nullptr && facts->is_object()) {
      for (const auto& fact : facts->items()) {
        if (!fact.value().is_number_integer()) continue;
        raw.config.facts.emplace_back(fact.key(), fact.value().get<int64_t>());
      }
    }
    configs.push_back(std::move(raw));
  }
  return absl::OkStatus();
}

void ReadT4Result(const Json& result, RecordedConfig& config) {
  const Json* times = Find(result, "times");
  if (times != nullptr) {
    if (const Json* compile = Find(*times, "compilation")) {
      config.compile_ms = ToPositive(*compile).value_or(0);
    }
  }
  const Json* invalidity = Find(result, "invalidity");
  if (invalidity != nullptr && invalidity->is_string() &&
      invalidity->get<std::string>() != "correct") {
    config.outcome = FailureOutcome(invalidity->get<std::string>());
    return;
  }
  config.outcome = proto::WRONG_RESULT;
  const Json* measurements = Find(result, "measurements");
  if (measurements == nullptr || !measurements->is_array()) return;
  for (const Json& measurement : *measurements) {
    const Json* metric = Find(measurement, "name");
    const Json* value = Find(measurement, "value");
    if (metric == nullptr || value == nullptr || *metric != "time") continue;
    if (const absl::optional<double> mean = ToPositive(*value)) {
      config.outcome = proto::OK;
      config.time_ms = *mean;
      if (times != nullptr) {
        config.repeats_ms = PositiveNumbers(Find(*times, "runtimes"));
      }
    } else if (value->is_string()) {
      config.outcome = FailureOutcome(value->get<std::string>());
    }
    return;
  }
}

absl::Status ReadT4(const Json& root, absl::string_view name,
                    std::vector<std::string>& knobs,
                    std::vector<RawConfig>& configs) {
  const Json& results = root["results"];
  if (!results.is_array()) return Error(name, "results: expected a list");
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string where = absl::StrCat("results[", i, "].configuration");
    const Json* configuration = Find(results[i], "configuration");
    if (configuration == nullptr) {
      return Error(name, absl::StrCat(where, " is missing"));
    }
    if (knobs.empty() && configuration->is_object()) {
      for (const auto& item : configuration->items()) {
        knobs.push_back(item.key());
      }
    }
    RawConfig raw;
    OPTRAIL_ASSIGN_OR_RETURN(raw.values,
                             ReadValues(*configuration, knobs, name, where));
    ReadT4Result(results[i], raw.config);
    configs.push_back(std::move(raw));
  }
  return absl::OkStatus();
}

absl::StatusOr<KnobLevels> MakeKnob(const std::string& knob,
                                    const std::set<Value>& values,
                                    absl::string_view name) {
  if (values.size() > std::numeric_limits<uint16_t>::max()) {
    return Error(name, absl::StrCat("knob '", knob, "' has ", values.size(),
                                    " values, expected at most 65535"));
  }
  KnobLevels levels;
  levels.name = knob;
  levels.ordinal =
      std::all_of(values.begin(), values.end(),
                  [](const Value& v) { return v.integer.has_value(); });
  for (const Value& value : values) {
    levels.labels.push_back(value.label);
    if (levels.ordinal) levels.ints.push_back(*value.integer);
  }
  return levels;
}

absl::StatusOr<Recording> Assemble(absl::string_view name,
                                   const std::vector<std::string>& knobs,
                                   std::vector<RawConfig> configs) {
  if (configs.empty()) return Error(name, "no configs");
  if (knobs.empty() || knobs.size() > kMaxKnobs) {
    return Error(
        name, absl::StrCat(knobs.size(), " knobs, expected 1 to ", kMaxKnobs));
  }
  Recording recording;
  recording.name = BaseName(name);
  std::vector<std::map<Value, uint16_t>> level_of(knobs.size());
  for (size_t k = 0; k < knobs.size(); ++k) {
    std::set<Value> values;
    for (const RawConfig& raw : configs) values.insert(raw.values[k]);
    OPTRAIL_ASSIGN_OR_RETURN(KnobLevels levels,
                             MakeKnob(knobs[k], values, name));
    for (const Value& value : values) {
      const uint16_t next = static_cast<uint16_t>(level_of[k].size());
      level_of[k].emplace(value, next);
    }
    recording.knobs.push_back(std::move(levels));
  }
  absl::flat_hash_set<Levels> known;
  for (RawConfig& raw : configs) {
    Levels& levels = raw.config.levels;
    for (size_t k = 0; k < knobs.size(); ++k) {
      levels.push_back(level_of[k].at(raw.values[k]));
    }
    // A config measured twice: the first counts.
    if (!known.insert(levels).second) continue;
    recording.configs.push_back(std::move(raw.config));
  }
  std::sort(recording.configs.begin(), recording.configs.end(),
            [](const RecordedConfig& a, const RecordedConfig& b) {
              return a.levels < b.levels;
            });
  if (std::none_of(
          recording.configs.begin(), recording.configs.end(),
          [](const RecordedConfig& c) { return c.outcome == proto::OK; })) {
    return Error(name, "no config succeeded");
  }
  return recording;
}

}  // namespace

absl::StatusOr<Recording> ParseRecording(absl::string_view text,
                                         absl::string_view name) {
  OPTRAIL_ASSIGN_OR_RETURN(std::string plain,
                           Decompress(std::string(text), name, kMaxBytes));
  OPTRAIL_ASSIGN_OR_RETURN(const Json root,
                           ParseJson(NonFiniteToNull(std::move(plain)), name));
  std::vector<std::string> knobs;
  std::vector<RawConfig> configs;
  if (Find(root, "cache") != nullptr || Find(root, "columns") != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(ReadCache(root, name, knobs, configs));
  } else if (Find(root, "results") != nullptr) {
    OPTRAIL_RETURN_IF_ERROR(ReadT4(root, name, knobs, configs));
  } else {
    return Error(name,
                 "expected an object with 'cache' (Kernel Tuner) or 'results' "
                 "(T4)");
  }
  return Assemble(name, knobs, std::move(configs));
}

absl::StatusOr<Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(absl::StrCat(path, ": can't be opened"));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad())
    return absl::DataLossError(absl::StrCat(path, ": read failed"));
  return ParseRecording(text.str(), path);
}

}  // namespace optrail::tuning
