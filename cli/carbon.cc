// `optrail carbon`: grams of what runs, hours for jobs, certificates.

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "carbon/carbon_command.h"
#include "carbon/grid.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "reports/pdf.h"

ABSL_FLAG(std::string, intensity, "",
          "Path of a CSV: zone,start,end,gco2e_per_kwh,kind (average or "
          "marginal).");
ABSL_FLAG(std::string, tariff, "",
          "Path of a CSV: zone,start,end,price_per_kwh,currency.");
ABSL_FLAG(std::string, zone, "", "Zone of the grid, as the CSV names it.");
ABSL_FLAG(std::string, jobs_file, "",
          "Path of a CSV: id,watts,hours,release,deadline,preemptible, and "
          "optionally session, a record whose power and duration they are.");
ABSL_FLAG(int32_t, machines, 1,
          "Number of machines; each runs one job at a time.");
ABSL_FLAG(double, max_cost, -1,
          "Most that the jobs of a plan may cost by --tariff; -1: no limit.");
ABSL_FLAG(std::vector<std::string>, slack, {},
          "Prints what deadlines that long after a job's earliest end save, "
          "such as 0h,6h,24h,168h, in place of the plan.");
ABSL_FLAG(double, watts, 0,
          "Power of a device that has no meter and no model; 0: not known.");
ABSL_FLAG(double, idle_watts_per_core, 0.74,
          "Watts of an idle core, for processors without a meter.");
ABSL_FLAG(double, busy_watts_per_core, 3.5,
          "Watts of a busy core, for processors without a meter.");
ABSL_FLAG(double, calls_per_year, 0,
          "Adds what so many calls of each benchmark, or runs of the workload, "
          "emit in a year.");
ABSL_FLAG(std::string, wall_meter, "",
          "Path of a CSV of a meter at the wall: time,watts.");
ABSL_FLAG(double, embodied_kg, 0,
          "What making the hardware emitted, kg CO2e; 0: left out.");
ABSL_FLAG(double, lifetime_hours, 35040,
          "Hours of use over which --embodied_kg is spread; 35040 is four "
          "years.");
ABSL_FLAG(std::string, embodied_source, "",
          "Where --embodied_kg comes from, for the certificate.");
ABSL_FLAG(std::string, intensity_source, "",
          "Where --intensity comes from, for the certificate; by default the "
          "file's name.");
ABSL_FLAG(double, pue, 1, "Power of the building over that of its machines.");
ABSL_FLAG(std::string, key, "",
          "Path of an Ed25519 key (PEM): a private one signs, a public or "
          "private one is what a certificate has to be signed by.");
ABSL_FLAG(std::string, start, "2026-01-01T00:00:00Z",
          "First hour of the example.");
ABSL_FLAG(int32_t, hours, 8760, "Hours of the example.");

namespace optrail::cli {
namespace {

absl::Status CheckNumber(absl::string_view flag, double value, double least,
                         double most) {
  return tracker::CheckFlag(
      value >= least && value <= most, flag, value,
      absl::StrCat("a number from ", least, " to ", most));
}

carbon::GridOptions GridFromFlags() {
  carbon::GridOptions grid;
  grid.intensity = UserPath(absl::GetFlag(FLAGS_intensity));
  grid.tariff = UserPath(absl::GetFlag(FLAGS_tariff));
  grid.zone = absl::GetFlag(FLAGS_zone);
  return grid;
}

absl::StatusOr<carbon::PowerModel> ModelFromFlags() {
  carbon::PowerModel model;
  model.device_watts = absl::GetFlag(FLAGS_watts);
  model.idle_watts_per_core = absl::GetFlag(FLAGS_idle_watts_per_core);
  model.busy_watts_per_core = absl::GetFlag(FLAGS_busy_watts_per_core);
  OPTRAIL_RETURN_IF_ERROR(CheckNumber("watts", model.device_watts, 0, 1e6));
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("idle_watts_per_core", model.idle_watts_per_core, 0, 1e4));
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("busy_watts_per_core", model.busy_watts_per_core, 0, 1e4));
  return model;
}

absl::StatusOr<int> Plan(const std::vector<std::string>&) {
  carbon::CarbonPlanCommand command;
  command.common = TrackerOptions();
  command.grid = GridFromFlags();
  OPTRAIL_ASSIGN_OR_RETURN(command.model, ModelFromFlags());
  command.jobs = UserPath(absl::GetFlag(FLAGS_jobs_file));
  command.machines = absl::GetFlag(FLAGS_machines);
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("machines", command.machines, 1, 1'000'000));
  if (const double most = absl::GetFlag(FLAGS_max_cost); most != -1) {
    OPTRAIL_RETURN_IF_ERROR(CheckNumber("max_cost", most, 0, 1e15));
    command.most_cost = most;
  }
  for (const std::string& text : absl::GetFlag(FLAGS_slack)) {
    absl::Duration slack;
    if (!absl::ParseDuration(text, &slack) || slack < absl::ZeroDuration() ||
        slack > absl::Hours(24 * 366) ||
        slack != absl::Trunc(slack, absl::Hours(1))) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --slack=", text,
                       ": expected whole hours from 0h to 8784h, such as 24h"));
    }
    command.slacks.push_back(slack);
  }
  command.out = UserPath(absl::GetFlag(FLAGS_out));
  command.print = reports::PrintToPdf;
  if (!command.out.empty() && !command.slacks.empty()) {
    return absl::InvalidArgumentError(
        "flag --out: a page is of one plan, and --slack makes several; "
        "expected one of the two");
  }
  return CodeOf(carbon::RunCarbonPlan(command, std::cout));
}

absl::StatusOr<int> Footprint(const std::vector<std::string>& records) {
  carbon::CarbonFootprintCommand command;
  command.common = TrackerOptions();
  command.grid = GridFromFlags();
  OPTRAIL_ASSIGN_OR_RETURN(command.model, ModelFromFlags());
  command.records = records;
  command.calls_per_year = absl::GetFlag(FLAGS_calls_per_year);
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("calls_per_year", command.calls_per_year, 0, 1e18));
  command.wall_meter = UserPath(absl::GetFlag(FLAGS_wall_meter));
  return CodeOf(carbon::RunCarbonFootprint(command, std::cout));
}

absl::StatusOr<int> Certify(const std::vector<std::string>& runs) {
  carbon::CarbonCertifyCommand command;
  command.common = TrackerOptions();
  command.grid = GridFromFlags();
  command.inputs.base = runs[0];
  command.inputs.candidate = runs[1];
  command.inputs.filter = absl::GetFlag(FLAGS_filter);
  OPTRAIL_ASSIGN_OR_RETURN(command.inputs.model, ModelFromFlags());
  command.inputs.embodied_grams = 1000 * absl::GetFlag(FLAGS_embodied_kg);
  command.inputs.embodied_hours = absl::GetFlag(FLAGS_lifetime_hours);
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("embodied_kg", absl::GetFlag(FLAGS_embodied_kg), 0, 1e9));
  OPTRAIL_RETURN_IF_ERROR(
      CheckNumber("lifetime_hours", command.inputs.embodied_hours, 1, 1e6));
  command.inputs.embodied_source = absl::GetFlag(FLAGS_embodied_source);
  if (command.inputs.embodied_grams > 0 &&
      command.inputs.embodied_source.empty()) {
    return absl::InvalidArgumentError(
        "flag --embodied_source is missing: a certificate says where "
        "--embodied_kg comes from");
  }
  command.inputs.intensity_source = absl::GetFlag(FLAGS_intensity_source);
  command.inputs.pue = absl::GetFlag(FLAGS_pue);
  OPTRAIL_RETURN_IF_ERROR(CheckNumber("pue", command.inputs.pue, 1, 10));
  command.key = UserPath(absl::GetFlag(FLAGS_key));
  command.out = UserPath(absl::GetFlag(FLAGS_out));
  return CodeOf(carbon::RunCarbonCertify(command, std::cout));
}

absl::StatusOr<int> Verify(const std::vector<std::string>& arguments) {
  carbon::CarbonVerifyCommand command;
  command.common = TrackerOptions();
  command.certificate = UserPath(arguments[0]);
  command.key = UserPath(absl::GetFlag(FLAGS_key));
  return CodeOf(carbon::RunCarbonVerify(command, std::cout));
}

absl::StatusOr<int> Indices(const std::vector<std::string>&) {
  carbon::CarbonIndicesCommand command;
  command.common = TrackerOptions();
  OPTRAIL_ASSIGN_OR_RETURN(command.model, ModelFromFlags());
  return CodeOf(carbon::RunCarbonIndices(command, std::cout));
}

absl::StatusOr<int> Example(const std::vector<std::string>&) {
  const std::string zone = absl::GetFlag(FLAGS_zone);
  const int hours = absl::GetFlag(FLAGS_hours);
  OPTRAIL_RETURN_IF_ERROR(CheckNumber("hours", hours, 1, 100'000));
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t start,
                           carbon::ParseTime(absl::GetFlag(FLAGS_start)));
  const std::string csv = carbon::ExampleIntensity(
      zone.empty() ? "EXAMPLE" : zone, start, hours, absl::GetFlag(FLAGS_seed));
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty() || out == "-") {
    std::cout << csv;
    return 0;
  }
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(UserPath(out), csv));
  return 0;
}

std::vector<suites::Command> Parts() {
  const std::vector<std::string> model = {
      "history", "watts", "idle_watts_per_core", "busy_watts_per_core"};
  const std::vector<std::string> grid =
      Together({model, {"intensity", "zone"}});
  return {
      Part("plan", "", "Places jobs into the hours that emit least.",
           Together({grid,
                     {"jobs_file", "tariff", "machines", "max_cost", "slack",
                      "out", "format"}}),
           0, 0, Plan),
      Part("footprint", "ID...", "Says what runs and sessions emitted.",
           Together({grid, {"calls_per_year", "wall_meter", "format"}}), 1, -1,
           Footprint),
      Part("certify", "A B", "Compares two runs by SCI (ISO/IEC 21031).",
           Together(
               {grid,
                {"filter", "embodied_kg", "lifetime_hours", "embodied_source",
                 "intensity_source", "pue", "key", "out"}}),
           2, 2, Certify),
      Part("verify", "FILE", "Computes a certificate again from the history.",
           {"history", "key"}, 1, 1, Verify),
      Part("indices", "", "Tells what tuning is worth.",
           Together({model, {"format"}}), 0, 0, Indices),
      Part("example", "", "Writes made-up intensities.",
           {"zone", "start", "hours", "seed", "out"}, 0, 0, Example)};
}

}  // namespace

suites::Command CarbonCommand() {
  suites::Command command;
  command.name = "carbon";
  command.arguments = "plan|footprint|certify|verify|indices|example";
  command.summary = "Plans jobs by carbon; footprints; certificates.";
  command.details = HelpText("carbon");
  command.meanings = {
      {"out",
       "plan: page to write, or data (.json) or a PDF, as the name ends. "
       "certify: a copy of the JSON, with a page beside it; -: the JSON "
       "alone, on the standard output. example: CSV file; by default standard "
       "output."},
      {"seed", "Seed of the made-up intensities."}};
  command.parts = Parts();
  return command;
}

}  // namespace optrail::cli
