#ifndef OPTRAIL_TUNING_SEARCH_STRATEGIES_H_
#define OPTRAIL_TUNING_SEARCH_STRATEGIES_H_

// MakeStrategy builds a strategy by name. What each is, where it comes from and
// when to choose which: docs/method/search.md.
//
//   OPTRAIL_ASSIGN_OR_RETURN(std::unique_ptr<Strategy> strategy,
//                            MakeStrategy("default", domain, options));

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tuning/search/strategy.h"
#include "tuning/space/domain.h"

namespace optrail::tuning {

// What "default" stands for: the strategy that wins the replay of recorded
// spaces.
extern const char kDefaultStrategy[];

// All names MakeStrategy knows, sorted; "default" is not among them.
std::vector<std::string> StrategyNames();

// `domain` must outlive the strategy. Errors: an unknown name (the message
// lists the known ones); options that contradict each other or the domain;
// top_k for a domain without a prior; a domain with no valid config.
absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(
    absl::string_view name, const Domain& domain,
    const StrategyOptions& options);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SEARCH_STRATEGIES_H_
