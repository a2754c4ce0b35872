#include "tracker/command/command_support.h"

#include <iostream>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/quote.h"
#include "tracker/history/store_url.h"

namespace optrail::tracker {

int64_t NowUnixNs(const CommonOptions& options) {
  return options.now_unix_ns != 0 ? options.now_unix_ns
                                  : Clock::Real()->WallNs();
}

absl::Status CheckHistoryIsThere(const CommonOptions& options) {
  return options.history_is_named ? CheckHistoryFolder(options.history)
                                  : absl::OkStatus();
}

std::string HistoryFlag(const CommonOptions& options) {
  return options.history_is_named
             ? absl::StrCat(" --history=",
                            QuoteForShell(ShownUrl(options.history)))
             : "";
}

absl::StatusOr<History> OpenHistory(const CommonOptions& options) {
  OPTRAIL_RETURN_IF_ERROR(CheckHistoryIsThere(options));
  OPTRAIL_ASSIGN_OR_RETURN(History history, History::Open(options.history));
  history.set_now_unix_ns(options.now_unix_ns);
  return history;
}

void PrintTable(const Table& table, OutputFormat format, std::ostream& out) {
  out << table.Format(format, TerminalWidth());
}

bool IsForPeople(OutputFormat format) {
  return format == OutputFormat::kTable || format == OutputFormat::kMarkdown;
}

void WarnOfBadFiles(const std::vector<BadFile>& bad_files,
                    absl::string_view what) {
  for (const BadFile& bad : bad_files) {
    std::cerr << "warning: damaged file " << what << ": "
              << EscapeForTerminal(bad.path) << ": "
              << EscapeForTerminal(bad.reason) << "\n";
  }
}

void PrintNotices(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) {
    std::cerr << "note: " << EscapeForTerminal(notice) << "\n";
  }
}

absl::Status CheckFlag(bool holds, absl::string_view flag,
                       const absl::AlphaNum& value,
                       absl::string_view expected) {
  if (holds) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": expected ", expected));
}

absl::Status CheckName(absl::string_view flag, absl::string_view name) {
  const std::string escaped = EscapeForTerminal(name);
  return CheckFlag(escaped == name, flag, QuoteForShell(escaped),
                   "a name in one line, without control characters");
}

absl::StatusOr<std::unique_ptr<RE2>> CompilePattern(
    absl::string_view flag, const std::string& pattern) {
  auto compiled = std::make_unique<RE2>(pattern, RE2::Quiet);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "='", pattern,
                   "' is no regular expression (RE2): ", compiled->error()));
}

bool MatchesPart(const RE2& pattern, absl::string_view text) {
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

bool MatchesWhole(const RE2& pattern, absl::string_view text) {
  return pattern.pattern().empty() ||
         RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
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
