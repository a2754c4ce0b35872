// Commands over the history: import, log, show, compare, gate, detect, history.

#include <iostream>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cli/ab.h"
#include "cli/flags.h"
#include "tracker/commands.h"
#include "tracker/index/index_commands.h"

ABSL_FLAG(std::string, out, "", "File to write, replaced atomically.");

ABSL_FLAG(std::string, file_format, "",
          "Format of the imported files; by default it is recognised.");
ABSL_FLAG(std::string, hardware, "",
          "Id of the hardware: of imported results, or to filter by.");
ABSL_FLAG(std::string, commit, "",
          "Commit (any name that git knows): of imported results, by default "
          "HEAD; or to filter by.");
ABSL_FLAG(std::string, branch, "",
          "Branch: of imported results, by default git's; or to filter by.");
ABSL_FLAG(std::string, prefix, "",
          "Put before the names of imported benchmarks, such as strings/: "
          "benchmarks of two programs that have the same name share a series "
          "otherwise.");
ABSL_FLAG(bool, files_are_processes, false,
          "Each file holds one process of the same run, not a run of its own.");
ABSL_FLAG(bool, dry_run, false, "Print what would be done, change nothing.");

ABSL_FLAG(std::string, filter, "",
          "Only benchmarks whose name this regular expression matches.");
ABSL_FLAG(int32_t, limit, 20, "How many to list, newest first; 0: all.");

ABSL_FLAG(std::string, metric, "time",
          "compare: metrics whose whole name this regular expression matches. "
          "tune --command: what it is judged by, NAME:min or NAME:max, with an "
          "optional limit (memory_mb:min<=32); several, separated by commas, "
          "are a search for the Pareto front.");
ABSL_FLAG(double, min_effect, .03,
          "Differences smaller than this fraction are no news.");
ABSL_FLAG(double, detect_effect, .05,
          "The effect that must be detectable before \"unchanged\" is said.");
ABSL_FLAG(double, false_alarm_rate, .01,
          "Chance that any benchmark is called changed when none is.");
ABSL_FLAG(bool, only_changes, false, "Leave unchanged benchmarks out.");

ABSL_FLAG(std::string, policy, "",
          "Policy file (docs/policy_format.md); by default every benchmark may "
          "slow down by at most 5%.");
ABSL_FLAG(std::string, candidate, "latest", "The run or commit to judge.");
ABSL_FLAG(std::string, baseline, "",
          "What to judge it by; by default what the policy says.");
ABSL_FLAG(std::string, verdict_out, "", "JSON file for the verdict.");
ABSL_FLAG(std::string, markdown_out, "", "Markdown file for the pull request.");
ABSL_FLAG(std::string, remeasure_out, "",
          "File for a script that measures again: the number of processes to "
          "add on\neach side, and on the next line their --benchmark_filter; "
          "empty if more\nwould not help.");
ABSL_FLAG(int32_t, looks, 1,
          "How often this gate may be asked while processes are added; the "
          "looks share\nthe false-alarm rate.");

ABSL_FLAG(int32_t, keep_runs, 50,
          "The newest runs of each suite, hardware and branch that keep their "
          "samples.");
ABSL_FLAG(int32_t, keep_days, 90, "Runs of so many days keep their samples.");
ABSL_FLAG(int32_t, keep_every, 1,
          "Of older runs, those of every so-many-th commit stay; 1: all.");
ABSL_FLAG(std::vector<std::string>, keep_commits, {},
          "Commits (prefixes of hashes) whose runs are never thinned: the "
          "releases that gates compare with.");
ABSL_FLAG(bool, rebuild, false, "Make the index anew from all files.");

namespace optrail::cli {
using suites::Command;

Command ImportCommand() {
  Command command;
  command.name = "import";
  command.arguments = "FILE...";
  command.summary = "Adds results of other tools to the history.";
  command.details =
      "Reads Google Benchmark's JSON of any project. Run the benchmark "
      "several\n"
      "times and import the files together: only processes are independent\n"
      "evidence, repetitions within one are not.\n"
      "\n"
      "  for i in 1 2 3 4 5; do ./my_benchmark --benchmark_out=run$i.json; "
      "done\n"
      "  optrail import --files_are_processes run*.json\n";
  command.flags = {
      "history", "format", "file_format",         "hardware", "suite", "prefix",
      "commit",  "branch", "files_are_processes", "dry_run"};
  command.min_arguments = 1;
  command.max_arguments = -1;
  command.run = [](const std::vector<std::string>& files) {
    tracker::ImportCommand options;
    options.common = TrackerOptions();
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
    options.dry_run = absl::GetFlag(FLAGS_dry_run);
    return tracker::RunImport(options, std::cout);
  };
  return command;
}

Command LogCommand() {
  Command command;
  command.name = "log";
  command.arguments = "[runs|sessions|series]";
  command.summary = "Lists runs, tuning sessions or series.";
  command.details =
      "By default runs, which --suite, --hardware, --branch and --commit "
      "choose.\n"
      "--filter is for sessions, where it matches tasks, and for series.\n"
      "\n"
      "  optrail log --suite=smoke --limit=5\n"
      "  optrail log series --filter=^matmul/\n";
  command.flags = {"history", "format", "suite",  "hardware",
                   "branch",  "commit", "filter", "limit"};
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::LogCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.what = arguments[0];
    options.suite = absl::GetFlag(FLAGS_suite);
    options.hardware_id = absl::GetFlag(FLAGS_hardware);
    options.branch = absl::GetFlag(FLAGS_branch);
    options.commit = absl::GetFlag(FLAGS_commit);
    options.filter = absl::GetFlag(FLAGS_filter);
    options.limit = absl::GetFlag(FLAGS_limit);
    return tracker::RunLog(options, std::cout);
  };
  return command;
}

Command ShowCommand() {
  Command command;
  command.name = "show";
  command.arguments = "[RUN|COMMIT|SESSION|SERIES]";
  command.summary = "Shows one run, tuning session or series.";
  command.details =
      "By default the latest run. `optrail log` prints the ids; \"latest~1\" "
      "is\n"
      "the run before the latest.\n";
  command.flags = {"history", "format", "filter"};
  command.max_arguments = 1;
  command.run = [](const std::vector<std::string>& arguments) {
    tracker::ShowCommand options;
    options.common = TrackerOptions();
    if (!arguments.empty()) options.what = arguments[0];
    options.filter = absl::GetFlag(FLAGS_filter);
    return tracker::RunShow(options, std::cout);
  };
  return command;
}

Command CompareCommand() {
  Command command;
  command.name = "compare";
  command.arguments = "[A [B [-- ARGUMENTS]]]";
  command.summary = "Compares two runs, commits, result files or programs.";
  command.details =
      "A is the base, by default latest~1, B by default latest. Either may be "
      "a\n"
      "run, a commit, or Google Benchmark JSON; several files joined by "
      "commas\n"
      "are processes of one run. Exit codes: 0 also where something is "
      "slower,\n"
      "3 it can tell for no benchmark; `optrail gate` is what fails on "
      "regressions.\n"
      "\n"
      "With --binaries, A and B are programs that take Google Benchmark's\n"
      "flags, with --commits they are commits at which --target is built. "
      "The\n"
      "two are run in turns, with ARGUMENTS, until it is clear which "
      "benchmarks\n"
      "differ; equal programs are not run at all. Exit codes: 0 nothing is\n"
      "worse, 1 something is, 3 it can't tell after --max_rounds.\n"
      "\n"
      "  optrail compare HEAD~1 HEAD\n"
      "  optrail compare old1.json,old2.json,old3.json new1.json,new2.json,"
      "new3.json\n"
      "  optrail compare --binaries old/sort_benchmark new/sort_benchmark -- "
      "--benchmark_filter=BM_Sort\n"
      "  optrail compare --commits main HEAD --target=//sort:sort_benchmark\n";
  command.flags = {"history",
                   "format",
                   "filter",
                   "metric",
                   "min_effect",
                   "detect_effect",
                   "false_alarm_rate",
                   "only_changes",
                   "binaries",
                   "commits",
                   "target",
                   "max_rounds",
                   "process_deadline",
                   "build_deadline",
                   "seed",
                   "quiet"};
  command.max_arguments = -1;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    const bool binaries = absl::GetFlag(FLAGS_binaries);
    const bool commits = absl::GetFlag(FLAGS_commits);
    if (binaries && commits) {
      return absl::InvalidArgumentError(
          "--binaries and --commits: expected one of them");
    }
    if (binaries || commits) {
      tracker::AbCommand options;
      options.common = TrackerOptions();
      options.filter = absl::GetFlag(FLAGS_filter);
      options.metric = absl::GetFlag(FLAGS_metric);
      options.min_effect = absl::GetFlag(FLAGS_min_effect);
      options.detect_effect = absl::GetFlag(FLAGS_detect_effect);
      options.false_alarm_rate = absl::GetFlag(FLAGS_false_alarm_rate);
      options.only_changes = absl::GetFlag(FLAGS_only_changes);
      return CompareByRunning(std::move(options), arguments, commits);
    }
    if (arguments.size() > 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("compare takes [A [B]], but ", arguments.size(),
                       " arguments were given; arguments for programs need "
                       "--binaries or --commits"));
    }
    tracker::CompareCommand options;
    options.common = TrackerOptions();
    if (arguments.size() > 0) options.a = arguments[0];
    if (arguments.size() > 1) options.b = arguments[1];
    options.filter = absl::GetFlag(FLAGS_filter);
    options.metric = absl::GetFlag(FLAGS_metric);
    options.min_effect = absl::GetFlag(FLAGS_min_effect);
    options.detect_effect = absl::GetFlag(FLAGS_detect_effect);
    options.false_alarm_rate = absl::GetFlag(FLAGS_false_alarm_rate);
    options.only_changes = absl::GetFlag(FLAGS_only_changes);
    return tracker::RunCompare(options, std::cout);
  };
  return command;
}

Command GateCommand() {
  Command command;
  command.name = "gate";
  command.summary = "Judges a run by a policy: the exit code stops the merge.";
  command.details =
      "Exit codes: 0 fine, 1 a regression or a failed benchmark, 2 wrong use "
      "or\n"
      "bad input, 3 not enough data to tell.\n"
      "\n"
      "  optrail bench --workload=smoke --record\n"
      "  optrail gate --policy=ci/policy.textproto --markdown_out=gate.md\n";
  command.flags = {"history",       "format", "policy",      "candidate",
                   "baseline",      "suite",  "verdict_out", "markdown_out",
                   "remeasure_out", "looks"};
  command.run = [](const std::vector<std::string>&) {
    tracker::GateCommand options;
    options.common = TrackerOptions();
    const auto path = [](const std::string& flag) {
      return flag.empty() ? flag : UserPath(flag);
    };
    options.policy = path(absl::GetFlag(FLAGS_policy));
    options.candidate = absl::GetFlag(FLAGS_candidate);
    options.baseline = absl::GetFlag(FLAGS_baseline);
    options.suite = absl::GetFlag(FLAGS_suite);
    options.verdict_out = path(absl::GetFlag(FLAGS_verdict_out));
    options.markdown_out = path(absl::GetFlag(FLAGS_markdown_out));
    options.remeasure_out = path(absl::GetFlag(FLAGS_remeasure_out));
    options.looks = absl::GetFlag(FLAGS_looks);
    return tracker::RunGate(options, std::cout);
  };
  return command;
}

Command HistoryCommand() {
  Command command;
  command.name = "history";
  command.arguments = "verify | repair | merge FOLDER | thin | export | index";
  command.summary = "Checks, repairs, merges, thins or exports a history.";
  command.details =
      "  verify        names every file that is damaged or odd; of the odd "
      "ones "
      "the\n"
      "                first three of a kind\n"
      "  repair        moves damaged files to <history>/quarantine; deletes "
      "nothing\n"
      "  merge FOLDER  copies what another history holds beyond this one\n"
      "  thin          takes the raw samples of old runs away, as --keep_* "
      "say\n"
      "  export        writes series as CSV that `optrail detect --csv` "
      "reads\n"
      "  index         brings the index up to date; --rebuild makes it anew\n"
      "\n"
      "Exit code 1: verify, repair --dry_run or merge found damaged files.\n"
      "\n"
      "  optrail history thin --keep_runs=50 --keep_days=90 --dry_run\n"
      "  optrail history export --filter=^matmul/ --out=series.csv\n";
  command.flags = {"history",   "format",     "dry_run",      "keep_runs",
                   "keep_days", "keep_every", "keep_commits", "rebuild",
                   "filter",    "hardware",   "branch",       "out"};
  command.min_arguments = 1;
  command.max_arguments = 2;
  command.run =
      [](const std::vector<std::string>& arguments) -> absl::StatusOr<int> {
    const std::string& what = arguments[0];
    if (what == "merge" && arguments.size() == 2) {
      tracker::HistoryMergeCommand options;
      options.common = TrackerOptions();
      options.from = UserPath(arguments[1]);
      return tracker::RunHistoryMerge(options, std::cout);
    }
    if (what == "verify" && arguments.size() == 1) {
      tracker::HistoryCheckCommand options;
      options.common = TrackerOptions();
      return tracker::RunHistoryCheck(options, std::cout);
    }
    if (what == "repair" && arguments.size() == 1) {
      tracker::HistoryRepairCommand options;
      options.common = TrackerOptions();
      options.dry_run = absl::GetFlag(FLAGS_dry_run);
      return tracker::RunHistoryRepair(options, std::cout);
    }
    if (what == "thin" && arguments.size() == 1) {
      tracker::HistoryThinCommand options;
      options.common = TrackerOptions();
      options.policy.keep_runs = absl::GetFlag(FLAGS_keep_runs);
      options.policy.keep_days = absl::GetFlag(FLAGS_keep_days);
      options.policy.keep_every = absl::GetFlag(FLAGS_keep_every);
      options.policy.keep_commits = absl::GetFlag(FLAGS_keep_commits);
      options.dry_run = absl::GetFlag(FLAGS_dry_run);
      return tracker::RunHistoryThin(options, std::cout);
    }
    if (what == "export" && arguments.size() == 1) {
      tracker::HistoryExportCommand options;
      options.common = TrackerOptions();
      options.filter.pattern = absl::GetFlag(FLAGS_filter);
      options.filter.hardware_id = absl::GetFlag(FLAGS_hardware);
      options.filter.branch = absl::GetFlag(FLAGS_branch);
      const std::string out = absl::GetFlag(FLAGS_out);
      options.file = out.empty() ? out : UserPath(out);
      return tracker::RunHistoryExport(options, std::cout);
    }
    if (what == "index" && arguments.size() == 1) {
      tracker::HistoryIndexCommand options;
      options.common = TrackerOptions();
      options.rebuild = absl::GetFlag(FLAGS_rebuild);
      return tracker::RunHistoryIndex(options, std::cout);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"", what,
                     "\": expected verify, repair, thin, export or index, or "
                     "merge and a folder"));
  };
  return command;
}

}  // namespace optrail::cli
