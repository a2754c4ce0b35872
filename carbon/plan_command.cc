// `optrail carbon plan`: see carbon_command.h.

#include <algorithm>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/status_macros.h"
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

absl::Status SetHourly(const GridOptions& grid, const JobsFile& jobs, int hours,
                       PlanProblem* problem) {
  OPTRAIL_ASSIGN_OR_RETURN(const Grid intensity, ReadIntensity(grid.intensity));
  OPTRAIL_ASSIGN_OR_RETURN(
      problem->grams_per_kwh,
      intensity.Hourly(grid.zone, jobs.start_unix_s, hours));
  if (grid.tariff.empty()) return absl::OkStatus();
  OPTRAIL_ASSIGN_OR_RETURN(const Grid tariff, ReadTariff(grid.tariff));
  OPTRAIL_ASSIGN_OR_RETURN(problem->price_per_kwh,
                           tariff.Hourly(grid.zone, jobs.start_unix_s, hours));
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> PrintCurve(const CarbonPlanCommand& command,
                                    const JobsFile& jobs,
                                    const PlanProblem& problem,
                                    std::ostream& out) {
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
      job.deadline = std::min(job.release + job.hours + hours, jobs.hours);
      job.deadline = std::max(job.deadline, job.release + job.hours);
    }
    OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(one));
    table.AddRow({Cell::Number(hours, absl::StrCat(hours, "h")),
                  Cell::Number(plan.grams, Grams(plan.grams)),
                  Cell::Number(plan.SavedAgainstNow(),
                               FormatPercent(plan.SavedAgainstNow())),
                  Cell::Number(plan.MostThatCanBeSaved(),
                               FormatPercent(plan.MostThatCanBeSaved())),
                  Cell::Number(plan.Gap(), FormatPercent(plan.Gap(), 2)),
                  Cell::Integer(plan.unplaced)});
  }
  tracker::PrintTable(table, command.common.format, out);
  return ExitCode::kOk;
}

void PrintPlanSummary(const Plan& plan, const PlanProblem& problem,
                      const JobsFile& jobs, std::ostream& out) {
  const auto placed = static_cast<int64_t>(problem.jobs.size()) - plan.unplaced;
  out << absl::StrFormat(
      "%s, %.4g kWh: %s, %s less than starting now (%s); at most %s could be "
      "saved, with unlimited machines\n",
      placed == 1 ? "1 job" : absl::StrCat(placed, " jobs"), plan.kwh,
      Grams(plan.grams), FormatPercent(plan.SavedAgainstNow()),
      Grams(plan.now_grams), FormatPercent(plan.MostThatCanBeSaved()));
  out << (plan.exact ? "no plan of these machines emits less\n"
                     : absl::StrFormat("within %s of the least possible\n",
                                       FormatPercent(plan.Gap(), 2)));
  if (!problem.price_per_kwh.empty()) {
    out << absl::StrFormat("cost: %.4g, starting now %.4g\n", plan.cost,
                           plan.now_cost);
  }
  if (jobs.from_history > 0) {
    out << "power or duration from the history: " << jobs.from_history
        << " jobs, estimated where it was not metered\n";
  }
  if (plan.unplaced > 0) {
    out << plan.unplaced
        << " jobs found no place: expected more machines or later deadlines\n";
  }
}

absl::Status WritePlan(const CarbonPlanCommand& command,
                       const PlanProblem& problem, const Plan& plan,
                       const JobsFile& jobs) {
  const std::string& zone = command.grid.zone;
  if (absl::EndsWith(command.out, ".json")) {
    return WriteOutput(command.out,
                       PlanJson(problem, plan, jobs.start_unix_s, zone));
  }
  std::string page = PlanPage(problem, plan, jobs.start_unix_s, zone);
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
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.out != "-", "out", command.out,
      "a path: the standard output has the table of the plan"));
  OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
  OPTRAIL_RETURN_IF_ERROR(RequireFlag(
      command.jobs, "jobs_file",
      "a CSV of id,watts,hours,release,deadline,preemptible[,session]"));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  OPTRAIL_ASSIGN_OR_RETURN(const JobsFile jobs,
                           ReadJobs(command.jobs, history, command.model));
  PlanProblem problem;
  problem.jobs = jobs.jobs;
  problem.machines = command.machines;
  problem.most_cost = command.most_cost;
  OPTRAIL_RETURN_IF_ERROR(SetHourly(command.grid, jobs, jobs.hours, &problem));
  if (!command.slacks.empty()) return PrintCurve(command, jobs, problem, out);
  OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(problem));
  Table table({{"job", Align::kLeft, "", Clip::kFold},
               {"energy", Align::kRight, "kwh"},
               {"emitted", Align::kRight, "gco2e"},
               {"cost", Align::kRight, "cost"},
               {"hours", Align::kLeft, "", Clip::kFold}});
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
             : Cell(HoursText(placed.hours, jobs.start_unix_s))});
  }
  tracker::PrintTable(table, command.common.format, out);
  if (tracker::IsForPeople(command.common.format)) {
    PrintPlanSummary(plan, problem, jobs, out);
  }
  if (!command.out.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WritePlan(command, problem, plan, jobs));
  }
  return plan.unplaced > 0 ? ExitCode::kCheckFailed : ExitCode::kOk;
}

}  // namespace optrail::carbon
