#ifndef OPTRAIL_TRACKER_COMMANDS_H_
#define OPTRAIL_TRACKER_COMMANDS_H_

// The tracker's commands as functions, for the command line to fill from flags.
// Each writes its result to `out` in options.format and returns the process'
// exit code: 0 fine, 1 a regression or a failed check, 3 not enough data. A
// Status is wrong use or bad input: exit 2. What only people need to know goes
// to standard error.
//
//   CompareCommand options;
//   options.common.history = ".optrail/history";
//   options.a = "latest~1"; options.b = "latest";
//   absl::StatusOr<int> exit_code = RunCompare(options, std::cout);

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tracker/command_support.h"

namespace optrail::tracker {

struct ImportCommand {
  CommonOptions common;
  std::vector<std::string> files;
  std::string file_format;  // "" recognises it
  std::string hardware_id;
  std::string suite;
  std::string prefix;  // of the benchmarks' names
  std::string commit;  // any revision git knows, or a full hash; "": HEAD
  std::string branch;  // "": as git says
  bool files_are_processes = false;
  bool dry_run = false;  // parse and print, record nothing
};
absl::StatusOr<int> RunImport(const ImportCommand& options, std::ostream& out);

struct LogCommand {
  CommonOptions common;
  std::string what = "runs";  // "runs", "sessions", "series"
  std::string suite, hardware_id, branch, commit;
  std::string filter;  // RE2 on tasks or series; not for runs
  int limit = 20;      // newest; 0: all
};
absl::StatusOr<int> RunLog(const LogCommand& options, std::ostream& out);

struct ShowCommand {
  CommonOptions common;
  // A run or commit (History::Resolve), a session id, or the canonical text of
  // a series.
  std::string what = "latest";
  std::string filter;  // RE2 on benchmark names
};
absl::StatusOr<int> RunShow(const ShowCommand& options, std::ostream& out);

struct CompareCommand {
  CommonOptions common;
  // Runs or commits in the history, or files of another tool's results. Several
  // comma-separated files are processes of one run.
  std::string a = "latest~1";
  std::string b = "latest";
  std::string filter;           // RE2 on benchmark names
  std::string metric = "time";  // RE2
  double min_effect = .03;
  double detect_effect = .05;
  double false_alarm_rate = .01;
  bool only_changes = false;
};
// Exit code 0 whatever it finds; 3 if it can tell for no benchmark.
absl::StatusOr<int> RunCompare(const CompareCommand& options,
                               std::ostream& out);

struct GateCommand {
  CommonOptions common;
  std::string policy;  // file; "": the default policy
  std::string candidate = "latest";
  std::string baseline;  // ParseBaseline; "": the policy's
  std::string suite;
  std::string verdict_out;   // JSON, written atomically
  std::string markdown_out;  // for the pull request, written atomically
  // For a script: the number of processes to add on each side, a line feed, and
  // the benchmarks as --benchmark_filter; empty if more would not help.
  std::string remeasure_out;
  int looks = 1;  // see GateOptions
};
absl::StatusOr<int> RunGate(const GateCommand& options, std::ostream& out);

struct HistoryVerifyCommand {
  CommonOptions common;
};
// Exit code 1 if a file is damaged; each is named.
absl::StatusOr<int> RunHistoryVerify(const HistoryVerifyCommand& options,
                                     std::ostream& out);

struct HistoryMergeCommand {
  CommonOptions common;
  std::string from;
};
absl::StatusOr<int> RunHistoryMerge(const HistoryMergeCommand& options,
                                    std::ostream& out);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMANDS_H_
