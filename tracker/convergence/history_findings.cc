#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/rise.h"
#include "tracker/convergence/space_evidence.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/space_change.h"

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

// Other shapes ----------------------------------------------------------------

// What a tuned config may be used for: everything of the task but the sizes.
std::string FamilyOf(const proto::Task& task) {
  proto::Task family = task;
  family.mutable_shape()->clear_dims();
  return tuning::TrialKey(family, proto::Config());
}

// Reading of a config over the default's in the same session; a config that
// fails there counts as infinitely slow. nullopt if it was not tried.
absl::optional<double> LossIn(const SessionAnalysis& session,
                              const std::string& config_text) {
  absl::optional<double> default_ns;
  for (const FinalistPoint& finalist : session.finalists) {
    if (finalist.is_default) default_ns = finalist.verified_cost;
  }
  if (!default_ns) return absl::nullopt;
  for (const FinalistPoint& finalist : session.finalists) {
    if (finalist.config_text == config_text && finalist.verified_cost) {
      return *finalist.verified_cost / *default_ns - 1;
    }
  }
  for (const TrialPoint& trial : session.trials) {
    if (trial.config_text != config_text) continue;
    if (trial.cost) return *trial.cost / *default_ns - 1;
    if (trial.outcome != proto::CONTENDED && trial.outcome != proto::CENSORED) {
      return HUGE_VAL;
    }
  }
  return absl::nullopt;
}

// The first of those that are counted most often; "" without any.
std::string MostFrequent(const std::map<std::string, int>& counts) {
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

// The knob in which the winners of other shapes differ most often.
std::string DifferingKnob(const SessionAnalysis& session,
                          const Sessions& others) {
  std::map<std::string, int> differences;
  for (const SessionWithSpace* other : others) {
    std::map<std::string, std::string> there;
    for (const auto& value : other->session->header.winner().set()) {
      there[value.knob()] = tuning::CanonicalText(value);
    }
    for (const auto& value : session.header.winner().set()) {
      const auto found = there.find(value.knob());
      if (found != there.end() &&
          found->second != tuning::CanonicalText(value)) {
        ++differences[value.knob()];
      }
    }
  }
  return MostFrequent(differences);
}

void FindLosersElsewhere(absl::Span<const SessionWithSpace> sessions,
                         const FindingOptions& options,
                         std::vector<Finding>& findings) {
  std::map<std::string, Sessions> families;
  for (const SessionWithSpace& item : sessions) {
    families[FamilyOf(item.session->header.task())].push_back(&item);
  }
  for (const auto& [unused, family] : families) {
    // The newest session of each task.
    std::map<std::string, const SessionWithSpace*> newest;
    for (const SessionWithSpace* item : family) {
      newest[item->session->task_key] = item;
    }
    for (const auto& [task_key, item] : newest) {
      const SessionAnalysis& session = *item->session;
      if (!session.header.has_winner() || !session.winner_cost ||
          session.speedup_over_default.value_or(0) <= 1) {
        continue;
      }
      const std::string winner = tuning::CanonicalText(session.header.winner());
      std::vector<double> losses;
      Sessions tried;
      std::vector<std::string> shapes;
      for (const auto& [other_key, other] : newest) {
        if (other_key == task_key) continue;
        if (const auto loss = LossIn(*other->session, winner)) {
          losses.push_back(*loss);
          tried.push_back(other);
          shapes.push_back(absl::StrCat(
              tuning::CanonicalText(other->session->header.task().shape()),
              std::isinf(*loss)
                  ? " (fails)"
                  : absl::StrCat(" (", FormatChange(*loss), ")")));
        }
      }
      if (static_cast<int>(losses.size()) < options.min_other_shapes ||
          Median(losses) < options.max_loss_on_other_shapes) {
        continue;
      }
      const std::string knob = DifferingKnob(session, tried);
      Finding finding = {
          FindingKind::kLosesOnOtherShapes,
          session.task_text,
          {session.id()},
          {absl::StrCat("the winner ", winner, " against the default on ",
                        absl::StrJoin(shapes, ", "))},
          {{Lever::kBudget,
            "tune the shapes in use each by itself: the nearest shape's config "
            "is no substitute here"}}};
      if (!knob.empty()) {
        finding.remedies.push_back(
            {Lever::kKnobRange,
             absl::StrCat("knob ", knob,
                          " differs between the winners of "
                          "these shapes: express it by the shape (divisors, or "
                          "a constraint over dim.*)")});
      }
      findings.push_back(std::move(finding));
    }
  }
}

// Prior -----------------------------------------------------------------------

void FindMisleadingPriors(absl::Span<const SessionWithSpace> sessions,
                          const FindingOptions& options,
                          std::vector<Finding>& findings) {
  struct Pool {
    double weighted_z = 0;
    double weight = 0;
    int readings = 0;
    std::vector<double> percentiles;
    std::map<std::string, int> knobs;
    const SessionWithSpace* any = nullptr;
    std::vector<std::string> ids;
    std::set<std::string> tasks;
  };
  std::map<std::string, Pool> pools;
  for (const SessionWithSpace& item : sessions) {
    if (item.space == nullptr) continue;
    const auto evidence =
        JudgePrior(*item.session, *item.space, options.min_prior_readings);
    if (!evidence) continue;
    const proto::Task& task = item.session->header.task();
    Pool& pool = pools[absl::StrCat(task.operator_name(), "/",
                                    item.space->space().hash(), "/",
                                    task.hardware_id())];
    // Fisher's transformation; 1.06 makes it fit ranks (Fieller, Hartley and
    // Pearson, "Tests for rank correlation coefficients", 1957).
    const double weight = (evidence->readings - 3) / 1.06;
    const double rho = std::min(.999, std::max(-.999, evidence->correlation));
    pool.weighted_z += weight * std::atanh(rho);
    pool.weight += weight;
    pool.readings += evidence->readings;
    pool.percentiles.push_back(evidence->best_percentile);
    for (const std::string& knob : evidence->contradicting_knobs) {
      ++pool.knobs[knob];
    }
    pool.any = &item;
    pool.ids.push_back(item.session->id());
    pool.tasks.insert(item.session->task_text);
  }
  for (auto& [unused, pool] : pools) {
    const double z = pool.weighted_z / pool.weight;
    const double upper = std::tanh(z + 1.96 / std::sqrt(pool.weight));
    const double percentile = Median(pool.percentiles);
    if (upper >= options.min_prior_correlation ||
        percentile >= options.min_prior_percentile) {
      continue;
    }
    Finding finding;
    finding.kind = FindingKind::kPriorMisleads;
    if (pool.tasks.size() == 1) finding.task = *pool.tasks.begin();
    finding.session_ids = std::move(pool.ids);
    finding.evidence = {
        absl::StrFormat("rank correlation of prior and speed over %d readings "
                        "is %.2f (at most %.2f, 97.5%% sure)",
                        pool.readings, std::tanh(z), upper),
        absl::StrCat("the prior ranks ", FormatPercent(1 - percentile),
                     " of the space above the best config")};
    std::string text = "remove the prior";
    const int64_t top_k = pool.any->space->top_k();
    if (top_k > 0) {
      absl::StrAppend(&text, " or at least its top_k of ", top_k,
                      ", which keeps better configs from being measured");
    }
    const std::string knob = MostFrequent(pool.knobs);
    if (!knob.empty()) {
      absl::StrAppend(&text, "; or mend it: it pushes knob ", knob,
                      " the wrong way");
    }
    const tuning::BoundSpace& space = *pool.any->space;
    finding.remedies = {
        {Lever::kPrior, std::move(text),
         SearchChange{tuning::WithoutPrior(space.space().proto()), 0, ""},
         ExpectHalfOf(GainOfSecondHalf(*pool.any->session))}};
    findings.push_back(std::move(finding));
  }
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
