// `optrail observe` and `optrail coverage`: what programs call by liboptrail.

#include <iostream>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "ops/core/device_type.h"
#include "suites/command/command_flags.h"
#include "suites/observed/observed.h"
#include "suites/worker/run_context.h"

ABSL_DECLARE_FLAG(std::string, device);

namespace optrail::cli {
namespace {

std::vector<std::string> UserPaths(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) files.push_back(UserPath(path));
  return files;
}

absl::StatusOr<int> Observe(const std::vector<std::string>& paths) {
  suites::ObserveCommand observe;
  observe.files = UserPaths(paths);
  observe.op_regex = absl::GetFlag(FLAGS_op);
  observe.device = absl::GetFlag(FLAGS_device);
  const std::vector<std::string> threads = absl::GetFlag(FLAGS_threads);
  if (threads.size() > 1 || (threads.size() == 1 &&
                             (!absl::SimpleAtoi(threads[0], &observe.threads) ||
                              observe.threads < 1))) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --threads=", absl::StrJoin(threads, ","),
                     ": expected one number from 1 on"));
  }
  observe.out = UserPath(absl::GetFlag(FLAGS_out));
  if (observe.out.empty() && (!observe.device.empty() || observe.threads > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --", observe.device.empty() ? "threads" : "device",
        ": it chooses the calls of a workload, and none is written; next: "
        "--out=FILE"));
  }
  observe.format = absl::GetFlag(FLAGS_format);
  return suites::RunObserve(observe, std::cout, std::cerr);
}

absl::StatusOr<int> Coverage(const std::vector<std::string>& paths) {
  suites::CoverageCommand coverage;
  coverage.files = UserPaths(paths);
  coverage.op_regex = absl::GetFlag(FLAGS_op);
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::DeviceType* type,
      ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device)));
  // Nothing is measured, so the device need not be here.
  std::string note;
  OPTRAIL_ASSIGN_OR_RETURN(
      coverage.context,
      suites::PlanRunContext(type->kind(), "", absl::GetFlag(FLAGS_store),
                             &note));
  if (!note.empty()) std::cerr << "note: " << note << "\n";
  if (!absl::GetFlag(FLAGS_store).empty() &&
      !FileExists(coverage.context.store)) {
    return absl::NotFoundError(
        absl::StrCat("--store=", coverage.context.store,
                     ": there is no such folder; next: look for a typing "
                     "error, or tune into it with optrail tune --store=",
                     QuoteForShell(coverage.context.store)));
  }
  coverage.format = absl::GetFlag(FLAGS_format);
  return suites::RunCoverage(coverage, std::cout, std::cerr);
}

}  // namespace

suites::Command ObserveCommand() {
  suites::Command command;
  command.name = "observe";
  command.arguments = "FILE...";
  command.summary =
      "Turns calls that programs counted into a workload to tune.";
  command.details = HelpText("observe");
  command.flags = {"op", "device", "threads", "out", "format"};
  command.defaults = {{"device", ""}};
  command.meanings = {
      {"device",
       "The device whose calls the workload takes; by default that of most "
       "calls."},
      {"threads",
       "The number of threads whose calls the workload takes; by default that "
       "of most calls."},
      {"out", "File for the workload; by default none is written."}};
  command.min_arguments = 1;
  command.max_arguments = -1;
  command.run = Observe;
  return command;
}

suites::Command CoverageCommand() {
  suites::Command command;
  command.name = "coverage";
  command.arguments = "FILE...";
  command.summary = "Says how much of what programs call is tuned.";
  command.details = HelpText("coverage");
  command.flags = {"op", "device", "store", "format"};
  command.min_arguments = 1;
  command.max_arguments = -1;
  command.run = Coverage;
  return command;
}

}  // namespace optrail::cli
