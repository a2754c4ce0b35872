// `optrail log`: lists what the history holds.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/command/log_command.h"

ABSL_FLAG(int32_t, limit, 20, "How many, newest first; 0: all.");

namespace optrail::cli {

namespace {

absl::StatusOr<int> Log(const std::string& what) {
  tracker::LogCommand options;
  options.common = TrackerOptions();
  options.what = what;
  options.suite = absl::GetFlag(FLAGS_suite);
  options.hardware_id = absl::GetFlag(FLAGS_hardware);
  options.branch = absl::GetFlag(FLAGS_branch);
  options.commit = absl::GetFlag(FLAGS_commit);
  options.filter = absl::GetFlag(FLAGS_filter);
  options.limit = absl::GetFlag(FLAGS_limit);
  return tracker::RunLog(options, std::cout);
}

suites::Command LogPart(std::string name, std::string summary,
                        std::vector<std::string> flags) {
  return Part(
      name, "", std::move(summary),
      Together({{"history", "format", "limit", "hardware", "branch", "commit"},
                std::move(flags)}),
      0, 0, [name](const std::vector<std::string>&) { return Log(name); });
}

}  // namespace

suites::Command LogCommand() {
  suites::Command command;
  command.name = "log";
  command.arguments = "[runs|sessions|series]";
  command.summary = "Lists runs, tuning sessions or series.";
  command.details = HelpText("log");
  command.meanings = {
      {"suite", "Only those of this suite."},
      {"hardware", "Only those of the hardware with this id."},
      {"branch", "Only those of this branch."},
      {"commit", "Only those of this commit (any name that git knows)."},
      {"filter",
       "Only tasks (sessions) or benchmarks (series) whose name this regular "
       "expression matches."}};
  for (const char* flag : {"since", "until", "after", "before"}) {
    command.instead.push_back(
        {flag, "--limit=N lists the newest N, and --commit=NAME those of one"});
  }
  for (const char* part : {"runs", "sessions", "series"}) {
    command.instead.push_back(
        {part, absl::StrCat("`optrail log ", part, "` lists them")});
  }
  command.parts = {
      LogPart("runs", "Lists runs; what `optrail log` alone does.", {"suite"}),
      LogPart("sessions", "Lists tuning sessions.", {"filter"}),
      LogPart("series", "Lists series.", {"suite", "filter"})};
  command.default_part = "runs";
  return command;
}

}  // namespace optrail::cli
