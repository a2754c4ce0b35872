#include "tracker/import/json_fields.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "re2/re2.h"

namespace optrail::tracker {

std::string EntryName(absl::string_view path, absl::string_view what,
                      absl::string_view name, size_t index) {
  return absl::StrCat(path, ": ", what,
                      name.empty()
                          ? absl::StrCat(" number ", index + 1)
                          : absl::StrCat(" '", name.substr(0, 100), "'"));
}

void SetCommit(const std::string& id, proto::Commit* commit) {
  static const RE2* const kHash = new RE2("[0-9a-f]{40}|[0-9a-f]{64}");
  if (RE2::FullMatch(id, *kHash)) commit->set_id(id);
}

const nlohmann::json* JsonFields::Find(const char* field) const {
  if (!json_->is_object()) return nullptr;
  const auto found = json_->find(field);
  return found == json_->end() ? nullptr : &*found;
}

std::string JsonFields::Text(const char* field) const {
  const nlohmann::json* found = Find(field);
  return found != nullptr && found->is_string() ? found->get<std::string>()
                                                : std::string();
}

bool JsonFields::Flag(const char* field) const {
  const nlohmann::json* found = Find(field);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

absl::Status JsonFields::ReadStart(const char* field, proto::Run& run) const {
  const nlohmann::json* found = Find(field);
  if (found == nullptr || found->is_null()) return absl::OkStatus();
  const std::string date = Text(field);
  if (found->is_string() && date.empty()) return absl::OkStatus();
  absl::Time time;
  std::string error;
  for (const char* format :
       {absl::RFC3339_full, "%Y-%m-%d %H:%M:%E*S%Ez", "%Y-%m-%d %H:%M:%E*S",
        "%Y-%m-%dT%H:%M:%E*S", "%Y/%m/%d-%H:%M:%S"}) {
    if (!absl::ParseTime(format, date, &time, &error)) continue;
    const int64_t ns = absl::ToUnixNanos(time);
    // Beyond the year 2262 nanoseconds are no longer those of `time`.
    if (ns <= 0 || absl::FromUnixNanos(ns + 1) < time) break;
    run.set_started_unix_ns(ns);
    return absl::OkStatus();
  }
  return Wrong(field, absl::StrCat("is ", ShortJson(*found)),
               "a date from 1970 to 2262 such as "
               "\"2026-11-20T09:08:07+00:00\"; next: mend the field, or leave "
               "it out and the time of the import stands for it");
}

absl::optional<int64_t> JsonFields::Count(const char* field) const {
  const nlohmann::json* found = Find(field);
  if (found == nullptr || !found->is_number_integer()) return absl::nullopt;
  // It is read as a double first: an unsigned one may be beyond int64_t.
  const double value = found->get<double>();
  constexpr double kMost = int64_t{1} << 53;
  if (!(value >= 0 && value <= kMost)) return absl::nullopt;
  return static_cast<int64_t>(value);
}

absl::Status JsonFields::Wrong(absl::string_view field, absl::string_view found,
                               absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(where_, ": ", field, " ", found, ", expected ", expected));
}

absl::Status JsonFields::GivenTwice(absl::string_view benchmark) const {
  return Wrong(absl::StrCat("'", benchmark.substr(0, 200), "'"),
               "is there twice", "each benchmark once");
}

absl::StatusOr<std::string> JsonFields::Name(const char* field) const {
  std::string name = Text(field);
  if (!name.empty()) return name;
  const nlohmann::json* found = Find(field);
  return Wrong(
      field,
      found == nullptr ? "is absent" : absl::StrCat("is ", ShortJson(*found)),
      "a text");
}

absl::StatusOr<JsonFields> JsonFields::Object(const char* field) const {
  const nlohmann::json* found = Find(field);
  if (found != nullptr && found->is_object()) return Part(field);
  return Wrong(
      field,
      found == nullptr ? "is absent" : absl::StrCat("is ", ShortJson(*found)),
      "an object");
}

JsonFields JsonFields::Part(const char* field) const {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  const nlohmann::json* found = Find(field);
  return JsonFields(found != nullptr && found->is_object() ? *found : *empty,
                    absl::StrCat(where_, ": ", field));
}

absl::StatusOr<double> JsonFields::Number(const char* field, double minimum,
                                          absl::string_view expected) const {
  const nlohmann::json* found = Find(field);
  if (found == nullptr) return Wrong(field, "is absent", expected);
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (!std::isfinite(value) || value < minimum) {
    return Wrong(field, absl::StrCat("is ", ShortJson(*found)), expected);
  }
  return value;
}

absl::StatusOr<std::vector<double>> JsonFields::Numbers(
    const char* field, double minimum, absl::string_view expected) const {
  const nlohmann::json* found = Find(field);
  if (found == nullptr || found->is_null()) return std::vector<double>();
  return NumbersIn(*found, field, minimum, expected);
}

absl::StatusOr<std::vector<double>> JsonFields::NumbersIn(
    const nlohmann::json& array, absl::string_view field, double minimum,
    absl::string_view expected) const {
  if (!array.is_array()) {
    return Wrong(field, absl::StrCat("is ", ShortJson(array)), "an array");
  }
  std::vector<double> values;
  values.reserve(array.size());
  for (const nlohmann::json& element : array) {
    const double value = element.is_number() ? element.get<double>() : NAN;
    if (!std::isfinite(value) || value < minimum) {
      return Wrong(absl::StrCat(field, "[", values.size(), "]"),
                   absl::StrCat("is ", ShortJson(element)), expected);
    }
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<const nlohmann::json*> JsonFields::Results(
    const char* field, absl::string_view flag) const {
  const nlohmann::json* found = Find(field);
  if (found != nullptr && found->is_array()) return found;
  return absl::InvalidArgumentError(
      absl::StrCat(where_, ": expected an object with an array '", field,
                   "', as ", flag, " writes it"));
}

absl::Status JsonFields::AddSeconds(const char* field, double calls,
                                    const char* aggregate,
                                    Collected& to) const {
  constexpr double kNsPerSecond = 1e9;
  constexpr char kExpected[] = "a finite time in seconds of at least 0";
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<double> times,
                           Numbers(field, 0, kExpected));
  for (const double seconds : times) {
    OPTRAIL_RETURN_IF_ERROR(AddTime(field, seconds, kNsPerSecond, calls, to));
  }
  if (!times.empty()) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const double seconds,
                           Number(aggregate, 0, kExpected));
  return SetAggregate(aggregate, seconds, kNsPerSecond, to);
}

absl::Status JsonFields::SetAggregate(const char* what, double value, double ns,
                                      Collected& to) const {
  if (!FitsStoredTime(value * ns, 1)) {
    return Wrong(what, absl::StrCat("is ", value), "less than 280 years");
  }
  to.aggregate_ns = value * ns;
  to.aggregate = what;
  return absl::OkStatus();
}

absl::Status JsonFields::AddTime(absl::string_view field, double value,
                                 double ns, double calls, Collected& to) const {
  if (!FitsStoredTime(value * ns, calls)) {
    return Wrong(field, absl::StrCat("holds ", value),
                 "less than 280 years altogether");
  }
  to.times_ns.push_back(value * ns);
  return absl::OkStatus();
}

}  // namespace optrail::tracker
