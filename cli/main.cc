// The command line: one binary for everything that Optrail does.

#include <vector>

#include "cli/flags.h"
#include "suites/command_line.h"
#include "suites/commands.h"
#include "suites/worker.h"

int main(int argc, char** argv) {
  namespace cli = optrail::cli;
  namespace suites = optrail::suites;
  if (suites::IsWorker(argc, argv)) return suites::RunWorker();
  const std::vector<suites::Command> commands = {
      cli::DoctorCommand(), cli::TuneCommand(),        suites::BenchCommand(""),
      cli::SuiteCommand(),  cli::ImportCommand(),      cli::LogCommand(),
      cli::ShowCommand(),   cli::CompareCommand(),     cli::GateCommand(),
      cli::DetectCommand(), cli::ConvergenceCommand(), cli::ChangesCommand(),
      cli::BisectCommand(), cli::AckCommand(),         cli::ExpectCommand(),
      cli::MuteCommand(),   cli::NoteCommand(),        cli::TriageCommand(),
      cli::StoreCommand(),  cli::ReplayCommand(),      cli::HistoryCommand(),
      cli::ReportCommand(),
  };
  return suites::RunCommandLine(
      "optrail", "Optrail tunes, benchmarks and watches compute operators.",
      commands, argc, argv);
}
