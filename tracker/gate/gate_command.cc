#include "tracker/gate/gate_command.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/process/git.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "tracker/command/command_support.h"
#include "tracker/command/filter_values.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/gate_report.h"
#include "tracker/gate/policy.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/selectors.h"
#include "tracker/series/work_tree.h"

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
  std::string uncommitted = UncommittedText(*facts);
  if (!uncommitted.empty()) notes->push_back(std::move(uncommitted));
  return "HEAD";
}

std::string RemeasureText(const GateReport& report) {
  const absl::optional<Remeasure> request = RemeasureRequest(report);
  if (!request.has_value()) return "";
  return absl::StrCat(request->additional_processes, "\n", request->filter,
                      "\n");
}

// Lets --measure add what `request` asks for. What it prints is dropped.
absl::Status MeasureAgain(const GateCommand& options,
                          const Remeasure& request) {
  std::cerr << "measuring again: " << request.additional_processes
            << " more processes of " << EscapeForTerminal(request.filter)
            << "\n";
  CommandOptions run;
  run.working_directory = options.common.workspace;
  OPTRAIL_ASSIGN_OR_RETURN(
      const CommandResult result,
      RunCommand(
          {"/bin/sh", "-c",
           absl::StrReplaceAll(
               options.measure,
               {{"{filter}", QuoteForShell(request.filter)},
                {"{processes}", absl::StrCat(request.additional_processes)}})},
          run));
  if (result.exit.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--measure ", result.exit.ToString(),
      ": expected a command that measures the candidate and records it",
      result.stderr_text.empty() ? "" : "; its errors: ",
      TruncateUtf8(absl::StripTrailingAsciiWhitespace(result.stderr_text),
                   500)));
}

// Benchmarks that the past of a suite has: another run may bring them.
bool LacksBenchmarks(const GateReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(),
                     [](const GateRow& row) {
                       return row.action == proto::FAIL &&
                              row.row.verdict == Verdict::kMissing;
                     });
}

// The report of a candidate whose measurement is not done.
GateReport Unfinished(const GateOptions& gate, const UnfinishedWork& work) {
  GateReport report;
  report.history_flag = gate.history_flag;
  report.candidate = gate.candidate;
  report.reason = GateReason::kMissing;
  report.missing = {work.text};
  report.summary = absl::StrCat("can't tell: ", work.text);
  return report;
}

// The report of now, and whether a later one may have what this one lacks.
struct GateSoFar {
  GateReport report;
  bool may_grow = false;
};

absl::StatusOr<GateSoFar> GateNow(const GateCommand& options,
                                  const Policy& policy,
                                  const GateOptions& gate) {
  GateSoFar now;
  // Before the history is read: what is done then is in it.
  UnfinishedWork work;
  if (options.work) {
    OPTRAIL_ASSIGN_OR_RETURN(work, options.work());
  }
  if (!work.text.empty()) {
    now.report = Unfinished(gate, work);
    now.may_grow = work.may_end;
    return now;
  }
  OPTRAIL_ASSIGN_OR_RETURN(History history,
                           OpenIndexedHistory(options.common.history));
  history.set_now_unix_ns(options.common.now_unix_ns);
  OPTRAIL_ASSIGN_OR_RETURN(now.report, Gate(history, policy, gate));
  // After the work nobody brings what is still missing.
  now.may_grow = !options.work &&
                 (now.report.IsIncomplete() || LacksBenchmarks(now.report));
  return now;
}

// Judges once: when all work is done, or the candidate has all of its runs, or
// at `deadline`. A database that is away is asked again until then.
absl::StatusOr<GateReport> GateWhenComplete(const GateCommand& options,
                                            const Policy& policy,
                                            const GateOptions& gate,
                                            absl::Time deadline) {
  bool is_said = false;
  while (true) {
    absl::StatusOr<GateSoFar> now = GateNow(options, policy, gate);
    if (!now.ok() && !absl::IsUnavailable(now.status())) return now.status();
    const bool may_grow = !now.ok() || now->may_grow;
    const absl::Duration left = deadline - absl::Now();
    if (!may_grow || left <= absl::ZeroDuration()) {
      if (!now.ok()) return now.status();
      if (may_grow && options.wait > absl::ZeroDuration()) {
        AddNote(absl::StrCat("waited ", absl::FormatDuration(options.wait),
                             " for what is missing"),
                &now->report);
      }
      return now->report;
    }
    if (!is_said) {
      is_said = true;
      std::cerr << "waiting up to " << absl::FormatDuration(options.wait)
                << ": "
                << EscapeForTerminal(now.ok() ? now->report.summary
                                              : now.status().message())
                << "\n";
    }
    absl::SleepFor(std::min(left, options.poll));
  }
}

}  // namespace

absl::StatusOr<int> RunGate(const GateCommand& options, std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const Policy policy,
                           Policy::LoadOr(options.policy, options.metric));
  GateOptions gate;
  gate.suite = options.suite;
  gate.hardware_id = options.hardware_id;
  if (!options.baseline.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(gate.baseline, ParseBaseline(options.baseline));
  }
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.looks >= 1 && options.looks <= 100,
                                    "looks", options.looks,
                                    "a number from 1 to 100"));
  OPTRAIL_RETURN_IF_ERROR(
      CheckFlag(options.measure.empty() || options.looks > 1, "looks",
                options.looks, "at least 2 with --measure"));
  OPTRAIL_RETURN_IF_ERROR(CheckFlag(options.wait >= absl::ZeroDuration() &&
                                        options.wait <= absl::Hours(24 * 7),
                                    "wait", absl::FormatDuration(options.wait),
                                    "a time from 0s to 168h"));
  OPTRAIL_RETURN_IF_ERROR(CheckOutputs(options.outputs));
  OPTRAIL_RETURN_IF_ERROR(CheckHistoryIsThere(options.common));
  gate.looks = options.looks;
  gate.now_unix_s = NowUnixNs(options.common) / 1'000'000'000;
  gate.history_flag = HistoryFlag(options.common);
  gate.git = LookupIn(options.common.workspace);
  std::vector<std::string> notes;
  gate.candidate = options.candidate.empty()
                       ? DefaultCandidate(options.common.workspace, &notes)
                       : options.candidate;
  const absl::Time deadline = absl::Now() + options.wait;
  GateReport report;
  for (int look = 1;; ++look) {
    OPTRAIL_ASSIGN_OR_RETURN(report,
                             GateWhenComplete(options, policy, gate, deadline));
    const absl::optional<Remeasure> request = RemeasureRequest(report);
    if (options.measure.empty() || report.exit_code != 3 ||
        !request.has_value() || look == options.looks) {
      break;
    }
    OPTRAIL_RETURN_IF_ERROR(MeasureAgain(options, *request));
  }
  if (!options.metric.empty() && report.exit_code == 3) {
    OPTRAIL_ASSIGN_OR_RETURN(const History history,
                             OpenIndexedHistory(options.common.history));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string unknown,
                             UnknownMetricText(history, RE2(options.metric)));
    if (!unknown.empty()) {
      notes.push_back(absl::StrCat("no benchmark is judged", unknown));
    }
  }
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  OPTRAIL_RETURN_IF_ERROR(Publish(options.outputs, report));
  OPTRAIL_RETURN_IF_ERROR(
      WriteOut(options.remeasure_out, RemeasureText(report)));
  out << FormatGate(report, options.common.format, TerminalWidth());
  return report.exit_code;
}

}  // namespace optrail::tracker
