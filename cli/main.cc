// The command line: one binary for everything that Optrail does.

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

namespace {

// What is said of a flag that stands before any command.
int RefuseFlag(absl::string_view flag) {
  std::cerr << "optrail: unknown flag " << flag.substr(0, flag.find('='));
  if (absl::StartsWith(flag, "--v")) {
    std::cerr << "; did you mean --version?";
  } else {
    std::cerr << " before a command; flags come after it: optrail COMMAND "
              << flag;
  }
  std::cerr << "\nnext: optrail help\n";
  return optrail::ToInt(optrail::ExitCode::kBadInput);
}

}  // namespace

int main(int argc, char** argv) {
  namespace cli = optrail::cli;
  namespace suites = optrail::suites;
  if (suites::IsWorker(argc, argv)) return suites::RunWorker(argc, argv);
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--version" || first == "version") {
    std::cout << cli::VersionText() << "\n";
    return 0;
  }
  if (absl::StartsWith(first, "-") && first != "--help" && first != "-help" &&
      first != "-h" && first != "--helpfull") {
    return RefuseFlag(first);
  }
  const std::vector<suites::CommandGroup> groups = {
      {"The machine", {cli::DoctorCommand()}},
      {"Tune",
       {cli::TuneCommand(), cli::CompileCommand(), cli::StoreCommand(),
        cli::ObserveCommand(), cli::CoverageCommand(),
        cli::ConvergenceCommand(), cli::ReplayCommand(),
        suites::WorkerCommand()}},
      {"Measure",
       {suites::BenchCommand(""), cli::SuiteCommand(), cli::ImportCommand(),
        cli::WatchCommand(), cli::GraphCommand()}},
      {"Compare",
       {cli::CompareCommand(), cli::GateCommand(), cli::BisectCommand(),
        cli::DiagnoseCommand()}},
      {"Follow",
       {cli::ChangesCommand(), cli::AckCommand(), cli::ExpectCommand(),
        cli::MuteCommand(), cli::NoteCommand(), cli::TriageCommand(),
        cli::DetectCommand(), cli::ReportCommand(), cli::LogCommand(),
        cli::ShowCommand(), cli::TraceCommand(), cli::HistoryCommand(),
        cli::SchemaCommand()}},
      {"Many machines", {cli::FleetCommand()}},
      {"Besides",
       {cli::DemoCommand(), cli::MemoryCommand(), cli::CarbonCommand()}},
  };
  return suites::RunCommandLine(
      "optrail",
      "Optrail tunes, benchmarks and watches compute operators.\n"
      "Exit codes: 0 fine, 1 a check failed, 2 wrong use or bad input, 3 not "
      "enough\n"
      "data to tell. --version says which build this is.",
      groups, argc, argv);
}
