#include "tracker/gate/gate_command.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/git.h"
#include "base/status_macros.h"
#include "tracker/command/command_support.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/policy.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"

namespace optrail::tracker {
namespace {

GitLookup LookupIn(const std::string& workspace) {
  GitLookup lookup;
  lookup.resolve = GitIn(workspace);
  lookup.merge_base = [workspace](absl::string_view a, absl::string_view b) {
    return MergeBase(workspace, std::string(a), std::string(b));
  };
  return lookup;
}

// The candidate where nobody names one. What the work tree holds beyond its
// commit is no part of the answer, and that is said.
std::string DefaultCandidate(const std::string& workspace,
                             std::vector<std::string>* notes) {
  const absl::StatusOr<GitFacts> facts = FindGitFacts(workspace);
  if (!facts.ok()) {
    notes->push_back(
        absl::StrCat("the candidate is the newest commit of the "
                     "history (--candidate=latest): ",
                     facts.status().message()));
    return "latest";
  }
  if (facts->dirty) {
    notes->push_back(UncommittedText(facts->commit));
  }
  return "HEAD";
}

std::string RemeasureText(const GateReport& report) {
  const absl::optional<Remeasure> request = RemeasureRequest(report);
  if (!request.has_value()) return "";
  return absl::StrCat(request->additional_processes, "\n", request->filter,
                      "\n");
}

absl::Status WriteOut(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  return WriteOutput(path, text);
}

}  // namespace

absl::StatusOr<int> RunGate(const GateCommand& options, std::ostream& out) {
  Policy policy = Policy::Default();
  if (!options.policy.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(policy, Policy::Load(options.policy));
  }
  GateOptions gate;
  gate.suite = options.suite;
  gate.hardware_id = options.hardware_id;
  if (!options.baseline.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(gate.baseline, ParseBaseline(options.baseline));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.looks >= 1 && options.looks <= 100,
                                    "looks", options.looks,
                                    "a number from 1 to 100"));
  OPTRAIL_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  OPTRAIL_RETURN_IF_ERROR(CheckHistoryIsThere(options.common));
  gate.looks = options.looks;
  gate.now_unix_s = NowUnixNs(options.common) / 1'000'000'000;
  gate.git = LookupIn(options.common.workspace);
  OPTRAIL_ASSIGN_OR_RETURN(History history,
                           OpenIndexedHistory(options.common.history));
  history.set_now_unix_ns(options.common.now_unix_ns);
  std::vector<std::string> notes;
  gate.candidate = options.candidate.empty()
                       ? DefaultCandidate(options.common.workspace, &notes)
                       : options.candidate;
  OPTRAIL_ASSIGN_OR_RETURN(GateReport report, Gate(history, policy, gate));
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  OPTRAIL_RETURN_IF_ERROR(Publish(options.outputs, report));
  OPTRAIL_RETURN_IF_ERROR(
      WriteOut(options.remeasure_out, RemeasureText(report)));
  out << FormatGate(report, options.common.format, TerminalWidth());
  return report.exit_code;
}

}  // namespace optrail::tracker
