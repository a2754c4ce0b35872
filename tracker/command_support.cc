#include "tracker/command_support.h"

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/git.h"

namespace optrail::tracker {

int64_t NowUnixNs(const CommonOptions& options) {
  return options.now_unix_ns != 0 ? options.now_unix_ns
                                  : Clock::Real()->WallNs();
}

void PrintTable(const Table& table, OutputFormat format, std::ostream& out) {
  out << table.Format(format, TerminalWidth());
}

void WarnOfBadFiles(const std::vector<BadFile>& bad_files) {
  for (const BadFile& bad : bad_files) {
    std::cerr << "warning: damaged file skipped: "
              << EscapeForTerminal(bad.path) << ": "
              << EscapeForTerminal(bad.reason) << "\n";
  }
}

absl::StatusOr<std::unique_ptr<RE2>> CompileFilter(const std::string& pattern) {
  if (pattern.empty()) return std::unique_ptr<RE2>();
  auto compiled = std::make_unique<RE2>(pattern, RE2::Quiet);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(
      absl::StrCat("filter '", pattern,
                   "' is no regular expression (RE2): ", compiled->error()));
}

bool Matches(const std::unique_ptr<RE2>& filter, absl::string_view text) {
  return filter == nullptr ||
         RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *filter);
}

std::string SelectorOf(const std::string& text, const History& history,
                       const std::string& workspace) {
  if (absl::StartsWith(text, "latest") ||
      !absl::IsNotFound(history.Resolve(text).status())) {
    return text;
  }
  const absl::StatusOr<std::string> commit = ResolveCommit(workspace, text);
  return commit.ok() ? *commit : text;
}

std::string TimeText(int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(unix_ns),
                          absl::UTCTimeZone());
}

std::string CommitText(const proto::Commit& commit) {
  if (commit.id().empty()) return "-";
  return absl::StrCat(commit.id().substr(0, 12), commit.dirty() ? "+" : "");
}

}  // namespace optrail::tracker
