#include "ops/core/config_coverage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

int CountNew(const std::set<std::string>& items,
             const std::set<std::string>& covered) {
  int count = 0;
  for (const std::string& item : items) count += covered.count(item) == 0;
  return count;
}

}  // namespace

std::set<std::string> CoveredBy(const proto::Config& config,
                                const std::set<std::string>& compile_time) {
  std::set<std::string> items;
  std::string instantiation = "instantiation";
  std::vector<std::string> values;
  for (const proto::KnobValue& value : config.set()) {
    values.push_back(
        absl::StrCat(value.knob(), "=", tuning::CanonicalText(value)));
    if (compile_time.count(value.knob()) > 0) {
      absl::StrAppend(&instantiation, " ", values.back());
    }
  }
  items.insert(std::move(instantiation));
  // A pair has one text, whatever the order of the knobs.
  std::sort(values.begin(), values.end());
  for (size_t a = 0; a < values.size(); ++a) {
    items.insert(values[a]);
    for (size_t b = a + 1; b < values.size(); ++b) {
      items.insert(absl::StrCat(values[a], "&", values[b]));
    }
  }
  return items;
}

std::vector<proto::Config> ConfigCoverage::Choose(
    const tuning::BoundSpace& space, const Options& options, Rng& rng) {
  std::set<std::string> compile_time;
  for (const auto& knob : space.space().proto().knob()) {
    if (knob.compile_time()) compile_time.insert(knob.name());
  }
  struct Candidate {
    proto::Config config;
    std::set<std::string> items;
  };
  std::vector<Candidate> candidates;
  std::set<std::string> seen;
  const auto add = [&](const proto::Config& config) {
    if (!seen.insert(tuning::CanonicalText(config)).second) return;
    candidates.push_back({config, CoveredBy(config, compile_time)});
  };
  add(space.default_config());
  for (int i = 0; i < options.draws; ++i) {
    add(space.ToConfig(space.Sample(rng)));
  }

  std::vector<proto::Config> chosen = {candidates[0].config};
  covered_.insert(candidates[0].items.begin(), candidates[0].items.end());
  while (static_cast<int>(chosen.size()) < options.most) {
    const Candidate* best = nullptr;
    int most_new = 0;
    for (const Candidate& candidate : candidates) {
      const int count = CountNew(candidate.items, covered_);
      if (count > most_new) {
        most_new = count;
        best = &candidate;
      }
    }
    if (best == nullptr) break;
    chosen.push_back(best->config);
    covered_.insert(best->items.begin(), best->items.end());
  }
  return chosen;
}

}  // namespace optrail::ops
