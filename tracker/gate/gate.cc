#include "tracker/gate/gate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/compare/learning_runs.h"
#include "tracker/compare/row_table.h"
#include "tracker/explain/explain.h"
#include "tracker/gate/baseline.h"
#include "tracker/gate/candidate.h"
#include "tracker/gate/known_changes.h"
#include "tracker/series/labels.h"
#include "tracker/series/series.h"
#include "tuning/proto/canonical.h"

namespace optrail::tracker {
namespace {

std::vector<const proto::Run*> Pointers(const std::vector<proto::Run>& runs) {
  std::vector<const proto::Run*> pointers;
  for (const proto::Run& run : runs) pointers.push_back(&run);
  return pointers;
}

// What was wrong, however it was measured: runs that are not judged otherwise,
// with nothing but what failed.
absl::StatusOr<std::vector<proto::Run>> ReadFailures(
    const History& history, const std::vector<RunInfo>& runs) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> read,
                           ReadAll(history, runs));
  std::vector<proto::Run> failed;
  for (proto::Run& run : read) {
    DropResults(
        [](const proto::BenchmarkResult& result) {
          return !tuning::IsFailure(result.outcome());
        },
        &run);
    if (!run.results().empty()) failed.push_back(std::move(run));
  }
  return failed;
}

// Names benchmarks that ran with a config that was tuned for another kernel.
void NoteUnverified(const std::vector<proto::Run>& candidate,
                    GateReport* report) {
  std::map<std::string, std::set<std::string>> names;  // by label
  for (const proto::Run& run : candidate) {
    for (const proto::BenchmarkResult& result : run.results()) {
      for (const std::string& label : result.labels()) {
        if (!absl::StartsWith(label, kUnverifiedLabel)) continue;
        names[label].insert(DisplayName(result.key()));
      }
    }
  }
  for (const auto& [label, benchmarks] : names) {
    AddNote(absl::StrCat(*benchmarks.begin(),
                         benchmarks.size() == 1
                             ? ""
                             : absl::StrCat(" and ", benchmarks.size() - 1,
                                            " more benchmarks"),
                         ": ", label,
                         ", not with the one that ran; next: optrail tune"),
            report);
  }
}

// Judges one suite on one hardware by one baseline after the other.
class GroupGate {
 public:
  GroupGate(const History& history, const Policy& policy,
            const GateOptions& options, const KnownChanges& known,
            const CandidateGroup& group)
      : history_(history),
        policy_(policy),
        options_(options),
        known_(known),
        group_(group) {
    filter_.suite = group.last().suite();
    filter_.hardware_id = group.last().hardware().id();
  }

  // `comparisons` share the false-alarm rate.
  absl::Status Run(const std::vector<proto::Baseline>& baselines,
                   int comparisons, GateReport* report) const {
    OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history_.ListRuns(filter_));
    for (const BadFile& bad : list.bad_files) {
      AddNote(
          absl::StrCat("damaged file skipped: ", bad.path, ": ", bad.reason),
          report);
    }
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> candidate,
                             ReadFailures(history_, group_.other_settings));
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<proto::Run> judged,
                             ReadAll(history_, group_.runs));
    std::move(judged.begin(), judged.end(), std::back_inserter(candidate));
    NoteUnverified(candidate, report);
    const BaselineFinder finder(policy_, options_.git, list.runs, group_.runs);
    const size_t first_row = report->rows.size();
    for (const proto::Baseline& baseline : baselines) {
      OPTRAIL_ASSIGN_OR_RETURN(ResolvedBaseline found,
                               finder.Find(baseline, history_, filter_));
      if (found.problem.empty()) {
        OPTRAIL_RETURN_IF_ERROR(
            JudgeBy(baseline, finder, candidate, comparisons, &found, report));
      }
      report->baselines.push_back(std::move(found));
    }
    for (size_t i = first_row; i < report->rows.size(); ++i) {
      report->rows[i].suite = filter_.suite;
      report->rows[i].hardware_id = filter_.hardware_id;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status JudgeBy(const proto::Baseline& baseline,
                       const BaselineFinder& finder,
                       const std::vector<proto::Run>& candidate,
                       int comparisons, ResolvedBaseline* found,
                       GateReport* report) const {
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<proto::Run> whole,
                             finder.Read(baseline, history_, candidate, found));
    LearningOptions learning;
    learning.any_settings =
        policy_.proto().on_other_settings() == proto::IGNORE;
    learning.window = baseline.has_window();
    const std::vector<proto::Run> learned =
        LearningRuns(history_, finder.runs(), Pointers(whole),
                     Pointers(candidate), learning);
    CompareOptions compare =
        CompareOptionsFor(policy_, comparisons, options_.looks);
    compare.history = Pointers(learned);
    compare.window = baseline.has_window();
    std::set<std::string> past;
    for (const std::vector<proto::Run>* runs : {&learned, &whole}) {
      for (const proto::Run& run : *runs) past.insert(run.run_id());
    }
    if (compare.window) {
      compare.level_start = [&](const proto::BenchmarkKey& key,
                                absl::string_view metric) {
        return known_.LevelStart(key, metric, filter_.hardware_id,
                                 baseline.window().branch(), past);
      };
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        const Comparison comparison,
        Compare(Pointers(whole), Pointers(candidate), compare));
    Judge(policy_, comparison, found->text, options_.now_unix_s, report);
    return absl::OkStatus();
  }

  const History& history_;
  const Policy& policy_;
  const GateOptions& options_;
  const KnownChanges& known_;
  const CandidateGroup& group_;
  RunFilter filter_;
};

// Suites that the candidate's commit is expected to have and lacks, for each
// hardware that it has. Those that fail the gate are added to `lacking`.
absl::Status FindMissingSuites(const History& history, const Policy& policy,
                               const GateOptions& options,
                               const std::vector<proto::Baseline>& baselines,
                               const Candidate& candidate, LackingRuns* lacking,
                               GateReport* report) {
  std::map<std::string, std::vector<const CandidateGroup*>> by_hardware;
  for (const CandidateGroup& group : candidate.groups) {
    by_hardware[group.last().hardware().id()].push_back(&group);
  }
  for (const auto& [hardware, groups] : by_hardware) {
    RunFilter filter;
    filter.hardware_id = hardware;
    OPTRAIL_ASSIGN_OR_RETURN(const RunList list, history.ListRuns(filter));
    const BaselineFinder finder(policy, options.git, list.runs,
                                groups.back()->runs);
    std::set<std::string> expected;
    for (const proto::Baseline& baseline : baselines) {
      expected.merge(finder.Suites(baseline));
    }
    for (const CandidateGroup* group : groups) {
      expected.erase(group->last().suite());
    }
    for (const std::string& suite : expected) {
      std::string text =
          absl::StrCat(candidate.name, " has no run of suite '", suite, "' on ",
                       hardware, ", which its past has");
      if (policy.proto().on_missing() == proto::FAIL) {
        report->missing.push_back(std::move(text));
        lacking->insert({suite, hardware});
      } else {
        AddNote(std::move(text), report);
      }
    }
  }
  return absl::OkStatus();
}

const proto::Quorum::Hardware* MemberOf(const proto::Quorum& quorum,
                                        const std::string& hardware) {
  for (const proto::Quorum::Hardware& member : quorum.hardware()) {
    if (member.id() == hardware) return &member;
  }
  return nullptr;
}

// Only the hardware of the quorum judges.
void KeepMembers(const proto::Quorum& quorum, Candidate* candidate) {
  std::vector<CandidateGroup> kept;
  for (CandidateGroup& group : candidate->groups) {
    if (MemberOf(quorum, group.last().hardware().id()) != nullptr) {
      kept.push_back(std::move(group));
    }
  }
  candidate->groups = std::move(kept);
}

// The hardware of the quorum on which the candidate has no run at all. It lacks
// the suites that it ever had there; what was never measured there may be any.
void FindMissingHardware(const proto::Quorum& quorum, const RunList& all,
                         const Candidate& candidate, LackingRuns* lacking,
                         GateReport* report) {
  std::set<std::string> present;
  LackingRuns known;
  std::set<std::string> suites, hardware_of_history;
  for (const CandidateGroup& group : candidate.groups) {
    present.insert(group.last().hardware().id());
    suites.insert(group.last().suite());
  }
  for (const RunInfo& run : all.runs) {
    known.insert({run.header.suite(), run.header.hardware().id()});
    hardware_of_history.insert(run.header.hardware().id());
  }
  for (const proto::Quorum::Hardware& member : quorum.hardware()) {
    if (present.count(member.id()) > 0) continue;
    report->missing.push_back(
        absl::StrCat(candidate.name, " has no run on hardware ", member.id(),
                     ", which the policy's quorum has"));
    for (const std::string& suite : suites) {
      if (known.count({suite, member.id()}) > 0 ||
          hardware_of_history.count(member.id()) == 0) {
        lacking->insert({suite, member.id()});
      }
    }
  }
}

// Machines that are not judged, though the history has them.
void NoteOtherHardware(const GateOptions& options, const Policy& policy,
                       const RunList& all, const Candidate& candidate,
                       GateReport* report) {
  if (!options.hardware_id.empty()) return;
  std::set<std::string> others;
  for (const RunInfo& run : all.runs) {
    others.insert(run.header.hardware().id());
  }
  for (const CandidateGroup& group : candidate.groups) {
    others.erase(group.last().hardware().id());
  }
  const bool has_quorum = policy.proto().has_quorum();
  for (const std::string& hardware : others) {
    // The absence of a member is no note: it fails the gate.
    if (has_quorum && MemberOf(policy.proto().quorum(), hardware)) continue;
    AddNote(has_quorum
                ? absl::StrCat("hardware ", hardware,
                               " is not judged: it is not in the policy's "
                               "quorum")
                : absl::StrCat("hardware ", hardware, " is not judged: ",
                               candidate.name, " has no run on it"),
            report);
  }
}

// Only the worst rows are explained: the same change of the code explains the
// others.
constexpr int kMostExplained = 20;

void ExplainRedRows(const History& history, GateReport* report) {
  Explainer explainer(history);
  int explained = 0;
  for (GateRow& row : report->rows) {
    const Side& before = row.row.baseline;
    const Side& after = row.row.candidate;
    if (!IsRed(row) || before.run_ids.empty() || after.run_ids.empty() ||
        ++explained > kMostExplained) {
      continue;
    }
    row.changed = explainer.Lines(
        {row.row.key, row.good ? row.good->run_id : before.run_ids.back(),
         row.bad ? row.bad->run_id : after.run_ids.back(),
         1 + row.row.worse_by});
  }
}

}  // namespace

absl::StatusOr<GateReport> Gate(const History& history, const Policy& policy,
                                const GateOptions& options) {
  GateReport report;
  report.history_flag = options.history_flag;
  report.run_false_alarm_rate = policy.proto().run_false_alarm_rate();
  if (policy.proto().has_quorum() && !options.hardware_id.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hardware=", options.hardware_id,
                     ": the policy's quorum names the hardware that judges; "
                     "leave the flag out, or use a policy without a quorum"));
  }
  OPTRAIL_ASSIGN_OR_RETURN(Candidate candidate,
                           FindCandidate(history, policy, options));
  const bool has_quorum = policy.proto().has_quorum();
  if (has_quorum) KeepMembers(policy.proto().quorum(), &candidate);
  report.candidate = candidate.name;
  report.notes = candidate.notes;
  if (!candidate.problem.empty()) {
    report.reason = candidate.reason;
    report.summary = absl::StrCat("can't tell: ", candidate.problem);
    return report;
  }
  std::vector<proto::Baseline> baselines(policy.proto().baseline().begin(),
                                         policy.proto().baseline().end());
  if (options.baseline.has_value()) baselines = {*options.baseline};
  const int comparisons =
      static_cast<int>(baselines.size() * candidate.groups.size());
  const int64_t now_unix_ns =
      options.now_unix_s > 0 ? options.now_unix_s * 1'000'000'000
                             : candidate.groups.back().last().started_unix_ns();
  OPTRAIL_ASSIGN_OR_RETURN(const KnownChanges known,
                           KnownChanges::Of(history, policy, options.git,
                                            baselines, candidate, now_unix_ns));
  for (const CandidateGroup& group : candidate.groups) {
    report.candidate_runs.insert(report.candidate_runs.end(),
                                 group.runs.begin(), group.runs.end());
    OPTRAIL_RETURN_IF_ERROR(GroupGate(history, policy, options, known, group)
                                .Run(baselines, comparisons, &report));
  }
  known.List(&report);
  known.HeedAnswers(&report);
  LackingRuns lacking;
  OPTRAIL_ASSIGN_OR_RETURN(const RunList all, history.ListRuns());
  if (candidate.is_commit) {
    NoteOtherHardware(options, policy, all, candidate, &report);
    if (options.suite.empty()) {
      OPTRAIL_RETURN_IF_ERROR(FindMissingSuites(
          history, policy, options, baselines, candidate, &lacking, &report));
    }
  }
  if (has_quorum) {
    for (const ResolvedBaseline& baseline : report.baselines) {
      if (baseline.problem.empty()) continue;
      lacking.insert({baseline.suite, baseline.hardware_id});
    }
    FindMissingHardware(policy.proto().quorum(), all, candidate, &lacking,
                        &report);
    JudgeTogether(policy.proto().quorum(), lacking, &report);
  }
  for (const proto::Exemption* exemption :
       policy.ExpiredExemptions(options.now_unix_s)) {
    AddNote(absl::StrCat("the exemption of '", exemption->benchmark(),
                         "' ended on ", exemption->until()),
            &report);
  }
  Conclude(&report);
  known.NarrowSuspects(&report);
  ExplainRedRows(history, &report);
  return report;
}

}  // namespace optrail::tracker
