#include "tuning/session/results.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/stats/pareto.h"
#include "base/text/units.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/numerics_text.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/session/numerics.h"
#include "tuning/session/objective.h"

namespace optrail::tuning {
namespace {

bool Failed(const proto::Finalist& finalist) {
  return finalist.outcome() != proto::OK &&
         finalist.outcome() != proto::CONTENDED &&
         finalist.outcome() != proto::OUTCOME_UNSPECIFIED;
}

using Objectives = std::vector<proto::Objective>;

const proto::Finalist* FinalistOf(const proto::Session& session,
                                  const std::string& config_text) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (CanonicalText(finalist.config()) == config_text) return &finalist;
  }
  return nullptr;
}

const proto::Finalist* DefaultOf(const proto::Session& session) {
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.is_default()) return &finalist;
  }
  return nullptr;
}

// "m<=8".
std::string LimitText(const proto::Objective& objective) {
  return absl::StrCat(
      objective.metric(),
      objective.direction() == proto::HIGHER_IS_BETTER ? ">=" : "<=",
      absl::StrFormat("%.6g", objective.limit()));
}

// Lists the limits that `values` break; all limits without values.
std::string LimitsText(const Objectives& objectives,
                       const std::vector<absl::optional<double>>* values) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (!objectives[i].has_limit()) continue;
    if (values != nullptr && (!(*values)[i].has_value() ||
                              WithinLimit(objectives[i], *(*values)[i]))) {
      continue;
    }
    texts.push_back(LimitText(objectives[i]));
  }
  return absl::StrJoin(texts, " and ");
}

// Says how each metric alone changed if the objectives have weights: "; t
// 100.0% worse, m 11.1% worse". The gain of the proof is the gain of their
// product.
std::string EachMetricText(const proto::Session& session) {
  const Objectives objectives = ObjectivesOf(session);
  const proto::Finalist* before = DefaultOf(session);
  const proto::Finalist* after =
      FinalistOf(session, CanonicalText(session.proof().candidate()));
  if (objectives.size() < 2 || !objectives[0].has_weight() ||
      before == nullptr || after == nullptr) {
    return "";
  }
  std::vector<std::string> texts;
  for (const proto::Objective& objective : objectives) {
    const auto old_value = ValueOf(*before, objective);
    const auto new_value = ValueOf(*after, objective);
    if (!old_value || !new_value || !(*old_value > 0) || !(*new_value > 0)) {
      continue;
    }
    proto::Objective alone = objective;
    alone.clear_weight();
    const double gain = GainOf(
        {alone}, CostOf(objective, *new_value) / CostOf(objective, *old_value));
    texts.push_back(absl::StrCat(objective.metric(), " ",
                                 FormatPercent(gain < 0 ? -gain : gain),
                                 gain < 0 ? " worse" : " better"));
  }
  return texts.empty() ? "" : absl::StrCat("; ", absl::StrJoin(texts, ", "));
}

// Returns how far a config is beyond its limits, as a ratio of costs.
double Excess(const Objectives& objectives,
              const std::vector<absl::optional<double>>& values) {
  double most = 0;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (!objectives[i].has_limit() || !values[i] || !(*values[i] > 0)) continue;
    most = std::max(most, CostOf(objectives[i], *values[i]) /
                              CostOf(objectives[i], objectives[i].limit()));
  }
  return most;
}

// The config that broke the limits least; "" if none was beyond them.
std::string NearestText(const proto::Session& session) {
  const Objectives objectives = ObjectivesOf(session);
  std::vector<absl::optional<double>> nearest;
  std::string config;
  const auto look = [&](const proto::Config& of,
                        std::vector<absl::optional<double>> values) {
    if (WithinLimits(objectives, values)) return;
    if (!config.empty() &&
        Excess(objectives, values) >= Excess(objectives, nearest)) {
      return;
    }
    config = CanonicalText(of);
    nearest = std::move(values);
  };
  for (const proto::Trial& trial : session.trials()) {
    if (trial.outcome() == proto::OK) {
      look(trial.config(), ValuesOf(objectives, trial));
    }
  }
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.outcome() == proto::OK) {
      look(finalist.config(), ValuesOf(objectives, finalist));
    }
  }
  if (config.empty()) return "";
  std::vector<std::string> texts;
  for (size_t i = 0; i < objectives.size(); ++i) {
    if (!objectives[i].has_limit() || !nearest[i]) continue;
    texts.push_back(absl::StrCat(objectives[i].metric(),
                                 absl::StrFormat(" %.6g", *nearest[i])));
  }
  return absl::StrCat(
      "no config is within ", LimitsText(objectives, /*values=*/nullptr),
      ": the nearest is ", config, " with ", absl::StrJoin(texts, " and "));
}

// True if the trials that worked were tested for it and all of them failed.
bool NoneIsBatchInvariant(const proto::Session& session) {
  bool tested = false;
  for (const proto::Trial& trial : session.trials()) {
    if (trial.outcome() != proto::OK) continue;
    const NumericsClass numerics = ParseNumerics(NumericsOf(trial));
    if (numerics.batch_invariant.value_or(false)) return false;
    tested |= numerics.batch_invariant.has_value();
  }
  return tested;
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

std::string ProofText(const proto::Session& session) {
  const proto::Proof& proof = session.proof();
  const std::string candidate = CanonicalText(proof.candidate());
  const std::string winner = CanonicalText(session.winner());
  const bool stored = IncumbentStays(session);
  std::string text =
      absl::StrCat("no gain is proven", !session.has_winner() ? ""
                                        : stored ? ", the stored config stays"
                                                 : ", the default stays");
  if (proof.rounds() == 0) {
    const std::string note = ProofEndNote(proof);
    return absl::StrCat(text, ": not one paired round could be measured",
                        note.empty() ? "" : absl::StrCat(" (", note, ")"));
  }
  const std::string each = EachMetricText(session);
  const auto than = [&](absl::string_view what) {
    return absl::StrCat(GainText(session, proof, what), each);
  };
  if (proof.claimed()) return absl::StrCat("proven: ", than("the default"));
  if (session.has_winner() && !candidate.empty() && candidate == winner) {
    if (stored) return absl::StrCat(text, ": it is ", than("the default"));
    // A default beyond a limit never wins, however the two compare.
    const Objectives objectives = ObjectivesOf(session);
    const proto::Finalist* fallback = DefaultOf(session);
    std::string beyond;
    if (fallback != nullptr) {
      const auto values = ValuesOf(objectives, *fallback);
      beyond = LimitsText(objectives, &values);
    }
    return absl::StrCat(
        beyond.empty()
            ? "the default may not win; the best config that may is "
            : absl::StrCat("the default is beyond ", beyond,
                           " and may not win; the best config within is "),
        than("the default"));
  }
  return absl::StrCat(text, ": ",
                      candidate.empty() ? "the best other config" : candidate,
                      " is ", than(stored ? "the default" : "it"));
}

NoWinner WhyNoWinner(const proto::Session& session) {
  if (session.has_winner()) return NoWinner::kHasOne;
  const bool any_result = !ResultsOf(session).empty();
  if (any_result && !NamesWinner(ObjectivesOf(session))) {
    return NoWinner::kHasOne;
  }
  bool failed = false, read = false;
  for (const proto::Finalist& finalist : session.finalists()) {
    if (finalist.outcome() == proto::CONTENDED) return NoWinner::kBusy;
    failed |= Failed(finalist);
    read |= finalist.outcome() == proto::OK;
  }
  if (!any_result) {
    return NearestText(session).empty() ? NoWinner::kNothingWorked
                                        : NoWinner::kBeyondLimits;
  }
  if (failed) return NoWinner::kFailedAgain;
  // A session that ended lists the default at least. It reads nothing if no
  // config may win.
  return read || session.finalists_size() > 0 ? NoWinner::kMayNotWin
                                              : NoWinner::kNotRunAgain;
}

const char* NoWinnerName(NoWinner why) {
  switch (why) {
    case NoWinner::kHasOne:
      return "";
    case NoWinner::kNothingWorked:
      return "no config works";
    case NoWinner::kBeyondLimits:
      return "none within the limits";
    case NoWinner::kBusy:
      return "machine too busy";
    case NoWinner::kFailedAgain:
      return "none worked again";
    case NoWinner::kNotRunAgain:
      return "not run again";
    case NoWinner::kMayNotWin:
      return "none may win";
  }
  return "";
}

std::vector<std::string> FinalistFailures(const proto::Session& session) {
  std::set<std::string> worked;
  for (const proto::Trial& trial : session.trials()) {
    if (trial.outcome() == proto::OK) {
      worked.insert(CanonicalText(trial.config()));
    }
  }
  std::vector<std::string> failures;
  for (const proto::Finalist& finalist : session.finalists()) {
    const std::string config = CanonicalText(finalist.config());
    const char* const again = worked.count(config) > 0 ? " again" : "";
    if (finalist.outcome() == proto::CONTENDED) {
      failures.push_back(
          absl::StrCat("the machine was too busy to measure ", config, again));
    } else if (Failed(finalist)) {
      failures.push_back(absl::StrCat(config, " failed when it was run", again,
                                      ": ", OutcomeName(finalist.outcome()),
                                      finalist.detail().empty() ? "" : ", ",
                                      finalist.detail()));
    }
  }
  return failures;
}

std::string NoWinnerText(const proto::Session& session) {
  const NoWinner why = WhyNoWinner(session);
  const std::string failures = absl::StrJoin(FinalistFailures(session), "; ");
  const auto with_failures = [&](const std::string& text, const char* sep) {
    return failures.empty() ? text : absl::StrCat(text, sep, failures);
  };
  switch (why) {
    case NoWinner::kHasOne:
      return "";
    case NoWinner::kNothingWorked:
      return with_failures("no config worked", ": ");
    case NoWinner::kBeyondLimits:
      return with_failures(NearestText(session), "; ");
    case NoWinner::kBusy: {
      const std::string nearest =
          ResultsOf(session).empty() ? NearestText(session) : "";
      return nearest.empty() ? failures : with_failures(nearest, "; ");
    }
    case NoWinner::kFailedAgain: {
      const bool any_read = absl::c_any_of(
          session.finalists(),
          [](const auto& finalist) { return finalist.outcome() == proto::OK; });
      return with_failures(any_read ? "no config that was run again may win"
                                    : "no config that was run again worked",
                           ": ");
    }
    case NoWinner::kNotRunAgain:
      return "the session ended before it ran its best configs again";
    case NoWinner::kMayNotWin:
      return NoneIsBatchInvariant(session)
                 ? "no config that was tried is batch-invariant"
                 : "none of the configs that worked may win";
  }
  return "";
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
