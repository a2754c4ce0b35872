#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/units.h"
#include "tracker/convergence/finders.h"
#include "tracker/convergence/rise.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tracker {
namespace {

// Tasks of one hardware as strata, its commits in order as groups.
struct CommitStrata {
  std::vector<proto::Commit> commits;
  std::vector<Stratum> effort;
  std::vector<Stratum> beside_default;
  std::vector<Stratum> raw;
};

CommitStrata ByCommit(const Sessions& sessions) {
  CommitStrata strata;
  std::map<std::string, int> index;
  std::map<std::string, Stratum> effort, beside_default, raw;
  for (const SessionWithSpace* item : sessions) {
    const SessionAnalysis& session = *item->session;
    const proto::Commit& commit = session.header.commit();
    const auto [place, is_new] =
        index.insert({commit.id(), static_cast<int>(strata.commits.size())});
    if (is_new) strata.commits.push_back(commit);
    const auto add = [&](std::map<std::string, Stratum>& to, double value) {
      to[session.task_key].values.push_back(value);
      to[session.task_key].groups.push_back(place->second);
    };
    if (const auto value = Effort(session)) add(effort, *value);
    if (const auto quality = QualityOf(session)) {
      add(beside_default, quality->beside_default);
      add(raw, quality->raw);
    }
  }
  const auto move = [](std::map<std::string, Stratum>& from,
                       std::vector<Stratum>& to) {
    for (auto& [unused, stratum] : from) to.push_back(std::move(stratum));
  };
  move(effort, strata.effort);
  move(beside_default, strata.beside_default);
  move(raw, strata.raw);
  return strata;
}

}  // namespace

absl::optional<Quality> QualityOf(const SessionAnalysis& session) {
  if (!session.winner_cost || !session.speedup_over_default)
    return absl::nullopt;
  return Quality{-std::log(*session.speedup_over_default),
                 std::log(*session.winner_cost)};
}

double Worse(const Quality& a, const Quality& b) {
  return std::min(a.beside_default - b.beside_default, a.raw - b.raw);
}

absl::optional<double> Effort(const SessionAnalysis& session) {
  if (!session.trials_to_95_percent) return absl::nullopt;
  return std::log(*session.trials_to_95_percent);
}

std::string ShortCommit(const proto::Commit& commit) {
  return commit.id().empty() ? "(no commit)" : commit.id().substr(0, 12);
}

void AddSettingsEvidence(const proto::Session& before,
                         const proto::Session& after, Finding& finding) {
  const std::string change =
      tuning::DescribeSettingsChange(before.settings(), after.settings());
  if (change.empty()) return;
  finding.evidence.push_back(absl::StrCat("measured differently: ", change));
}

size_t FindWorseTuner(const Sessions& sessions, const FindingOptions& options,
                      std::vector<Finding>& findings) {
  const CommitStrata strata = ByCommit(sessions);
  const int commits = static_cast<int>(strata.commits.size());
  int boundary = 0;
  std::vector<std::string> evidence;
  if (commits < 2) return sessions.size();
  const Shift effort =
      LargestRise(strata.effort, commits, options.permutations);
  if (effort.p_value < options.alpha && effort.strata >= 2 &&
      effort.difference >= std::log(options.trials_ratio)) {
    boundary = effort.boundary;
    evidence.push_back(absl::StrFormat(
        "%.1f times as many trials to come within 5%% of the best, over %d "
        "tasks (p = %.2g)",
        std::exp(effort.difference), effort.strata, effort.p_value));
  }
  const Shift quality =
      LargestRise(strata.beside_default, commits, options.permutations);
  const double loss = std::min(quality.difference,
                               MedianDifference(strata.raw, quality.boundary));
  if (quality.p_value < options.alpha && quality.strata >= 2 &&
      loss >= std::log1p(options.min_effect)) {
    boundary =
        boundary == 0 ? quality.boundary : std::min(boundary, quality.boundary);
    evidence.push_back(absl::StrFormat(
        "winners are %s slower, over %d tasks (p = %.2g)",
        FormatPercent(std::expm1(loss)), quality.strata, quality.p_value));
  }
  if (boundary == 0) return sessions.size();

  const proto::Commit& bad = strata.commits[boundary];
  const proto::Commit& good = strata.commits[boundary - 1];
  Finding finding;
  finding.kind = FindingKind::kTunerWorse;
  size_t first = sessions.size();
  for (size_t i = 0; i < sessions.size(); ++i) {
    if (sessions[i]->session->header.commit().id() == bad.id()) {
      first = std::min(first, i);
    }
  }
  for (size_t i = first; i < sessions.size(); ++i) {
    finding.session_ids.push_back(sessions[i]->session->id());
  }
  const proto::Session& before = sessions[first - 1]->session->header;
  const proto::Session& after = sessions[first]->session->header;
  evidence.push_back(absl::StrCat(
      "on ", after.task().hardware_id(), " since commit ", ShortCommit(bad),
      bad.subject().empty() ? "" : ": ", bad.subject()));
  if (before.strategy() != after.strategy()) {
    evidence.push_back(absl::StrCat("the strategy was ", before.strategy(),
                                    ", now it is ", after.strategy()));
    finding.remedies.push_back(
        {Lever::kStrategy, absl::StrCat("--strategy=", before.strategy(),
                                        " instead of ", after.strategy())});
  }
  finding.remedies.push_back(
      {Lever::kBisect,
       absl::StrCat("look for the change between ", ShortCommit(good), " and ",
                    ShortCommit(bad),
                    " in the strategies, their models and the spaces")});
  finding.evidence = std::move(evidence);
  AddSettingsEvidence(before, after, finding);
  findings.push_back(std::move(finding));
  return first;
}

void FindWorseHardware(const std::map<std::string, Sessions>& by_hardware,
                       const FindingOptions& options,
                       std::vector<Finding>& findings) {
  for (const auto& [better, better_sessions] : by_hardware) {
    for (const auto& [worse, worse_sessions] : by_hardware) {
      if (better == worse) continue;
      std::map<std::string, Stratum> by_task;
      const auto add = [&](const Sessions& sessions, int group) {
        for (const SessionWithSpace* item : sessions) {
          const auto effort = Effort(*item->session);
          if (!effort) continue;
          Stratum& stratum = by_task[item->session->task_text];
          stratum.values.push_back(*effort);
          stratum.groups.push_back(group);
        }
      };
      add(better_sessions, 0);
      add(worse_sessions, 1);
      std::vector<Stratum> strata;
      for (auto& [unused, stratum] : by_task) {
        strata.push_back(std::move(stratum));
      }
      const Shift shift = LargestRise(strata, 2, options.permutations);
      if (shift.p_value >= options.alpha || shift.strata < 2 ||
          shift.difference < std::log(options.trials_ratio)) {
        continue;
      }
      Finding finding;
      finding.kind = FindingKind::kTunerWorseOnHardware;
      for (const SessionWithSpace* item : worse_sessions) {
        finding.session_ids.push_back(item->session->id());
      }
      finding.evidence = {
          absl::StrFormat("on %s it takes %.1f times as many trials as on %s "
                          "to come within 5%% "
                          "of the best, over %d tasks (p = %.2g)",
                          worse, std::exp(shift.difference), better,
                          shift.strata, shift.p_value)};
      finding.remedies = {
          {Lever::kPrior,
           absl::StrCat("a default and a prior that use hw.* suit both; "
                        "warm-start ",
                        worse, " from sessions of ", better)},
          {Lever::kBudget, absl::StrFormat("%.1f times the trials on %s",
                                           std::exp(shift.difference), worse)}};
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace optrail::tracker
