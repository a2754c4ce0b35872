// `optrail carbon footprint`: see carbon_command.h.

#include <algorithm>
#include <iostream>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "carbon/carbon_command.h"
#include "carbon/command_parts.h"
#include "carbon/energy_of.h"
#include "carbon/grid.h"
#include "tracker/history/history.h"
#include "tracker/proto/made_up.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_clock.h"

namespace optrail::carbon {
namespace {

// Print is what the table of footprints shows of one record.
struct Print {
  std::string what, id;
  Energy energy;
  int64_t from_unix_ns = 0, to_unix_ns = 0;
  double times = 1;  // how often a year
  bool made_up = false;
};

absl::StatusOr<std::vector<Print>> PrintsOf(
    const CarbonFootprintCommand& command, const tracker::History& history,
    const std::string& id) {
  std::vector<Print> prints;
  if (const auto session = history.ReadSession(id); session.ok()) {
    prints.push_back({"session", id, EnergyOfSession(*session, command.model),
                      session->started_unix_ns(),
                      session->started_unix_ns() + tuning::ClockNs(*session)});
    return prints;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo info, history.FindRun(id));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Run run, history.ReadRun(info.id()));
  const int64_t from = run.started_unix_ns(), to = from + run.elapsed_ns();
  prints.push_back(
      {"run", info.id(), EnergyOfRun(run, command.model), from, to});
  prints.back().made_up = run.source() == tracker::kMadeUpSource;
  if (command.calls_per_year <= 0) return prints;
  for (const proto::BenchmarkResult& result : run.results()) {
    if (result.outcome() != proto::OK) continue;
    double calls = run.workload_layers().empty() ? 1 : 0;
    for (const proto::WorkloadLayer& layer : run.workload_layers()) {
      if (layer.operator_name() == result.key().operator_name() &&
          layer.shape() == tuning::CanonicalText(result.key().shape())) {
        calls += std::max(layer.count(), 1);
      }
    }
    if (calls == 0) continue;
    prints.push_back({"a year of calls", tracker::DisplayName(result.key()),
                      EnergyOfCall(result, run.hardware(), command.model), from,
                      to, calls * command.calls_per_year});
  }
  return prints;
}

}  // namespace

absl::StatusOr<ExitCode> RunCarbonFootprint(
    const CarbonFootprintCommand& command, std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
  OPTRAIL_ASSIGN_OR_RETURN(const Grid grid,
                           ReadIntensity(command.grid.intensity));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  absl::optional<WallMeter> wall;
  if (!command.wall_meter.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(wall, WallMeter::Read(command.wall_meter));
  }
  Table table({{"what"},
               {"of", Align::kLeft, "", Clip::kFold},
               {"energy", Align::kRight, "joules"},
               {"intensity", Align::kRight, "gco2e_per_kwh"},
               {"emitted", Align::kRight, "gco2e"},
               {"estimated", Align::kLeft},
               {"basis", Align::kLeft, "", Clip::kFold}});
  bool unknown = false, of_watts = false, made_up = false;
  for (const std::string& record : command.records) {
    OPTRAIL_ASSIGN_OR_RETURN(std::vector<Print> prints,
                             PrintsOf(command, history, record));
    for (Print& print : prints) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const double intensity,
          grid.Mean(command.grid.zone, print.from_unix_ns / kNsPerS,
                    print.to_unix_ns / kNsPerS));
      if (wall && print.times == 1 && print.to_unix_ns > print.from_unix_ns) {
        OPTRAIL_ASSIGN_OR_RETURN(
            print.energy.joules,
            wall->Joules(print.from_unix_ns, print.to_unix_ns));
        print.energy.known = true;
        print.energy.estimated = false;
        print.energy.basis =
            absl::StrCat("metered at the wall: ", FileName(command.wall_meter));
        print.energy.of_device_watts = false;
      }
      of_watts |= print.energy.of_device_watts;
      unknown |= !print.energy.known;
      made_up |= print.made_up;
      const double joules = print.energy.joules * print.times;
      const double grams = joules / kJoulesPerKwh * intensity;
      table.AddRow(
          {print.what, print.id,
           print.energy.known ? Cell::Number(joules, Joules(joules))
                              : Cell::None(),
           Cell::Number(intensity, absl::StrFormat("%.4g g/kWh", intensity)),
           print.energy.known ? Cell::Number(grams, Grams(grams))
                              : Cell::None(),
           !print.energy.known      ? "unknown"
           : print.energy.estimated ? "estimated"
                                    : "metered",
           print.energy.known
               ? absl::StrCat(grid.kind == kMadeUpKind || print.made_up
                                  ? "made up; "
                                  : "",
                              print.energy.basis)
           : print.energy.seconds <= 0 ? "it has no duration, as what is "
                                         "imported without one"
                                       : "not metered, and no model of such "
                                         "hardware; next: --watts"});
    }
  }
  OPTRAIL_RETURN_IF_ERROR(CheckWattsAreTaken(command.model, of_watts));
  tracker::PrintTable(table, command.common.format, out);
  if (grid.kind == kMadeUpKind || made_up) {
    std::cerr << "note: made-up data: the "
              << (made_up ? "runs were not measured" : "intensity is no grid's")
              << "\n";
  }
  return unknown ? ExitCode::kNotEnoughData : ExitCode::kOk;
}

}  // namespace optrail::carbon
