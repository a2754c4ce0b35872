// `optrail import`: results of other tools into the history.

#include <iostream>

#include "absl/flags/flag.h"
#include "base/status_macros.h"
#include "cli/ab.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/import/import_command.h"

ABSL_FLAG(std::string, file_format, "",
          "Format of the imported files; by default it is recognised. Of "
          "history export:\ncsv, csvw or openmetrics.");
ABSL_FLAG(std::string, prefix, "",
          "Put before the names of imported benchmarks, such as strings/: "
          "benchmarks of two programs that have the same name share a series "
          "otherwise.");
ABSL_FLAG(bool, again, false,
          "Import files although the history holds the same ones.");
ABSL_FLAG(bool, files_are_processes, false,
          "Each file holds one process of the same run, not a run of its own.");

namespace optrail::cli {

suites::Command ImportCommand() {
  suites::Command command;
  command.name = "import";
  command.arguments = "FILE...";
  command.summary = "Adds results of other tools to the history.";
  command.details = HelpText("import");
  command.flags = {"history",  "format", "file_format",
                   "hardware", "suite",  "prefix",
                   "commit",   "branch", "files_are_processes",
                   "again",    "dry_run"};
  command.meanings = {
      {"hardware",
       "Id of the hardware to record; by default this machine's, or one such "
       "as imported-8c where the file tells of another machine."},
      {"suite", "Name of the suite; by default what made the results."},
      {"commit",
       "Commit that was measured (any name that git knows); by "
       "default HEAD."},
      {"branch", "Branch to record, by default git's."},
      {"dry_run", "Print what would be imported, change nothing."}};
  command.min_arguments = 1;
  command.max_arguments = -1;
  command.run =
      [](const std::vector<std::string>& files) -> absl::StatusOr<int> {
    tracker::ImportCommand options;
    options.common = TrackerOptions();
    OPTRAIL_ASSIGN_OR_RETURN(options.machine, ThisMachine());
    for (const std::string& file : files) {
      options.files.push_back(UserPath(file));
    }
    options.file_format = absl::GetFlag(FLAGS_file_format);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.suite = absl::GetFlag(FLAGS_suite);
    options.prefix = absl::GetFlag(FLAGS_prefix);
    options.commit = absl::GetFlag(FLAGS_commit);
    options.branch = absl::GetFlag(FLAGS_branch);
    options.files_are_processes = absl::GetFlag(FLAGS_files_are_processes);
    options.again = absl::GetFlag(FLAGS_again);
    options.dry_run = absl::GetFlag(FLAGS_dry_run);
    return tracker::RunImport(options, std::cout);
  };
  return command;
}

}  // namespace optrail::cli
