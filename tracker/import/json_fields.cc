#include "tracker/import/json_fields.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"

namespace optrail::tracker {

const nlohmann::json* JsonFields::Find(const char* field) const {
  if (!json_.is_object()) return nullptr;
  const auto found = json_.find(field);
  return found == json_.end() ? nullptr : &*found;
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

absl::optional<int64_t> JsonFields::Count(const char* field) const {
  const nlohmann::json* found = Find(field);
  if (found == nullptr || !found->is_number_integer()) return absl::nullopt;
  // As a double first: an unsigned one may be beyond int64_t.
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
  std::vector<double> values;
  const nlohmann::json* found = Find(field);
  if (found == nullptr || found->is_null()) return values;
  if (!found->is_array()) {
    return Wrong(field, absl::StrCat("is ", ShortJson(*found)), "an array");
  }
  values.reserve(found->size());
  for (const nlohmann::json& element : *found) {
    const double value = element.is_number() ? element.get<double>() : NAN;
    if (!std::isfinite(value) || value < minimum) {
      return Wrong(absl::StrCat(field, "[", values.size(), "]"),
                   absl::StrCat("is ", ShortJson(element)), expected);
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace optrail::tracker
