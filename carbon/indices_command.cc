// `optrail carbon indices`: see carbon_command.h.

#include <iostream>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "carbon/carbon_command.h"
#include "carbon/certificate_folder.h"
#include "carbon/command_parts.h"
#include "carbon/indices.h"
#include "tracker/history/history.h"
#include "tracker/proto/made_up.h"

namespace optrail::carbon {
namespace {

absl::StatusOr<MaturityEvidence> EvidenceOf(
    const tracker::History& history,
    const std::vector<proto::Session>& sessions, bool* made_up) {
  MaturityEvidence evidence;
  *made_up = false;
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::LoadedRuns loaded,
                           history.LoadRuns({}, 0));
  std::set<std::string> commits;
  for (const proto::Run& run : loaded.runs) {
    ++evidence.runs;
    *made_up |= run.source() == tracker::kMadeUpSource;
    if (!run.commit().id().empty()) commits.insert(run.commit().id());
    for (const proto::BenchmarkResult& result : run.results()) {
      for (const proto::Measurement& measurement : result.measurements()) {
        for (const proto::MeterWindow& window : measurement.windows()) {
          evidence.checked_windows += window.check() == proto::AGREES;
        }
      }
    }
  }
  evidence.commits = static_cast<int>(commits.size());
  for (const proto::Session& session : sessions) {
    evidence.proven_sessions += session.proof().claimed();
  }
  return evidence;
}

}  // namespace

absl::StatusOr<ExitCode> RunCarbonIndices(const CarbonIndicesCommand& command,
                                          std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::SessionList list,
                           history.ListSessions());
  std::vector<proto::Session> sessions;
  for (const tracker::SessionInfo& info : list.sessions) {
    auto session = history.ReadSession(info.id());
    if (session.ok()) sessions.push_back(*std::move(session));
  }
  tracker::WarnOfBadFiles(list.bad_files);
  std::vector<const proto::Session*> pointers;
  Table table({{"index", Align::kLeft, "", Clip::kFold},
               {"value", Align::kRight},
               {"estimated", Align::kLeft},
               {"from", Align::kLeft, "", Clip::kFold}});
  const auto number = [](double value) {
    return Cell::Number(value, absl::StrFormat("%.4g", value));
  };
  for (const proto::Session& session : sessions) {
    pointers.push_back(&session);
    const SessionGain gain = GainOf(session, command.model);
    if (!gain.break_even_calls) continue;
    table.AddRow(
        {"break-even, calls", number(*gain.break_even_calls),
         gain.estimated ? "estimated" : "",
         absl::StrCat(session.session_id(), ", ", Joules(gain.spent.joules),
                      " spent, ", Joules(*gain.joules_saved_per_call),
                      " saved a call")});
  }
  const TuningIndex index = IndexOf(pointers, command.model);
  const std::string of = absl::StrCat(
      index.sessions, index.sessions == 1 ? " session" : " sessions",
      " with times, ", index.seeds, index.seeds == 1 ? " seed" : " seeds",
      " of searches");
  const bool any = index.sessions > 0;
  table.AddRow({"performance gain",
                any ? number(index.performance) : Cell::None(), "", of});
  table.AddRow({"energy-efficiency gain",
                index.with_energy > 0 ? number(index.energy) : Cell::None(), "",
                absl::StrCat(index.with_energy,
                             index.with_energy == 1 ? " session" : " sessions",
                             " with joules")});
  table.AddRow({"tuning efficiency",
                any ? number(index.efficiency) : Cell::None(), "", of});
  table.AddRow({"green tuning index",
                index.index ? number(*index.index) : Cell::None(), "", of});
  OPTRAIL_ASSIGN_OR_RETURN(const CheckedCertificates checked,
                           CheckCertificates(history, command.common.history));
  table.AddRow({"verified certificates", Cell::Integer(checked.verified), "",
                checked.LeftOut()});
  bool made_up = false;
  OPTRAIL_ASSIGN_OR_RETURN(MaturityEvidence evidence,
                           EvidenceOf(history, sessions, &made_up));
  evidence.verified_certificates = checked.verified;
  const Maturity maturity = MaturityOf(evidence);
  table.AddRow({"maturity level", Cell::Integer(maturity.level), "",
                maturity.missing.empty()
                    ? maturity.name
                    : absl::StrCat(maturity.name, "; missing for the next: ",
                                   maturity.missing)});
  if (made_up) {
    table.AddRow({"made-up data", Cell::None(), "made up",
                  "the history holds runs that nobody measured, as those of "
                  "`optrail demo`: every index here is made up"});
    std::cerr << "note: made-up data: every index here is made up\n";
  }
  tracker::PrintTable(table, command.common.format, out);
  return ExitCode::kOk;
}

}  // namespace optrail::carbon
