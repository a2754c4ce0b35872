#include "ops/core/testing/config_coverage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

struct Candidate {
  proto::Config config;
  std::vector<int> uncovered;  // items
};

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
  std::vector<Candidate> candidates;
  std::set<std::string> seen;
  const auto add = [&](const proto::Config& config) {
    if (!seen.insert(tuning::CanonicalText(config)).second) return;
    candidates.push_back({config, {}});
    for (const std::string& item : CoveredBy(config, compile_time)) {
      const auto [known, is_new] =
          items_.try_emplace(item, static_cast<int>(items_.size()));
      if (is_new) covered_.push_back(false);
      candidates.back().uncovered.push_back(known->second);
    }
  };
  add(space.default_config());
  for (int i = 0; i < options.draws; ++i) {
    add(space.ToConfig(space.Sample(rng)));
  }

  std::vector<proto::Config> chosen;
  const Candidate* next = &candidates[0];
  while (true) {
    chosen.push_back(next->config);
    for (const int item : next->uncovered) covered_[item] = true;
    if (static_cast<int>(chosen.size()) >= options.most) break;
    next = nullptr;
    for (Candidate& candidate : candidates) {
      auto& items = candidate.uncovered;
      items.erase(std::remove_if(items.begin(), items.end(),
                                 [&](int item) { return covered_[item]; }),
                  items.end());
      if (items.size() > (next == nullptr ? 0 : next->uncovered.size())) {
        next = &candidate;
      }
    }
    if (next == nullptr) break;
  }
  return chosen;
}

int ConfigCoverage::covered() const {
  return static_cast<int>(std::count(covered_.begin(), covered_.end(), true));
}

}  // namespace optrail::ops
