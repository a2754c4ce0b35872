#include "tracker/checkout/commit_builder.h"

#include <iostream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "base/text/units.h"

namespace optrail::tracker {
namespace {

// Lines that a backslash continues as one, which can be printed and copied.
std::string OneLine(absl::string_view command) {
  std::string line;
  for (absl::string_view part : absl::StrSplit(command, "\\\n")) {
    if (!line.empty()) {
      absl::StripTrailingAsciiWhitespace(&line);
      line += ' ';
      part = absl::StripLeadingAsciiWhitespace(part);
    }
    absl::StrAppend(&line, part);
  }
  return line;
}

}  // namespace

std::string FlagsOf(const BuildOptions& options) {
  std::string flags;
  for (const auto& [name, value] : {std::pair("--target=", &options.target),
                                    {"--build=", &options.build_command},
                                    {"--run=", &options.run_command}}) {
    if (value->empty()) continue;
    absl::StrAppend(&flags, flags.empty() ? "" : " ", name,
                    QuoteForShell(OneLine(*value)));
  }
  if (!options.args.empty()) absl::StrAppend(&flags, " --");
  for (const std::string& arg : options.args) {
    absl::StrAppend(&flags, " ", QuoteForShell(arg));
  }
  return flags;
}

absl::StatusOr<std::unique_ptr<CommitBuilder>> CommitBuilder::Create(
    const BuildOptions& options, Interruptible& interruptible) {
  const bool has_command =
      !options.run_command.empty() || !options.build_command.empty();
  if (has_command && !options.target.empty()) {
    return absl::InvalidArgumentError(
        "--target and --run: expected one of them: a Bazel target, or the "
        "commands of another build system");
  }
  return has_command ? NewCommandBuilder(options, interruptible)
                     : NewTargetBuilder(options, interruptible);
}

CommitBuilder::CommitBuilder(BuildOptions options,
                             std::unique_ptr<Worktrees> trees,
                             Interruptible& interruptible)
    : options_(std::move(options)),
      trees_(std::move(trees)),
      interruptible_(interruptible) {}

absl::StatusOr<Interruptible::End> CommitBuilder::RunBuild(
    const std::vector<std::string>& argv, const std::string& folder,
    const std::string& what, const std::string& commit) {
  const std::string short_id = commit.substr(0, 12);
  if (!options_.quiet) {
    std::cerr << "building " << what << " at " << short_id << " ...\n";
  }
  const int64_t start_ns = Clock::Real()->NowNs();
  ++builds_;
  OPTRAIL_ASSIGN_OR_RETURN(
      Interruptible::End end,
      interruptible_.Run(argv, folder, options_.build_deadline));
  if (end.exit.ok() && !options_.quiet) {
    std::cerr << "built " << what << " at " << short_id << " in "
              << FormatDurationNs(
                     static_cast<double>(Clock::Real()->NowNs() - start_ns))
              << "\n";
  }
  return end;
}

absl::StatusOr<bool> HoldSameBytes(const std::string& path_a,
                                   const std::string& path_b) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::string a, ReadFile(path_a));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string b, ReadFile(path_b));
  return a == b;
}

}  // namespace optrail::tracker
