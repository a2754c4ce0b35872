#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/stats/statistics.h"
#include "base/text/units.h"
#include "tracker/convergence/failure_rule.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/space_evidence.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/space/space_change.h"

namespace optrail::tracker {
namespace {

using tuning::BoundSpace;

// The noise of the quietest machines.
constexpr double kAssumedNoise = .01;

// The search ended because it was told to, not because it was done.
bool WasCutShort(proto::StopReason reason) {
  return reason == proto::TRIALS_SPENT || reason == proto::TIME_SPENT ||
         reason == proto::INTERRUPTED ||
         reason == proto::STOP_REASON_UNSPECIFIED;
}

absl::optional<Finding> DoesNotConverge(const SessionAnalysis& session,
                                        const BoundSpace* space,
                                        const FindingOptions& options) {
  const int trials = session.trial_count();
  if (trials < options.min_trials || !session.best_cost ||
      !WasCutShort(session.header.stop_reason()) || IsExhausted(session)) {
    return absl::nullopt;
  }
  const int last_quarter = trials - trials / 4;
  const double before_ns = session.best_so_far[last_quarter - 1];
  if (std::isnan(before_ns)) return absl::nullopt;
  const auto late = std::count_if(
      session.improvements.begin(), session.improvements.end(),
      [&](const Improvement& step) { return step.trial >= last_quarter; });
  const double gain = 1 - *session.best_cost / before_ns;
  const double effect =
      std::max(options.min_effect, options.sigmas * NoiseOf(session));
  // A search that found the best in time still has a good last quarter: the
  // last eighth tells whether it went on to the end.
  const double at_the_end =
      1 - *session.best_cost / session.best_so_far[trials - trials / 8 - 1];
  if (late < options.late_improvements || gain < effect ||
      at_the_end < effect) {
    return absl::nullopt;
  }
  std::string cost;
  if (session.time_per_trial_ns) {
    cost = absl::StrCat(" (about ",
                        FormatDurationNs(*session.time_per_trial_ns * trials),
                        " more)");
  }
  std::vector<Remedy> remedies = {
      {Lever::kBudget,
       session.header.stop_reason() == proto::TIME_SPENT
           ? absl::StrCat("at least double --time_budget", cost,
                          "; --patience=", std::max(20, trials / 4),
                          " stops it once it is done")
           : absl::StrCat("--trials=", TwiceTheTrials(session), cost,
                          " and --patience=", std::max(20, trials / 4),
                          " to stop once it is done"),
       SearchChange{"", TwiceTheTrials(session), ""},
       ExpectHalfOf(GainOfSecondHalf(session))}};
  for (Remedy& remedy : RangeRemedies(session, space)) {
    remedies.push_back(std::move(remedy));
  }
  remedies.push_back(StrategyRemedy(session, GainOfSecondHalf(session)));
  return Finding{
      FindingKind::kDoesNotConverge,
      session.task_text,
      {session.id()},
      {absl::StrCat("the last quarter of ", trials, " trials brought ", late,
                    " new bests and made the best ", FormatPercent(gain),
                    session.is_time() ? " faster" : " better"),
       absl::StrCat("best after trial ", session.improvements.back().trial + 1,
                    " of ", trials, ", stopped by ",
                    tuning::StopReasonName(session.header.stop_reason()))},
      std::move(remedies)};
}

// Pairs of finalists whose order the verification reversed, both differences
// beyond noise that is small enough to tune with.
int ContradictedPairs(const SessionAnalysis& session, double effect) {
  int contradicted = 0;
  const auto& finalists = session.finalists;
  for (size_t i = 0; i < finalists.size(); ++i) {
    for (size_t j = i + 1; j < finalists.size(); ++j) {
      const FinalistPoint& a = finalists[i];
      const FinalistPoint& b = finalists[j];
      if (!a.first_cost || !b.first_cost || !a.verified_cost ||
          !b.verified_cost) {
        continue;
      }
      const double first = std::log(*a.first_cost / *b.first_cost);
      const double verified = std::log(*a.verified_cost / *b.verified_cost);
      if (first * verified < 0 && std::abs(first) > effect &&
          std::abs(verified) > effect) {
        ++contradicted;
      }
    }
  }
  return contradicted;
}

// "--processes=9, which brings the spread from 6.0% to 2.0%": the mean of n
// processes is sqrt(n) times as steady. More than kMostProcesses are seldom
// worth their time, so a large spread stays above the aim. Commands have no
// such flag.
std::string ProcessesText(double spread, bool is_command) {
  constexpr double kAim = .02;
  constexpr double kMostProcesses = 25;
  const double processes =
      std::min(kMostProcesses, std::ceil(std::pow(spread / kAim, 2)));
  return absl::StrFormat(
      is_command ? "let the command print the mean of %.0f repetitions, which "
                   "brings the spread from %s to %s, if it is not random anew "
                   "in each run"
                 : "--processes=%.0f, which brings the spread from %s to %s",
      processes, FormatPercent(spread),
      FormatPercent(spread / std::sqrt(processes)));
}

absl::optional<Finding> Oscillates(const SessionAnalysis& session,
                                   const FindingOptions& options) {
  const double between = session.process_noise.value_or(0);
  const double search = session.search_noise.value_or(0);
  if (std::max(between, search) <= options.max_noise) return absl::nullopt;
  std::vector<std::string> evidence;
  if (session.process_noise) {
    evidence.push_back(
        absl::StrCat("processes that measured the same config "
                     "differ by ",
                     FormatPercent(between), " (one sigma)"));
  }
  if (session.search_noise) {
    evidence.push_back(absl::StrCat("first and verified readings differ by ",
                                    FormatPercent(search), " (one sigma)"));
  }
  if (const int pairs = ContradictedPairs(session, options.min_effect)) {
    evidence.push_back(
        absl::StrCat(pairs, pairs == 1 ? " pair" : " pairs",
                     " of finalists changed their order in verification"));
  }
  return Finding{
      FindingKind::kOscillates,
      session.task_text,
      {session.id()},
      std::move(evidence),
      {{Lever::kMeasurement,
        absl::StrCat("measure on an otherwise idle machine with pinned cores "
                     "and fixed clocks (`optrail doctor` names what disturbs); "
                     "until then ",
                     ProcessesText(std::max(between, search),
                                   session.header.has_command()))},
       {Lever::kBudget,
        absl::StrCat(
            "--finalists=", std::max<int>(8, 2 * session.finalists.size()),
            ", so that the true best is among those verified")}}};
}

absl::optional<Finding> ConvergedTooEarly(const SessionAnalysis& session,
                                          const BoundSpace* space,
                                          const FindingOptions& options) {
  const int trials = session.trial_count();
  if (space == nullptr || trials < options.min_trials || !session.best_cost ||
      session.plateau_share() < options.max_plateau_share) {
    return absl::nullopt;
  }
  // Half of all configs is a look around, whatever their levels.
  const absl::optional<int64_t> configs = space->count();
  if (configs && 2 * trials >= *configs) return absl::nullopt;
  const absl::optional<double> coverage = Coverage(session, *space);
  if (!coverage || *coverage >= options.min_coverage) return absl::nullopt;
  std::vector<std::string> evidence = {
      absl::StrCat("nothing better in the last ", session.plateau_trials,
                   " of ", trials, " trials"),
      absl::StrCat("visited ", FormatPercent(*coverage),
                   " of the knob values that random trials would have")};
  if (configs) {
    evidence.push_back(absl::StrCat("tried ", trials, " of ",
                                    FormatCount(*configs), " configs"));
  }
  // The configs that it looked at brought so much; it did not look at the rest.
  const double unseen = (1 - *coverage) * GainOfSearch(session);
  std::vector<Remedy> remedies = {StrategyRemedy(session, unseen)};
  if (space->top_k() > 0) {
    remedies.push_back(
        {Lever::kPrior,
         absl::StrCat("the prior lets only its top ", space->top_k(),
                      " configs be measured: raise top_k to ",
                      4 * space->top_k(), " or remove it"),
         SearchChange{tuning::WithoutPrior(space->space().proto()), 0, ""},
         ExpectHalfOf(unseen)});
  }
  for (Remedy& remedy : RangeRemedies(session, space)) {
    remedies.push_back(std::move(remedy));
  }
  return Finding{FindingKind::kConvergedTooEarly,
                 session.task_text,
                 {session.id()},
                 std::move(evidence),
                 std::move(remedies)};
}

// "23 OUT_OF_MEMORY, 4 CRASHED", most frequent first.
std::string FailureList(const SessionAnalysis& session) {
  std::map<std::string, int> counts;
  for (const TrialPoint& trial : session.trials) {
    if (IsAvoidable(trial.outcome)) {
      ++counts[tuning::OutcomeName(trial.outcome)];
    }
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [name, count] : counts) sorted.push_back({-count, name});
  std::sort(sorted.begin(), sorted.end());
  return absl::StrJoin(sorted, ", ", [](std::string* out, const auto& item) {
    absl::StrAppend(out, -item.first, " ", item.second);
  });
}

// Returns whether memory runs out for all configs of a rule and for no other.
// So exact a rule is no accident at fewer failures than half: of 18 trials, 9
// are told from the others by one of some dozen rules in 1 of 4,000 sessions.
bool MemorySeparates(const SessionAnalysis& session,
                     const absl::optional<FailureRule>& rule,
                     const FindingOptions& options) {
  const int out_of_memory = session.outcomes.out_of_memory;
  return rule && rule->failures_covered == rule->failures &&
         rule->working_refused == 0 &&
         rule->working >= options.min_separated_trials &&
         out_of_memory >= options.min_separated_trials &&
         out_of_memory >= options.min_memory_share * session.trial_count() &&
         2 * out_of_memory > session.outcomes.useless();
}

absl::optional<Finding> MostTrialsFail(const SessionAnalysis& session,
                                       const BoundSpace* space,
                                       const FindingOptions& options) {
  const int useless = session.outcomes.useless();
  const int trials = session.trial_count();
  if (trials == 0 || useless == 0) return absl::nullopt;
  const auto rule = ExplainFailures(session.trials);
  if (ClopperPearsonLower(useless, trials, .95) <= options.max_useless_share &&
      !MemorySeparates(session, rule, options)) {
    return absl::nullopt;
  }
  std::vector<std::string> evidence = {
      absl::StrCat(useless, " of ", trials, " trials (",
                   FormatPercent(session.useless_share()),
                   ") came to nothing: ", FailureList(session))};
  std::vector<Remedy> remedies;
  if (rule) {
    evidence.push_back(absl::StrCat(
        rule->failing, " holds for ", rule->failures_covered, " of ",
        rule->failures, " failures and ", rule->working_refused, " of ",
        rule->working, " working configs"));
    Remedy remedy = {Lever::kConstraint,
                     absl::StrCat("add to the space: constraint { expr: \"",
                                  rule->constraint, "\" }")};
    if (space != nullptr) {
      remedy.change = SearchChange{
          tuning::WithConstraint(space->space().proto(), rule->constraint,
                                 "other configs come to nothing"),
          0, ""};
      // The trials that it saves are so many doublings of those that work.
      const double doublings = -std::log2(
          std::max(1 - session.useless_share(), 1. / session.trial_count()));
      remedy.predicted =
          ExpectHalfOf(GainOfSecondHalf(session) * std::min(doublings, 1.));
    }
    remedies.push_back(std::move(remedy));
  } else if (session.outcomes.ok == 0) {
    remedies.push_back(
        {Lever::kConstraint,
         "no config works, so check the kernel first: run the operator's test "
         "with its default config"});
  } else {
    remedies.push_back(
        {Lever::kConstraint,
         "no rule over one to three knobs tells failing from working configs; "
         "read the trials' details and add the constraint that the kernel "
         "checks"});
  }
  if (2 * session.outcomes.out_of_memory > useless) {
    remedies.push_back(
        {Lever::kBudget,
         absl::StrCat("if the configs are worth their memory, raise --",
                      session.header.has_command() ? "command_memory_mib"
                                                   : "max_config_mib")});
  }
  return Finding{FindingKind::kMostTrialsFail,
                 session.task_text,
                 {session.id()},
                 std::move(evidence),
                 std::move(remedies)};
}

absl::optional<Finding> MostTrialsContended(const SessionAnalysis& session,
                                            const FindingOptions& options) {
  const int contended = session.outcomes.contended;
  const int trials = session.trial_count();
  if (trials == 0 || ClopperPearsonLower(contended, trials, .95) <=
                         options.max_contended_share) {
    return absl::nullopt;
  }
  return Finding{
      FindingKind::kMostTrialsContended,
      session.task_text,
      {session.id()},
      {absl::StrCat(contended, " of ", trials, " trials (",
                    FormatPercent(session.contended_share()),
                    ") were disturbed too much to conclude anything")},
      {{Lever::kMeasurement,
        "tune when the machine is idle, or with fewer --threads than it has "
        "free cores"}}};
}

absl::optional<Finding> WinnersCurse(const SessionAnalysis& session,
                                     const FindingOptions& options) {
  if (!session.winners_curse || !session.finalists_curse) return absl::nullopt;
  // Common to the finalists: a single one may have had a bad day.
  const double curse =
      std::min(*session.winners_curse, *session.finalists_curse);
  const double noise =
      std::max(kAssumedNoise, session.process_noise.value_or(0));
  if (curse <= std::max(options.max_curse, options.sigmas * noise)) {
    return absl::nullopt;
  }
  std::vector<std::string> evidence = {
      absl::StrCat("the winner is ", FormatPercent(*session.winners_curse),
                   session.is_time() ? " slower" : " worse",
                   " than its first reading"),
      absl::StrCat(
          "so are its rivals: ", FormatPercent(*session.finalists_curse),
          " in the median, while processes agree within ",
          FormatPercent(noise))};
  if (session.speedup_over_default) {
    evidence.push_back(absl::StrFormat("verified gain over the default: %.3gx",
                                       *session.speedup_over_default));
  }
  return Finding{
      FindingKind::kWinnersCurse,
      session.task_text,
      {session.id()},
      std::move(evidence),
      {{Lever::kMeasurement,
        "take more samples per trial: single readings are too noisy to rank "
        "configs by"},
       {Lever::kBudget,
        absl::StrCat(
            "--finalists=", std::max<int>(8, 2 * session.finalists.size()),
            ", so that the true best is among those verified")}}};
}

}  // namespace

double NoiseOf(const SessionAnalysis& session) {
  return std::max({kAssumedNoise, session.process_noise.value_or(0),
                   session.search_noise.value_or(0)});
}

bool IsExhausted(const SessionAnalysis& session) {
  const proto::Session& header = session.header;
  const int contended = session.outcomes.contended;
  return (header.stop_reason() == proto::SPACE_EXHAUSTED && contended == 0) ||
         (header.has_valid_config_count() &&
          session.trial_count() - contended >= header.valid_config_count());
}

int64_t TwiceTheTrials(const SessionAnalysis& session) {
  const int64_t twice = int64_t{2} * session.trial_count();
  return session.header.has_valid_config_count()
             ? std::min(twice, session.header.valid_config_count())
             : twice;
}

std::vector<Finding> FindSessionFaults(const SessionAnalysis& session,
                                       const BoundSpace* space,
                                       const FindingOptions& options) {
  std::vector<Finding> findings;
  const auto add = [&](absl::optional<Finding> finding) {
    if (finding) findings.push_back(*std::move(finding));
  };
  add(MostTrialsFail(session, space, options));
  add(MostTrialsContended(session, options));
  add(DoesNotConverge(session, space, options));
  add(ConvergedTooEarly(session, space, options));
  absl::optional<Finding> oscillates = Oscillates(session, options);
  // Where readings scatter, lucky ones win; that is no second cause.
  if (!oscillates) add(WinnersCurse(session, options));
  add(std::move(oscillates));
  return findings;
}

}  // namespace optrail::tracker
