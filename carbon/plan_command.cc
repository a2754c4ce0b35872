// `optrail carbon plan`: see carbon_command.h.

#include <algorithm>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "carbon/carbon_command.h"
#include "carbon/command_parts.h"
#include "carbon/grid.h"
#include "carbon/jobs_csv.h"
#include "carbon/plan.h"
#include "carbon/plan_page.h"
#include "tracker/history/history.h"

namespace optrail::carbon {
namespace {

// The files of a plan.
struct Curves {
  Grid intensity;
  absl::optional<Grid> tariff;
};

absl::StatusOr<Curves> ReadCurves(const GridOptions& grid) {
  Curves curves;
  OPTRAIL_ASSIGN_OR_RETURN(curves.intensity, ReadIntensity(grid.intensity));
  if (grid.tariff.empty()) return curves;
  OPTRAIL_ASSIGN_OR_RETURN(curves.tariff, ReadTariff(grid.tariff));
  return curves;
}

absl::Status SetHourly(const Curves& curves, const std::string& zone,
                       int64_t start_unix_s, int hours, PlanProblem* problem) {
  OPTRAIL_ASSIGN_OR_RETURN(problem->grams_per_kwh,
                           curves.intensity.Hourly(zone, start_unix_s, hours));
  if (!curves.tariff) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(problem->price_per_kwh,
                           curves.tariff->Hourly(zone, start_unix_s, hours));
  return absl::OkStatus();
}

// "grid.csv ends at 2026-01-02T00:00:00Z" for the first file that says nothing
// of the zone after its end, and that is before `unix_s`; "" if there is none.
std::string EndText(const Curves& curves, const std::string& zone,
                    int64_t unix_s) {
  const Grid* const tariff = curves.tariff ? &*curves.tariff : nullptr;
  for (const Grid* grid : {&curves.intensity, tariff}) {
    if (grid == nullptr || grid->zones.count(zone) == 0) continue;
    const int64_t end = grid->EndOf(zone);
    if (end < unix_s) {
      return absl::StrCat(grid->path, " ends at ", TimeText(end));
    }
  }
  return "";
}

std::vector<Cell> CurveRow(int slack_hours, const Plan& plan) {
  return {Cell::Number(slack_hours, absl::StrCat(slack_hours, "h")),
          Cell::Number(plan.grams, Grams(plan.grams)),
          Cell::Number(plan.SavedAgainstNow(),
                       FormatPercent(plan.SavedAgainstNow())),
          Cell::Number(plan.MostThatCanBeSaved(),
                       FormatPercent(plan.MostThatCanBeSaved())),
          Cell::Number(plan.Gap(), FormatPercent(plan.Gap(), 2)),
          Cell::Integer(plan.unplaced)};
}

absl::StatusOr<ExitCode> PrintCurve(const CarbonPlanCommand& command,
                                    const JobsFile& jobs, const Curves& curves,
                                    const PlanProblem& problem,
                                    std::ostream& out) {
  int earliest_end = 0;
  for (const PlanJob& job : problem.jobs) {
    earliest_end = std::max(earliest_end, job.release + job.hours);
  }
  bool one_places_all = false;
  bool one_is_known = false;
  absl::Status beyond;  // why the first slack that has no row has none
  std::vector<std::string> notes;
  Table table({{"slack", Align::kRight, "slack_hours"},
               {"emitted", Align::kRight, "gco2e"},
               {"saved", Align::kRight, "saved_against_now"},
               {"most possible", Align::kRight, "most_possible"},
               {"gap", Align::kRight, "gap"},
               {"unplaced", Align::kRight}});
  for (const absl::Duration slack : command.slacks) {
    const auto hours = static_cast<int>(absl::ToInt64Hours(slack));
    PlanProblem one = problem;
    for (PlanJob& job : one.jobs) {
      job.deadline = job.release + job.hours + hours;
    }
    const int all_hours = earliest_end + hours;
    const absl::Status set = SetHourly(curves, command.grid.zone,
                                       jobs.start_unix_s, all_hours, &one);
    const std::string end =
        absl::IsNotFound(set) ? EndText(curves, command.grid.zone,
                                        jobs.start_unix_s + all_hours * kHourS)
                              : "";
    if (!end.empty()) {
      beyond.Update(set);
      notes.push_back(absl::StrCat("a slack of ", hours, "h has no plan: ", end,
                                   ", ", all_hours, "h after ",
                                   TimeText(jobs.start_unix_s), " are needed"));
      table.AddRow({Cell::Number(hours, absl::StrCat(hours, "h")), Cell::None(),
                    Cell::None(), Cell::None(), Cell::None(), Cell::None()});
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(set);
    OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(one));
    one_is_known = true;
    one_places_all |= plan.unplaced == 0;
    table.AddRow(CurveRow(hours, plan));
  }
  if (!one_is_known) OPTRAIL_RETURN_IF_ERROR(beyond);
  tracker::PrintTable(table, command.common.format, out);
  for (const std::string& note : notes) {
    std::cerr << "note: " << EscapeForTerminal(note) << "\n";
  }
  return one_places_all ? ExitCode::kOk : ExitCode::kCheckFailed;
}

std::string Jobs(int64_t count) {
  return count == 1 ? "1 job" : absl::StrCat(count, " jobs");
}

std::string PlanSummary(const Plan& plan, const PlanProblem& problem,
                        const JobsFile& jobs, const std::string& currency) {
  const auto placed = static_cast<int64_t>(problem.jobs.size()) - plan.unplaced;
  std::string out = absl::StrFormat(
      "%s, %.4g kWh: %s, %s less than starting now (%s); at most %s could be "
      "saved, with unlimited machines\n",
      Jobs(placed), plan.kwh, Grams(plan.grams),
      FormatPercent(plan.SavedAgainstNow()), Grams(plan.now_grams),
      FormatPercent(plan.MostThatCanBeSaved()));
  absl::StrAppend(
      &out, plan.exact ? "no plan of these jobs on these machines emits less\n"
                       : absl::StrFormat("within %s of the least possible\n",
                                         FormatPercent(plan.Gap(), 2)));
  if (!problem.price_per_kwh.empty()) {
    absl::StrAppendFormat(&out, "cost: %.4g %s, starting now %.4g\n", plan.cost,
                          currency, plan.now_cost);
  }
  if (jobs.from_history > 0) {
    absl::StrAppend(
        &out, "power or duration from the history: ", Jobs(jobs.from_history),
        ", estimated where it was not metered\n");
  }
  if (plan.unplaced > 0) absl::StrAppend(&out, UnplacedText(plan), "\n");
  return out;
}

absl::Status CheckPlanFlags(const CarbonPlanCommand& command) {
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.out != "-", "out", command.out,
      "a path: the standard output has the table of the plan"));
  const bool is_named = absl::EndsWith(command.out, ".html") ||
                        absl::EndsWith(command.out, ".htm") ||
                        absl::EndsWith(command.out, ".json") ||
                        absl::EndsWith(command.out, ".pdf");
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.out.empty() || is_named || IsStream(command.out), "out",
      command.out, "a name that ends in .html, .json or .pdf"));
  OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
  return RequireFlag(
      command.jobs, "jobs_file",
      "a CSV of id,watts,hours,release,deadline,preemptible[,session]");
}

absl::Status CheckWatts(const PowerModel& model, const JobsFile& jobs) {
  if (model.device_watts > 0 && jobs.from_history == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --watts=", model.device_watts,
                     " has no effect: each job states its watts and hours; "
                     "next: leave it out"));
  }
  return CheckWattsAreTaken(model, jobs.of_device_watts);
}

absl::Status WritePlan(const CarbonPlanCommand& command,
                       const PlanProblem& problem, const Plan& plan,
                       const PlanFacts& facts) {
  if (absl::EndsWith(command.out, ".json")) {
    return WriteOutput(command.out, PlanJson(problem, plan, facts));
  }
  std::string page = PlanPage(problem, plan, facts);
  if (absl::EndsWith(command.out, ".pdf")) {
    if (command.print == nullptr) {
      return absl::UnimplementedError("unsupported here: nothing prints PDFs");
    }
    OPTRAIL_ASSIGN_OR_RETURN(page, command.print(page));
  }
  return WriteOutput(command.out, page);
}

}  // namespace

absl::StatusOr<ExitCode> RunCarbonPlan(const CarbonPlanCommand& command,
                                       std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckPlanFlags(command));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  OPTRAIL_ASSIGN_OR_RETURN(const Curves curves, ReadCurves(command.grid));
  OPTRAIL_ASSIGN_OR_RETURN(
      const JobsFile jobs,
      ReadJobs(command.jobs, history, command.model,
               curves.intensity.HourPhaseS(command.grid.zone)));
  OPTRAIL_RETURN_IF_ERROR(CheckWatts(command.model, jobs));
  PlanProblem problem;
  problem.jobs = jobs.jobs;
  problem.machines = command.machines;
  problem.most_cost = command.most_cost;
  if (!command.slacks.empty()) {
    return PrintCurve(command, jobs, curves, problem, out);
  }
  OPTRAIL_RETURN_IF_ERROR(SetHourly(curves, command.grid.zone,
                                    jobs.start_unix_s, jobs.hours, &problem));
  OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(problem));
  Table table({{"job", Align::kLeft, "", Clip::kFold},
               {"energy", Align::kRight, "kwh"},
               {"emitted", Align::kRight, "gco2e"},
               {"cost", Align::kRight, "cost"},
               {"hours", Align::kLeft, "", Clip::kFold},
               {"estimated", Align::kLeft}});
  for (size_t i = 0; i < plan.jobs.size(); ++i) {
    const PlacedJob& placed = plan.jobs[i];
    const PlanJob& job = problem.jobs[i];
    const double kwh = job.watts / 1000 * job.hours;
    table.AddRow(
        {job.id, Cell::Number(kwh, absl::StrFormat("%.4g kWh", kwh)),
         placed.hours.empty() ? Cell::None()
                              : Cell::Number(placed.grams, Grams(placed.grams)),
         problem.price_per_kwh.empty() || placed.hours.empty()
             ? Cell::None()
             : Cell::Number(placed.cost, absl::StrFormat("%.4g", placed.cost)),
         placed.hours.empty()
             ? Cell("no place")
             : Cell(HoursText(placed.hours, jobs.start_unix_s)),
         jobs.stated[i].estimated ? "estimated" : ""});
  }
  tracker::PrintTable(table, command.common.format, out);
  if (curves.intensity.kind == kMadeUpKind) {
    std::cerr << "note: made-up data: the intensity is no grid's\n";
  }
  if (tracker::IsForPeople(command.common.format)) {
    out << WrapProse(PlanSummary(plan, problem, jobs,
                                 curves.tariff ? curves.tariff->kind : ""),
                     TerminalWidth());
  }
  if (!command.out.empty()) {
    PlanFacts facts;
    facts.start_unix_s = jobs.start_unix_s;
    facts.zone = command.grid.zone;
    facts.intensity_kind = curves.intensity.kind;
    if (curves.tariff) facts.currency = curves.tariff->kind;
    facts.stated = jobs.stated;
    OPTRAIL_RETURN_IF_ERROR(WritePlan(command, problem, plan, facts));
    if (!IsStream(command.out)) std::cerr << "wrote " << command.out << "\n";
  }
  return plan.unplaced > 0 ? ExitCode::kCheckFailed : ExitCode::kOk;
}

}  // namespace optrail::carbon
