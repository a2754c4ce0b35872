#include "carbon/carbon_command.h"

#include <algorithm>
#include <iostream>
#include <ostream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/status_macros.h"
#include "base/text/prose.h"
#include "base/text/table.h"
#include "base/text/units.h"
#include "carbon/certificate_folder.h"
#include "carbon/energy_of.h"
#include "carbon/grid.h"
#include "carbon/indices.h"
#include "carbon/jobs_csv.h"
#include "carbon/plan.h"
#include "carbon/plan_page.h"
#include "carbon/signature.h"
#include "tracker/history/record_store.h"
#include "tracker/series/series_key.h"
#include "tuning/proto/canonical.h"

namespace optrail::carbon {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr int64_t kNsPerS = 1'000'000'000;

std::string Grams(double grams) {
  if (grams >= 1e6) return absl::StrFormat("%.4g t", grams / 1e6);
  if (grams >= 1e3) return absl::StrFormat("%.4g kg", grams / 1e3);
  if (grams >= .1 || grams == 0) return absl::StrFormat("%.4g g", grams);
  if (grams >= 1e-3) return absl::StrFormat("%.4g mg", grams * 1e3);
  return absl::StrFormat("%.4g ug", grams * 1e6);
}

std::string Joules(double joules) {
  if (joules >= kJoulesPerKwh) {
    return absl::StrFormat("%.4g kWh", joules / kJoulesPerKwh);
  }
  return absl::StrFormat("%.4g J", joules);
}

absl::Status RequireFlag(const std::string& value, absl::string_view flag,
                         absl::string_view expected) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flag --", flag, " is missing: expected ", expected));
}

absl::Status CheckGrid(const GridOptions& grid) {
  OPTRAIL_RETURN_IF_ERROR(
      RequireFlag(grid.intensity, "intensity",
                  "a CSV of zone,start,end,gco2e_per_kwh,kind; next: optrail "
                  "carbon example"));
  return RequireFlag(grid.zone, "zone", "a zone of that file");
}

absl::Status SetHourly(const GridOptions& grid, const Grid& intensity,
                       const JobsFile& jobs, int hours, PlanProblem* problem) {
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
                                    const JobsFile& jobs, const Grid& intensity,
                                    const PlanProblem& problem,
                                    std::ostream& out) {
  int earliest_end = 0;
  for (const PlanJob& job : problem.jobs) {
    earliest_end = std::max(earliest_end, job.release + job.hours);
  }
  bool one_places_all = false;
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
    OPTRAIL_RETURN_IF_ERROR(
        SetHourly(command.grid, intensity, jobs, earliest_end + hours, &one));
    OPTRAIL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(one));
    one_places_all |= plan.unplaced == 0;
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
  return one_places_all ? ExitCode::kOk : ExitCode::kCheckFailed;
}

std::string Jobs(int64_t count) {
  return count == 1 ? "1 job" : absl::StrCat(count, " jobs");
}

std::string PlanSummary(const Plan& plan, const PlanProblem& problem,
                        const JobsFile& jobs) {
  const auto placed = static_cast<int64_t>(problem.jobs.size()) - plan.unplaced;
  std::string out = absl::StrFormat(
      "%s, %.4g kWh: %s, %s less than starting now (%s); at most %s could be "
      "saved, with unlimited machines\n",
      Jobs(placed), plan.kwh, Grams(plan.grams),
      FormatPercent(plan.SavedAgainstNow()), Grams(plan.now_grams),
      FormatPercent(plan.MostThatCanBeSaved()));
  absl::StrAppend(
      &out, plan.exact ? "no plan of these machines emits less\n"
                       : absl::StrFormat("within %s of the least possible\n",
                                         FormatPercent(plan.Gap(), 2)));
  if (!problem.price_per_kwh.empty()) {
    absl::StrAppendFormat(&out, "cost: %.4g, starting now %.4g\n", plan.cost,
                          plan.now_cost);
  }
  if (jobs.from_history > 0) {
    absl::StrAppend(
        &out, "power or duration from the history: ", Jobs(jobs.from_history),
        ", estimated where it was not metered\n");
  }
  if (plan.unplaced > 0) {
    absl::StrAppend(&out, Jobs(plan.unplaced),
                    " found no place: expected more machines or later "
                    "deadlines\n");
  }
  return out;
}

absl::Status CheckPlanFlags(const CarbonPlanCommand& command) {
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.out != "-", "out", command.out,
      "a path: the standard output has the table of the plan"));
  const bool is_named = absl::EndsWith(command.out, ".html") ||
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

// Print is what the table of footprints shows of one record.
struct Print {
  std::string what, id;
  Energy energy;
  int64_t from_unix_ns = 0, to_unix_ns = 0;
  double times = 1;  // how often a year
};

absl::StatusOr<std::vector<Print>> PrintsOf(
    const CarbonFootprintCommand& command, const tracker::History& history,
    const std::string& id) {
  std::vector<Print> prints;
  if (const auto session = history.ReadSession(id); session.ok()) {
    prints.push_back({"session", id, EnergyOfSession(*session, command.model),
                      session->started_unix_ns(),
                      session->started_unix_ns() + session->elapsed_ns()});
    return prints;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo info, history.FindRun(id));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Run run, history.ReadRun(info.id()));
  const int64_t from = run.started_unix_ns(), to = from + run.elapsed_ns();
  prints.push_back(
      {"run", info.id(), EnergyOfRun(run, command.model), from, to});
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

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Writes the JSON, and the page beside it, and says where they are. The JSON
// goes alone into a stream; "-" is `out`.
absl::Status WriteCertificate(const std::string& path, const std::string& json,
                              const std::string& page, std::ostream& out) {
  if (path == "-") {
    out << json;
    return absl::OkStatus();
  }
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(path, json));
  if (IsStream(path)) return absl::OkStatus();
  OPTRAIL_RETURN_IF_ERROR(WriteOutput(PagePathOf(path), page));
  out << path << "\n" << PagePathOf(path) << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunCarbonPlan(const CarbonPlanCommand& command,
                                       std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckPlanFlags(command));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  OPTRAIL_ASSIGN_OR_RETURN(const Grid intensity,
                           ReadIntensity(command.grid.intensity));
  OPTRAIL_ASSIGN_OR_RETURN(const JobsFile jobs,
                           ReadJobs(command.jobs, history, command.model,
                                    intensity.HourPhaseS(command.grid.zone)));
  OPTRAIL_RETURN_IF_ERROR(CheckWatts(command.model, jobs));
  PlanProblem problem;
  problem.jobs = jobs.jobs;
  problem.machines = command.machines;
  problem.most_cost = command.most_cost;
  if (!command.slacks.empty()) {
    return PrintCurve(command, jobs, intensity, problem, out);
  }
  OPTRAIL_RETURN_IF_ERROR(
      SetHourly(command.grid, intensity, jobs, jobs.hours, &problem));
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
    out << WrapProse(PlanSummary(plan, problem, jobs), TerminalWidth());
  }
  if (!command.out.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WritePlan(command, problem, plan, jobs));
    if (!IsStream(command.out)) std::cerr << "wrote " << command.out << "\n";
  }
  return plan.unplaced > 0 ? ExitCode::kCheckFailed : ExitCode::kOk;
}

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
  bool unknown = false, of_watts = false;
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
      const double joules = print.energy.joules * print.times;
      const double grams = joules / kJoulesPerKwh * intensity;
      table.AddRow(
          {print.what, print.id,
           print.energy.known ? Cell::Number(joules, Joules(joules))
                              : Cell::None(),
           Cell::Number(intensity, absl::StrFormat("%.4g g/kWh", intensity)),
           print.energy.known ? Cell::Number(grams, Grams(grams))
                              : Cell::None(),
           print.energy.estimated ? "estimated" : "metered",
           print.energy.known          ? print.energy.basis
           : print.energy.seconds <= 0 ? "it has no duration, as what is "
                                         "imported without one"
                                       : "not metered, and no model of such "
                                         "hardware; next: --watts"});
    }
  }
  OPTRAIL_RETURN_IF_ERROR(CheckWattsAreTaken(command.model, of_watts));
  tracker::PrintTable(table, command.common.format, out);
  return unknown ? ExitCode::kNotEnoughData : ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunCarbonCertify(const CarbonCertifyCommand& command,
                                          std::ostream& out) {
  OPTRAIL_RETURN_IF_ERROR(CheckGrid(command.grid));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  CertificateInputs inputs = command.inputs;
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo base,
                           history.FindRun(inputs.base));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::RunInfo candidate,
                           history.FindRun(inputs.candidate));
  if (base.id() == candidate.id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("BASE and CANDIDATE are one run, ", base.id(),
                     "; next: optrail log runs"));
  }
  if (command.out.empty() && tracker::IsStoreUrl(history.dir())) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --out is missing: ", history.dir(),
                     " keeps records and no certificates; next: --out=c.json"));
  }
  if (absl::EndsWith(command.out, ".html") ||
      absl::EndsWith(command.out, ".pdf")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", command.out,
                     ": expected a name for the JSON, such as c.json; the page "
                     "goes beside it, as c.html, and prints"));
  }
  inputs.base = base.id();
  inputs.candidate = candidate.id();
  inputs.issued_unix_s = tracker::NowUnixNs(command.common) / kNsPerS;
  OPTRAIL_ASSIGN_OR_RETURN(const std::string csv,
                           ReadRegularFile(command.grid.intensity));
  OPTRAIL_ASSIGN_OR_RETURN(
      const Grid grid, ParseIntensity(csv, FileName(command.grid.intensity)));
  inputs.zone = command.grid.zone;
  inputs.intensity_kind = grid.kind;
  inputs.intensity_sha256 = Sha256Hex(csv);
  if (inputs.intensity_source.empty()) inputs.intensity_source = grid.path;
  for (const tracker::RunInfo* info : {&base, &candidate}) {
    if (!info->header.commit().dirty()) continue;
    std::cerr << "note: run " << info->id() << " is of "
              << tracker::CommitText(info->header.commit())
              << ", with changes that the commit lacks; the certificate says "
                 "so\n";
  }
  // Both sides at the hours of the candidate: what differs is the work.
  const int64_t phase_s = grid.HourPhaseS(inputs.zone);
  const auto hour_of = [&](int64_t unix_ns) {
    return (unix_ns / kNsPerS - phase_s) / kHourS * kHourS + phase_s;
  };
  const proto::Run& run = candidate.header;
  OPTRAIL_ASSIGN_OR_RETURN(
      inputs.intensity,
      grid.Between(inputs.zone, hour_of(run.started_unix_ns()),
                   hour_of(run.started_unix_ns() + run.elapsed_ns()) + kHourS));
  OPTRAIL_ASSIGN_OR_RETURN(std::string json, MakeCertificate(inputs, history));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> left_out,
                           LeftOut(inputs, history));
  if (!left_out.empty()) {
    constexpr size_t kNamed = 3;
    std::cerr << "note: left out, since one of the runs lacks or skipped "
              << (left_out.size() == 1 ? "it: " : "them: ")
              << EscapeForTerminal(JoinFirst(left_out, kNamed)) << "\n";
  }
  if (!command.key.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const std::string key,
                             ReadRegularFile(command.key));
    OPTRAIL_ASSIGN_OR_RETURN(json, SignCertificate(json, key));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const std::string page, CertificatePage(json));
  if (!command.out.empty()) {
    OPTRAIL_RETURN_IF_ERROR(WriteCertificate(command.out, json, page, out));
  }
  if (tracker::IsStoreUrl(history.dir())) return ExitCode::kOk;
  // The history keeps it in any case, so that its runs stay whole.
  OPTRAIL_ASSIGN_OR_RETURN(const std::string kept,
                           KeepCertificate(history.dir(), json));
  // Paths on the standard output would end up within the JSON.
  const bool is_piped = command.out == "-" || IsStream(command.out);
  (is_piped ? std::cerr : out) << kept << "\n" << PagePathOf(kept) << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunCarbonVerify(const CarbonVerifyCommand& command,
                                         std::ostream& out) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string json,
                           ReadRegularFile(command.certificate));
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(command.common));
  // Nothing is refused for want of a history to recompute it from.
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryFolder(history.dir()));
  std::string key;
  if (!command.key.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(key, ReadRegularFile(command.key));
    OPTRAIL_RETURN_IF_ERROR(PublicKeyOf(key).status());
  }
  const absl::Status verified = VerifyCertificate(json, history, key);
  if (absl::IsNotFound(verified)) {
    out << "can't tell: " << EscapeForTerminal(verified.message()) << "\n";
    return ExitCode::kNotEnoughData;
  }
  if (!verified.ok()) {
    out << "refused: " << EscapeForTerminal(verified.message()) << "\n";
    return ExitCode::kCheckFailed;
  }
  out << "verified: every number follows from " << history.dir()
      << (key.empty() ? "" : ", signed by that key") << "\n";
  return ExitCode::kOk;
}

namespace {

absl::StatusOr<MaturityEvidence> EvidenceOf(
    const tracker::History& history,
    const std::vector<proto::Session>& sessions) {
  MaturityEvidence evidence;
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::LoadedRuns loaded,
                           history.LoadRuns({}, 0));
  std::set<std::string> commits;
  for (const proto::Run& run : loaded.runs) {
    ++evidence.runs;
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
                           CheckCertificates(history));
  table.AddRow({"verified certificates", Cell::Integer(checked.verified), "",
                checked.LeftOut()});
  OPTRAIL_ASSIGN_OR_RETURN(MaturityEvidence evidence,
                           EvidenceOf(history, sessions));
  evidence.verified_certificates = checked.verified;
  const Maturity maturity = MaturityOf(evidence);
  table.AddRow({"maturity level", Cell::Integer(maturity.level), "",
                maturity.missing.empty()
                    ? maturity.name
                    : absl::StrCat(maturity.name, "; missing for the next: ",
                                   maturity.missing)});
  tracker::PrintTable(table, command.common.format, out);
  return ExitCode::kOk;
}

}  // namespace optrail::carbon
