#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/space_evidence.h"
#include "tuning/search/strategies.h"
#include "tuning/space/space_change.h"

namespace optrail::tracker {
namespace {

using tuning::BoundSpace;

// Looks around most of all.
constexpr char kOtherStrategy[] = "random";

// log(cost / cost) of the best reading with the next value of the edge's knob
// over the best at the edge: what the last step towards the edge brought.
double GainOfLastStep(const SessionAnalysis& session, const KnobEdge& edge) {
  std::map<int64_t, double> best;  // cost by value
  for (const TrialPoint& trial : session.trials) {
    if (!trial.cost) continue;
    for (const proto::KnobValue& value : trial.config.set()) {
      if (value.knob() != edge.knob) continue;
      const auto [place, is_new] = best.insert({value.int_(), *trial.cost});
      if (!is_new) place->second = std::min(place->second, *trial.cost);
    }
  }
  const auto at_edge = best.find(edge.value);
  if (at_edge == best.end() || best.size() < 2) return 0;
  const auto next = edge.at_maximum ? std::prev(at_edge) : std::next(at_edge);
  return std::log(next->second / at_edge->second);
}

}  // namespace

absl::optional<RemedyGain> ExpectHalfOf(double log_gain) {
  if (log_gain <= 0) return absl::nullopt;
  return RemedyGain{1 - std::exp(-log_gain / 2), 0, 1 - std::exp(-log_gain)};
}

double GainOfSecondHalf(const SessionAnalysis& session) {
  const int half = session.trial_count() / 2;
  if (half == 0 || !session.best_cost) return 0;
  const double before = session.best_so_far[half - 1];
  return std::isnan(before) ? 0 : std::log(before / *session.best_cost);
}

double GainOfSearch(const SessionAnalysis& session) {
  if (!session.best_cost || session.improvements.empty()) return 0;
  return std::log(session.improvements.front().cost / *session.best_cost);
}

std::vector<Remedy> RangeRemedies(const SessionAnalysis& session,
                                  const BoundSpace* space) {
  std::vector<Remedy> remedies;
  if (space == nullptr) return remedies;
  for (const KnobEdge& edge : EdgesOf(session, *space)) {
    Remedy remedy = {
        Lever::kKnobRange,
        absl::StrCat("knob ", edge.knob, ": the best configs have ", edge.value,
                     ", the ", edge.at_maximum ? "largest" : "smallest", " of ",
                     edge.range, "; extend the range ",
                     edge.at_maximum ? "upwards" : "downwards")};
    const auto wider = tuning::WithWiderKnob(space->space().proto(), edge.knob,
                                             edge.at_maximum);
    if (wider.ok()) {
      remedy.change = SearchChange{*wider, 0, ""};
      remedy.predicted = ExpectHalfOf(GainOfLastStep(session, edge));
    }
    remedies.push_back(std::move(remedy));
  }
  return remedies;
}

Remedy StrategyRemedy(const SessionAnalysis& session, double log_gain) {
  const std::string& used = session.header.strategy();
  const std::string other = used == tuning::kDefaultStrategy
                                ? kOtherStrategy
                                : tuning::kDefaultStrategy;
  Remedy remedy = {
      Lever::kStrategy,
      absl::StrCat("another seed, and another --strategy than ",
                   used.empty() ? "this session's" : used,
                   " beside it (the default is the one that wins on recorded "
                   "spaces, docs/method/search.md): if that ends better, the "
                   "strategy does not suit this space"),
      SearchChange{"", 0, other}};
  remedy.predicted = ExpectHalfOf(log_gain);
  return remedy;
}

}  // namespace optrail::tracker
