#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/rise.h"

namespace optrail::tracker {
namespace {

// How far `value` lies above earlier values, in their robust deviations.
double Sigmas(double value, const std::vector<double>& earlier,
              double min_spread) {
  return (value - Median(earlier)) /
         std::max(min_spread, MedianAbsoluteDeviation(earlier));
}

// Tuning time -----------------------------------------------------------------

struct TimeParts {
  double compiling = 0;
  double failing = 0;
  double measuring = 0;
};

TimeParts PartsPerTrial(const SessionAnalysis& session) {
  TimeParts parts;
  for (const TrialPoint& trial : session.trials) {
    const auto elapsed = static_cast<double>(trial.elapsed_ns);
    const auto compile =
        std::min(elapsed, static_cast<double>(trial.compile_ns));
    parts.compiling += compile;
    (trial.cost || trial.outcome == proto::CENSORED ? parts.measuring
                                                    : parts.failing) +=
        elapsed - compile;
  }
  const double count = std::max(1, session.trial_count());
  parts.compiling /= count;
  parts.failing /= count;
  parts.measuring /= count;
  return parts;
}

Remedy TimeRemedy(const SessionAnalysis& before, const SessionAnalysis& now) {
  const TimeParts a = PartsPerTrial(before);
  const TimeParts b = PartsPerTrial(now);
  const double compiling = b.compiling - a.compiling;
  const double failing = b.failing - a.failing;
  const double measuring = b.measuring - a.measuring;
  if (compiling >= failing && compiling >= measuring) {
    return {Lever::kKnobRange,
            absl::StrCat("compiling takes ", FormatDurationNs(b.compiling),
                         " a trial, it was ", FormatDurationNs(a.compiling),
                         ": fewer values for compile_time knobs, or simpler "
                         "instantiations")};
  }
  if (failing >= measuring) {
    return {Lever::kConstraint,
            absl::StrCat("failing trials take ", FormatDurationNs(b.failing),
                         " a trial, it was ", FormatDurationNs(a.failing),
                         ": constrain the configs that hang, and lower --",
                         now.header.has_command() ? "command_timeout"
                                                  : "config_deadline")};
  }
  return {Lever::kBudget,
          absl::StrCat("measuring takes ", FormatDurationNs(b.measuring),
                       " a trial, it was ", FormatDurationNs(a.measuring),
                       ": bound it by --time_budget; a prior that puts slow "
                       "configs last saves most of it")};
}

void FindTimeExplosions(const Sessions& task, const FindingOptions& options,
                        std::vector<Finding>& findings) {
  std::vector<double> earlier;
  const SessionAnalysis* last_usual = nullptr;
  for (const SessionWithSpace* item : task) {
    const SessionAnalysis& session = *item->session;
    // A handful of trials says nothing of the cost of one.
    if (!session.time_per_trial_ns ||
        session.trial_count() < options.min_trials) {
      continue;
    }
    const double log_time = std::log(*session.time_per_trial_ns);
    if (static_cast<int>(earlier.size()) >= options.min_earlier_sessions &&
        log_time - Median(earlier) >= std::log(options.time_ratio) &&
        Sigmas(log_time, earlier, options.min_spread) >= options.time_sigmas) {
      findings.push_back(
          {FindingKind::kTimeExploded,
           session.task_text,
           {session.id()},
           {absl::StrCat(FormatDurationNs(*session.time_per_trial_ns),
                         " a trial; the median of ", earlier.size(),
                         " earlier sessions is ",
                         FormatDurationNs(std::exp(Median(earlier))))},
           {TimeRemedy(*last_usual, session)}});
      AddSettingsEvidence(last_usual->header, session.header, findings.back());
      continue;
    }
    earlier.push_back(log_time);
    last_usual = &session;
  }
}

// A worse end -----------------------------------------------------------------

// No search is to blame if every config was tried.
std::vector<Remedy> SearchRemedies(const SessionAnalysis& session,
                                   double loss) {
  if (IsExhausted(session)) {
    return {{Lever::kMeasurement,
             "every config of the space was tried, so another search of it "
             "finds none that is better: look for what made the code or the "
             "machine slower (`optrail bisect`, `optrail doctor`)"}};
  }
  const int64_t trials = TwiceTheTrials(session);
  return {{Lever::kBudget,
           absl::StrCat("tune again, warm-started from the earlier winner and "
                        "with --trials=",
                        trials),
           SearchChange{"", trials, ""}, ExpectHalfOf(loss)},
          StrategyRemedy(session, loss)};
}

void FindWorseEnds(const Sessions& task, const FindingOptions& options,
                   std::vector<Finding>& findings) {
  std::vector<Quality> earlier;
  const SessionAnalysis* last_usual = nullptr;
  for (const SessionWithSpace* item : task) {
    const SessionAnalysis& session = *item->session;
    const absl::optional<Quality> quality = QualityOf(session);
    if (!quality) continue;
    std::vector<double> losses;
    for (const Quality& other : earlier) {
      losses.push_back(Worse(*quality, other));
    }
    if (static_cast<int>(losses.size()) >= options.min_earlier_sessions) {
      const double loss = Median(losses);
      const double spread = std::max({options.min_spread, NoiseOf(session),
                                      MedianAbsoluteDeviation(losses)});
      if (loss >= std::log1p(options.min_effect_between_sessions) &&
          loss >= options.sigmas * spread) {
        Finding finding = {
            FindingKind::kConvergedToWorse,
            session.task_text,
            {session.id()},
            {absl::StrCat("the winner is ", FormatPercent(std::expm1(loss)),
                          " slower than those of ", losses.size(),
                          " earlier sessions, beside the default and by "
                          "itself")},
            SearchRemedies(session, loss)};
        AddSettingsEvidence(last_usual->header, session.header, finding);
        for (Remedy& remedy : RangeRemedies(session, item->space.get())) {
          finding.remedies.push_back(std::move(remedy));
        }
        findings.push_back(std::move(finding));
        continue;
      }
    }
    earlier.push_back(*quality);
    last_usual = &session;
  }
}

// A later session of the same kernel found what this one, on its plateau,
// missed.
void FindMissedBests(const Sessions& task, const FindingOptions& options,
                     std::vector<Finding>& findings) {
  for (size_t i = 0; i < task.size(); ++i) {
    const SessionAnalysis& session = *task[i]->session;
    const absl::optional<Quality> quality = QualityOf(session);
    if (!quality || session.trial_count() < options.min_trials ||
        session.plateau_share() < options.max_plateau_share ||
        IsExhausted(session)) {
      continue;
    }
    double largest = 0;
    const SessionAnalysis* better = nullptr;
    for (size_t j = i + 1; j < task.size(); ++j) {
      const SessionAnalysis& later = *task[j]->session;
      const absl::optional<Quality> other = QualityOf(later);
      if (!other || later.header.task().kernel_id() !=
                        session.header.task().kernel_id()) {
        continue;
      }
      // The same effort: more trials may well find more.
      if (later.trial_count() > 2 * session.trial_count()) continue;
      const double loss = Worse(*quality, *other);
      const double noise = std::hypot(NoiseOf(session), NoiseOf(later));
      if (loss > largest && loss >= options.sigmas * noise) {
        largest = loss;
        better = &later;
      }
    }
    // Twice the effect: the best of all later sessions is a lucky one.
    if (better == nullptr ||
        largest < 2 * std::log1p(options.min_effect_between_sessions)) {
      continue;
    }
    findings.push_back(
        {FindingKind::kConvergedTooEarly,
         session.task_text,
         {session.id()},
         {absl::StrCat("nothing better in the last ", session.plateau_trials,
                       " of ", session.trial_count(), " trials"),
          absl::StrCat("session ", better->id(),
                       " of the same kernel found a "
                       "winner that is ",
                       FormatPercent(-std::expm1(-largest)), " faster")},
         {StrategyRemedy(session, largest)}});
  }
}

// Slower to converge ----------------------------------------------------------

void FindSlowing(const Sessions& task, const FindingOptions& options,
                 std::vector<Finding>& findings) {
  Stratum stratum;
  std::vector<const SessionAnalysis*> used;
  for (const SessionWithSpace* item : task) {
    if (const auto effort = Effort(*item->session)) {
      stratum.groups.push_back(static_cast<int>(used.size()));
      stratum.values.push_back(*effort);
      used.push_back(item->session);
    }
  }
  const int count = static_cast<int>(used.size());
  if (count < options.min_sessions) return;
  const Shift shift = LargestRise({stratum}, count, options.permutations);
  if (shift.p_value >= options.alpha ||
      shift.difference < std::log(options.trials_ratio)) {
    return;
  }
  Finding finding;
  finding.kind = FindingKind::kSlowerToConverge;
  finding.task = used[0]->task_text;
  for (int i = shift.boundary; i < count; ++i) {
    finding.session_ids.push_back(used[i]->id());
  }
  const SessionAnalysis& first = *used[shift.boundary];
  finding.evidence = {absl::StrFormat(
      "since session %s (commit %s) it takes %.1f times as many trials to come "
      "within 5%% of the best (p = %.2g)",
      first.id(), ShortCommit(first.header.commit()),
      std::exp(shift.difference), shift.p_value)};
  if (first.header.strategy() != used[0]->header.strategy()) {
    finding.evidence.push_back(
        absl::StrCat("the strategy was ", used[0]->header.strategy(),
                     ", now it is ", first.header.strategy()));
  }
  AddSettingsEvidence(used[shift.boundary - 1]->header, first.header, finding);
  finding.remedies = {StrategyRemedy(first, 0),
                      {Lever::kPrior,
                       "warm-start from the store, and order the space by a "
                       "prior"}};
  findings.push_back(std::move(finding));
}

}  // namespace

std::vector<Finding> FindHistoryFaults(
    absl::Span<const SessionWithSpace> sessions,
    const FindingOptions& options) {
  std::vector<Finding> findings;
  std::map<std::string, Sessions> by_hardware;
  for (const SessionWithSpace& item : sessions) {
    by_hardware[item.session->header.task().hardware_id()].push_back(&item);
  }
  FindWorseHardware(by_hardware, options, findings);
  for (const auto& [unused, on_hardware] : by_hardware) {
    // A finding that the tuner's fault explains is not every task's own.
    Sessions before_fault = on_hardware;
    before_fault.resize(FindWorseTuner(on_hardware, options, findings));
    std::map<std::string, Sessions> tasks, explained;
    for (const SessionWithSpace* item : on_hardware) {
      tasks[item->session->task_key].push_back(item);
    }
    for (const SessionWithSpace* item : before_fault) {
      explained[item->session->task_key].push_back(item);
    }
    for (const auto& [unused_key, task] : tasks) {
      FindTimeExplosions(task, options, findings);
    }
    for (const auto& [unused_key, task] : explained) {
      FindWorseEnds(task, options, findings);
      FindMissedBests(task, options, findings);
      FindSlowing(task, options, findings);
    }
  }
  FindLosersElsewhere(sessions, options, findings);
  FindMisleadingPriors(sessions, options, findings);
  return findings;
}

}  // namespace optrail::tracker
