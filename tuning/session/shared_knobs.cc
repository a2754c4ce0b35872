#include "tuning/session/shared_knobs.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

// The number of configs that have each "knob=value".
std::map<std::string, size_t> CountValues(
    const std::vector<proto::Config>& configs) {
  std::map<std::string, size_t> counts;
  for (const proto::Config& config : configs) {
    for (const proto::KnobValue& value : config.set()) {
      ++counts[absl::StrCat(value.knob(), "=", CanonicalText(value))];
    }
  }
  return counts;
}

}  // namespace

std::string SharedKnobsText(const std::vector<proto::Config>& failed,
                            const std::vector<proto::Config>& worked) {
  if (failed.size() < 2 || worked.empty()) return "";
  std::map<std::string, size_t> among_worked = CountValues(worked);
  std::map<size_t, std::vector<std::string>> shared;  // by how many worked
  for (const auto& [value, count] : CountValues(failed)) {
    const size_t others = among_worked[value];
    if (count == failed.size() && 2 * others < worked.size()) {
      shared[others].push_back(value);
    }
  }
  if (shared.empty()) return "";
  const auto& [others, values] = *shared.begin();
  return absl::StrCat("all ", failed.size(), " have ",
                      absl::StrJoin(values, " and "), ", ",
                      others == 0 ? "none" : absl::StrCat("and ", others),
                      " of the ", worked.size(), " that worked");
}

}  // namespace optrail::tuning
