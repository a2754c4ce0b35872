// `optrail memory`: offsets for buffers with lifetimes.

#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "graph/memory/memory_command.h"

ABSL_FLAG(int64_t, capacity, -1,
          "Bytes that the arena may have; -1: as few as can be found.");
ABSL_FLAG(int64_t, alignment, 1,
          "Every offset is a multiple of so many bytes, a power of two.");
ABSL_FLAG(absl::Duration, time_limit, absl::Seconds(6),
          "Processor time after which the best placement so far is taken.");

namespace optrail::cli {
namespace {

absl::StatusOr<std::optional<int64_t>> Capacity() {
  const int64_t capacity = absl::GetFlag(FLAGS_capacity);
  if (capacity == -1) return std::optional<int64_t>();
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(capacity >= 0, "capacity",
                                             capacity, "at least 0 bytes"));
  return std::optional<int64_t>(capacity);
}

absl::StatusOr<int> RunPlan(const std::vector<std::string>& paths) {
  graph::MemoryPlanCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.options.capacity_bytes, Capacity());
  command.options.alignment_bytes = absl::GetFlag(FLAGS_alignment);
  command.options.time_limit = absl::GetFlag(FLAGS_time_limit);
  command.options.seed = absl::GetFlag(FLAGS_seed);
  command.out = UserPath(absl::GetFlag(FLAGS_out));
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(graph::RunMemoryPlan(command, std::cout));
}

absl::StatusOr<int> RunCheck(const std::vector<std::string>& paths) {
  graph::MemoryCheckCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.capacity_bytes, Capacity());
  command.alignment_bytes = absl::GetFlag(FLAGS_alignment);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(command.alignment_bytes >= 1, "alignment",
                         command.alignment_bytes, "at least 1"));
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(graph::RunMemoryCheck(command, std::cout));
}

}  // namespace

suites::Command MemoryCommand() {
  suites::Command command;
  command.name = "memory";
  command.arguments = "plan | check FILE.csv";
  command.summary = "Places buffers with lifetimes in one arena.";
  command.details = HelpText("memory");
  command.meanings = {{"out", "CSV file to write, with the column offset."},
                      {"seed", "Seed of the search's random choices."}};
  command.parts = {
      Part("plan", "FILE.csv", "Finds offsets.",
           {"capacity", "alignment", "time_limit", "seed", "out", "format"}, 1,
           1, RunPlan),
      Part("check", "FILE.csv", "Tells whether offsets are valid.",
           {"capacity", "alignment", "format"}, 1, 1, RunCheck)};
  return command;
}

}  // namespace optrail::cli
