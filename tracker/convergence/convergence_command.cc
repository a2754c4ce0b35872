#include "tracker/convergence/convergence_command.h"

#include <algorithm>
#include <iostream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/text/closest.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "nlohmann/json.hpp"
#include "tracker/command/filter_values.h"
#include "tracker/convergence/convergence.h"
#include "tracker/gate/policy.h"

namespace optrail::tracker {
namespace {

// `where` the names are from, for messages.
absl::StatusOr<std::set<FindingKind>> KindsOf(
    absl::Span<const std::string> names, absl::string_view where) {
  std::set<FindingKind> kinds;
  for (const std::string& name : names) {
    if (name == "all") {
      kinds.insert(std::begin(kAllFindingKinds), std::end(kAllFindingKinds));
      continue;
    }
    const absl::optional<FindingKind> kind = ParseFindingKind(name);
    if (!kind) {
      std::vector<std::string> known = {"all"};
      for (const FindingKind one : kAllFindingKinds) {
        known.emplace_back(FindingKindName(one));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": finding '", name, "': ", ExpectedOneOf(name, known)));
    }
    kinds.insert(*kind);
  }
  return kinds;
}

std::string TaskOf(const Finding& finding) {
  return finding.task.empty() ? "several tasks" : finding.task;
}

// "gain: 4.0% predicted (0.0 to 8.0%), 5.1% realised (4.0 to 6.2%): searched";
// empty if nothing is known of it.
std::string GainText(const Remedy& remedy) {
  const auto gain = [](const RemedyGain& one, absl::string_view what) {
    return absl::StrCat(FormatPercent(one.value), " ", what, " (",
                        FormatPercent(one.low), " to ", FormatPercent(one.high),
                        ")");
  };
  std::vector<std::string> parts;
  if (remedy.predicted) parts.push_back(gain(*remedy.predicted, "predicted"));
  if (remedy.realised) parts.push_back(gain(*remedy.realised, "realised"));
  std::string text = absl::StrJoin(parts, ", ");
  if (!remedy.outcome.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ": ", remedy.outcome);
  }
  return text.empty() ? "" : absl::StrCat("gain: ", text);
}

// A block per finding: sentences don't fit the columns of a table.
void PrintText(const std::vector<Finding>& findings, std::ostream& out) {
  for (const Finding& finding : findings) {
    out << FindingKindName(finding.kind) << ": "
        << EscapeForTerminal(TaskOf(finding)) << "\n";
    for (const std::string& line : finding.evidence) {
      out << "  evidence: " << EscapeForTerminal(line) << "\n";
    }
    for (const Remedy& remedy : finding.remedies) {
      out << "  " << LeverName(remedy.lever) << ": "
          << EscapeForTerminal(remedy.text) << "\n";
      if (const std::string gain = GainText(remedy); !gain.empty()) {
        out << "    " << EscapeForTerminal(gain) << "\n";
      }
    }
    out << "  sessions: "
        << EscapeForTerminal(absl::StrJoin(finding.session_ids, ", "))
        << "\n\n";
  }
}

// Prints the results of each session, the newest first.
void PrintSessions(const std::vector<SessionAnalysis>& sessions,
                   std::ostream& out) {
  constexpr size_t kMostShown = 20;
  std::vector<const SessionAnalysis*> newest;
  for (const SessionAnalysis& session : sessions) newest.push_back(&session);
  std::stable_sort(newest.begin(), newest.end(),
                   [](const SessionAnalysis* a, const SessionAnalysis* b) {
                     return a->header.started_unix_ns() >
                            b->header.started_unix_ns();
                   });
  for (size_t i = 0; i < newest.size() && i < kMostShown; ++i) {
    out << EscapeForTerminal(
               absl::StrCat(newest[i]->id(), " ", newest[i]->task_text))
        << "\n";
    for (const std::string& line :
         {ProgressText(*newest[i]), WinnerText(*newest[i])}) {
      if (!line.empty()) out << "  " << EscapeForTerminal(line) << "\n";
    }
  }
  if (newest.size() > kMostShown) {
    out << newest.size() - kMostShown << " older sessions are not listed\n";
  }
  if (!newest.empty()) out << "\n";
}

// The names are those of a diagnosis' advice.
void AddGain(const std::string& name, const absl::optional<RemedyGain>& gain,
             nlohmann::ordered_json& json) {
  if (!gain) return;
  json[name + "_gain"] = gain->value;
  json[name + "_low"] = gain->low;
  json[name + "_high"] = gain->high;
}

void PrintJson(const std::vector<Finding>& findings, std::ostream& out) {
  auto json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    auto remedies = nlohmann::ordered_json::array();
    for (const Remedy& remedy : finding.remedies) {
      nlohmann::ordered_json one = {
          {"lever", std::string(LeverName(remedy.lever))},
          {"text", remedy.text}};
      AddGain("predicted", remedy.predicted, one);
      AddGain("realised", remedy.realised, one);
      if (!remedy.outcome.empty()) one["outcome"] = remedy.outcome;
      remedies.push_back(std::move(one));
    }
    json.push_back({{"finding", std::string(FindingKindName(finding.kind))},
                    {"task", finding.task},
                    {"sessions", finding.session_ids},
                    {"evidence", finding.evidence},
                    {"remedies", std::move(remedies)}});
  }
  out << json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace)
      << "\n";
}

Table TableOf(const std::vector<Finding>& findings) {
  Table table({{"finding"}, {"task"}, {"evidence"}, {"remedy"}, {"sessions"}});
  for (const Finding& finding : findings) {
    table.AddRow({FindingKindName(finding.kind), TaskOf(finding),
                  absl::StrJoin(finding.evidence, "; "),
                  finding.remedies.empty() ? "" : finding.remedies[0].text,
                  absl::StrJoin(finding.session_ids, " ")});
  }
  return table;
}

}  // namespace

absl::StatusOr<int> RunConvergence(const ConvergenceCommand& options,
                                   std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(std::set<FindingKind> fail_on,
                           KindsOf(options.fail_on, "--fail_on"));
  if (!options.policy.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const Policy policy, Policy::Load(options.policy));
    const auto& names = policy.proto().fail_on_finding();
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::set<FindingKind> of_policy,
        KindsOf(std::vector<std::string>(names.begin(), names.end()),
                absl::StrCat(options.policy, ": fail_on_finding")));
    fail_on.insert(of_policy.begin(), of_policy.end());
  }
  OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
                           CompilePattern("filter", options.filter));
  OPTRAIL_ASSIGN_OR_RETURN(const History history, OpenHistory(options.common));
  OPTRAIL_ASSIGN_OR_RETURN(const SessionList list, history.ListSessions());
  WarnOfBadFiles(list.bad_files);
  std::vector<SessionAnalysis> sessions;
  for (const SessionInfo& info : list.sessions) {
    if (!options.hardware_id.empty() &&
        info.header.task().hardware_id() != options.hardware_id) {
      continue;
    }
    OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                             history.ReadSession(info.id()));
    SessionAnalysis analysis = AnalyzeSession(session);
    if (MatchesPart(*filter, analysis.task_text)) {
      sessions.push_back(std::move(analysis));
    }
  }
  std::vector<Finding> findings = FindFaults(sessions);
  if (options.try_them && !findings.empty()) {
    OPTRAIL_RETURN_IF_ERROR(options.try_them(history, findings));
  }
  switch (options.common.format) {
    case OutputFormat::kTable: {
      std::ostringstream text;
      PrintSessions(sessions, text);
      PrintText(findings, text);
      text << findings.size()
           << (findings.size() == 1 ? " finding" : " findings") << " in "
           << sessions.size()
           << (sessions.size() == 1 ? " session" : " sessions") << "\n";
      out << WrapProse(text.str(), TerminalWidth());
      break;
    }
    case OutputFormat::kJson:
      PrintJson(findings, out);
      break;
    default:
      out << TableOf(findings).Format(options.common.format);
  }
  if (sessions.empty()) {
    if (!list.sessions.empty()) {
      std::set<std::string> hardware;
      for (const SessionInfo& info : list.sessions) {
        hardware.insert(info.header.task().hardware_id());
      }
      std::cerr << "no session matches the flags; there are "
                << list.sessions.size() << " in " << history.dir()
                << UnknownValueText("hardware", options.hardware_id, hardware)
                << "; next: `optrail log sessions` lists them\n";
    } else {
      std::cerr << "there are no sessions in " << history.dir()
                << " yet; next: optrail tune, or --history=FOLDER with some\n";
    }
    return 3;
  }
  const bool fails = std::any_of(
      findings.begin(), findings.end(),
      [&](const Finding& finding) { return fail_on.count(finding.kind) > 0; });
  return fails ? 1 : 0;
}

}  // namespace optrail::tracker
