#ifndef OPTRAIL_CLI_FLAGS_H_
#define OPTRAIL_CLI_FLAGS_H_

// Flags that several commands share, and the list of commands.

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "base/text/percentage.h"
#include "base/text/table.h"
#include "suites/command/command_line.h"
#include "tracker/command/command_support.h"

// Defined in suites/command/command_flags.cc.
ABSL_DECLARE_FLAG(std::string, history);
ABSL_DECLARE_FLAG(std::string, store);
ABSL_DECLARE_FLAG(optrail::OutputFormat, format);
ABSL_DECLARE_FLAG(std::string, op);
ABSL_DECLARE_FLAG(std::string, suite);
ABSL_DECLARE_FLAG(bool, quiet);
ABSL_DECLARE_FLAG(std::string, shape);
ABSL_DECLARE_FLAG(std::string, strategy);
ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(std::vector<std::string>, threads);
ABSL_DECLARE_FLAG(int64_t, trials);
ABSL_DECLARE_FLAG(absl::Duration, time_budget);
ABSL_DECLARE_FLAG(int64_t, patience);
ABSL_DECLARE_FLAG(int64_t, total_trials);
ABSL_DECLARE_FLAG(absl::Duration, total_time);
ABSL_DECLARE_FLAG(int32_t, finalists);
ABSL_DECLARE_FLAG(absl::Duration, proof_time);
ABSL_DECLARE_FLAG(bool, dry_run);

// Defined in cli/tune.cc.
ABSL_DECLARE_FLAG(absl::Duration, command_timeout);

// Shared by commands of this folder; defined in flags.cc.
ABSL_DECLARE_FLAG(std::string, out);
ABSL_DECLARE_FLAG(std::string, hardware);
ABSL_DECLARE_FLAG(std::string, commit);
ABSL_DECLARE_FLAG(std::string, branch);
ABSL_DECLARE_FLAG(std::string, filter);
ABSL_DECLARE_FLAG(std::string, metric);
ABSL_DECLARE_FLAG(optrail::Percentage, min_effect);
ABSL_DECLARE_FLAG(optrail::Percentage, false_alarm_rate);
ABSL_DECLARE_FLAG(std::string, policy);
ABSL_DECLARE_FLAG(std::string, markdown_out);

namespace optrail::cli {

// One of a command's parts, which takes at least `least` and at most `most`
// arguments (-1: any number).
suites::Command Part(
    std::string name, std::string arguments, std::string summary,
    std::vector<std::string> flags, int least, int most,
    std::function<absl::StatusOr<int>(const std::vector<std::string>&)> run);

// For functions that return an ExitCode.
absl::StatusOr<int> CodeOf(const absl::StatusOr<ExitCode>& code);

// The flags of several lists.
std::vector<std::string> Together(
    std::initializer_list<std::vector<std::string>> lists);

// What --history and --store stand for, and any path of the command line: a
// relative one starts where the user is, since `bazel run` starts the binary
// elsewhere. The defaults are in the workspace. No path and "-", which is a
// standard stream, stay as they are.
std::string HistoryFolder();
std::string StoreFolder();
std::string UserPath(const std::string& path);

// InvalidArgument that names the flag unless its value is at least `least`.
absl::Status CheckDuration(absl::string_view flag, absl::Duration value,
                           absl::Duration least);

// --command_memory_mib in bytes, 0 for no limit; defined in tune.cc.
absl::StatusOr<int64_t> CommandMemoryLimit();

// --history where it has to be the database of a fleet; defined in fleet.cc.
absl::StatusOr<std::string> FleetUrl();

// "table", "json", "csv" or "markdown".
std::string FormatName();

// --history and --format, for the tracker's commands.
tracker::CommonOptions TrackerOptions();

suites::Command DoctorCommand();
suites::Command TuneCommand();
suites::Command CompileCommand();
suites::Command ExportCommand();
suites::Command PredictCommand();
suites::Command StoreCommand();
suites::Command ObserveCommand();
suites::Command CoverageCommand();
suites::Command ReplayCommand();
suites::Command ImportCommand();
suites::Command LogCommand();
suites::Command ShowCommand();
suites::Command CompareCommand();
suites::Command GateCommand();
suites::Command DetectCommand();
suites::Command DiagnoseCommand();
suites::Command ConvergenceCommand();
suites::Command BisectCommand();
suites::Command AckCommand();
suites::Command ExpectCommand();
suites::Command CarbonCommand();
suites::Command GraphCommand();
suites::Command MemoryCommand();
suites::Command MuteCommand();
suites::Command NoteCommand();
suites::Command TraceCommand();
suites::Command TriageCommand();
suites::Command ChangesCommand();
suites::Command HistoryCommand();
suites::Command FleetCommand();
suites::Command ReportCommand();
suites::Command DemoCommand();
suites::Command WatchCommand();
suites::Command SchemaCommand();

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_FLAGS_H_
