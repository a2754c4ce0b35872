#include "tracker/bisect/looks.h"

#include <cmath>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace optrail::tracker {
namespace {

using nlohmann::json;

constexpr const char* kKinds[] = {"measured", "does not build", "not measured",
                                  "equal to GOOD", "equal to BAD"};

absl::Status Unreadable(absl::string_view line) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", line.substr(0, 200), "': expected the JSON of `bisect --look`"));
}

// The member, if it is a number that a measurement can have.
bool Read(const json& object, const char* name, double* value) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return false;
  *value = found->get<double>();
  return std::isfinite(*value);
}

bool Read(const json& object, const char* name, std::string* value) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return false;
  *value = found->get<std::string>();
  return true;
}

json Parse(absl::string_view line) {
  return json::parse(line.begin(), line.end(), /*cb=*/nullptr,
                     /*allow_exceptions=*/false);
}

std::string Dump(const json& object) {
  return object.dump(-1, ' ', /*ensure_ascii=*/true,
                     json::error_handler_t::replace);
}

}  // namespace

std::string ToJson(const Look& look) {
  return Dump({{"look", kKinds[static_cast<int>(look.kind)]},
               {"worse_by", look.worse_by},
               {"standard_error", look.standard_error},
               {"host", look.host}});
}

std::string ToJson(const absl::optional<SlowerBenchmark>& slower) {
  if (!slower.has_value()) return Dump({{"slower", nullptr}});
  return Dump({{"slower",
                {{"name", slower->name},
                 {"metric", slower->metric},
                 {"change", slower->change},
                 {"log_ratio", slower->effect.log_ratio},
                 {"standard_error", slower->effect.standard_error},
                 {"rounds", slower->rounds}}}});
}

absl::StatusOr<Look> ParseLook(absl::string_view line) {
  const json object = Parse(line);
  Look look;
  std::string kind;
  if (!object.is_object() || !Read(object, "look", &kind) ||
      !Read(object, "worse_by", &look.worse_by) || look.worse_by <= -1 ||
      !Read(object, "standard_error", &look.standard_error) ||
      look.standard_error < 0 || !Read(object, "host", &look.host)) {
    return Unreadable(line);
  }
  for (int i = 0; i < static_cast<int>(std::size(kKinds)); ++i) {
    if (kind != kKinds[i]) continue;
    look.kind = static_cast<Look::Kind>(i);
    return look;
  }
  return Unreadable(line);
}

absl::StatusOr<absl::optional<SlowerBenchmark>> ParseSlower(
    absl::string_view line) {
  const json object = Parse(line);
  if (!object.is_object() || object.count("slower") == 0) {
    return Unreadable(line);
  }
  const json& found = object["slower"];
  if (found.is_null()) return absl::optional<SlowerBenchmark>();
  SlowerBenchmark slower;
  double rounds = 0;
  if (!found.is_object() || !Read(found, "name", &slower.name) ||
      !Read(found, "metric", &slower.metric) ||
      !Read(found, "change", &slower.change) ||
      !Read(found, "log_ratio", &slower.effect.log_ratio) ||
      slower.effect.log_ratio <= 0 ||
      !Read(found, "standard_error", &slower.effect.standard_error) ||
      slower.effect.standard_error < 0 || !Read(found, "rounds", &rounds) ||
      !(rounds >= 1 && rounds <= 1e6)) {
    return Unreadable(line);
  }
  slower.rounds = static_cast<int>(rounds);
  return absl::make_optional(std::move(slower));
}

}  // namespace optrail::tracker
