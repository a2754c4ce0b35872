#include "tuning/session/results.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/stats/pareto.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

bool Failed(const proto::Finalist& finalist) {
  return finalist.outcome() != proto::OK &&
         finalist.outcome() != proto::CONTENDED &&
         finalist.outcome() != proto::OUTCOME_UNSPECIFIED;
}

}  // namespace

int64_t WaitedNs(const proto::SessionTime& time) {
  return std::max<int64_t>(0, time.wait_ns());
}

int64_t OverlapNs(const proto::SessionTime& time) {
  return std::max<int64_t>(0, -time.wait_ns());
}

std::vector<Result> ResultsOf(const proto::Session& session) {
  const std::vector<proto::Objective> objectives = ObjectivesOf(session);
  std::map<std::string, const proto::Finalist*> finalists;
  for (const proto::Finalist& finalist : session.finalists()) {
    finalists[CanonicalText(finalist.config())] = &finalist;
  }
  const std::string candidate = CanonicalText(session.proof().candidate());
  std::vector<Result> results;
  for (int i = 0; i < session.trials_size(); ++i) {
    const proto::Trial& trial = session.trials(i);
    if (trial.outcome() != proto::OK) continue;
    Result result;
    result.trial = i;
    result.values = ValuesOf(objectives, trial);
    const std::string text = CanonicalText(trial.config());
    const auto found = finalists.find(text);
    if (found != finalists.end()) {
      const proto::Finalist& finalist = *found->second;
      if (Failed(finalist)) continue;
      result.readings += finalist.measurements_size();
      if (finalist.is_default()) {
        result.readings += session.proof().default_measurements_size();
      } else if (text == candidate) {
        result.readings += session.proof().candidate_measurements_size();
      }
      const auto values = ValuesOf(objectives, finalist);
      for (size_t k = 0; k < values.size(); ++k) {
        if (!values[k]) continue;
        result.values[k] = values[k];
        result.verified = true;
      }
    }
    if (WithinLimits(objectives, result.values)) {
      results.push_back(std::move(result));
    }
  }
  return results;
}

std::vector<int> FrontOf(const std::vector<proto::Objective>& objectives,
                         const std::vector<Result>& results) {
  std::vector<int> known;
  std::vector<std::vector<double>> costs;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<double> cost;
    for (size_t k = 0; k < objectives.size(); ++k) {
      const absl::optional<double>& value = results[i].values[k];
      if (value) cost.push_back(CostOf(objectives[k], *value));
    }
    if (cost.size() < objectives.size()) continue;
    known.push_back(static_cast<int>(i));
    costs.push_back(std::move(cost));
  }
  std::vector<int> order = ParetoFront(costs);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return costs[a][0] < costs[b][0]; });
  std::vector<int> front;
  for (const int i : order) front.push_back(known[i]);
  return front;
}

}  // namespace optrail::tuning
