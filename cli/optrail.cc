#include "cli/optrail.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "cli/flags.h"
#include "cli/suite.h"
#include "cli/version.h"
#include "suites/command/command_line.h"
#include "suites/command/commands.h"
#include "suites/worker/worker.h"

namespace optrail::cli {
namespace {

// Refuses a flag that stands before any command.
int RefuseFlag(absl::string_view flag) {
  std::cerr << "optrail: unknown flag " << flag.substr(0, flag.find('='));
  if (absl::StartsWith(flag, "--v")) {
    std::cerr << "; did you mean --version?";
  } else {
    std::cerr << " before a command; flags come after it: optrail COMMAND "
              << flag;
  }
  std::cerr << "\nnext: optrail help\n";
  return ToInt(ExitCode::kBadInput);
}

}  // namespace

int RunOptrail(int argc, char** argv) {
  if (suites::IsWorker(argc, argv)) return suites::RunWorker(argc, argv);
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--version" || first == "version") {
    std::cout << VersionText() << "\n";
    return suites::EndOutput("optrail", ToInt(ExitCode::kOk));
  }
  if (absl::StartsWith(first, "-") && first != "--help" && first != "-help" &&
      first != "-h" && first != "--helpfull") {
    return RefuseFlag(first);
  }
  const std::vector<suites::CommandGroup> groups = {
      {"The machine", {DoctorCommand()}},
      {"Tune",
       {TuneCommand(), PredictCommand(), CompileCommand(), ExportCommand(),
        StoreCommand(), ObserveCommand(), CoverageCommand(),
        ConvergenceCommand(), ReplayCommand(), suites::WorkerCommand()}},
      {"Measure",
       {suites::BenchCommand(""), SuiteCommand(), ImportCommand(),
        WatchCommand(), GraphCommand()}},
      {"Compare",
       {CompareCommand(), GateCommand(), BisectCommand(), DiagnoseCommand()}},
      {"Follow",
       {ChangesCommand(), AckCommand(), ExpectCommand(), MuteCommand(),
        NoteCommand(), TriageCommand(), DetectCommand(), ReportCommand(),
        LogCommand(), ShowCommand(), TraceCommand(), HistoryCommand(),
        SchemaCommand()}},
      {"Many machines", {FleetCommand()}},
      {"Other", {DemoCommand(), MemoryCommand(), CarbonCommand()}},
  };
  return suites::RunCommandLine(
      "optrail",
      "Optrail tunes, benchmarks and watches compute operators.\n"
      "Exit codes: 0 fine, 1 a check failed, 2 wrong use or bad input, 3 not "
      "enough\n"
      "data to tell. --version says which build this is.",
      groups, argc, argv);
}

}  // namespace optrail::cli
