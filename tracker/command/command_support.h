#ifndef OPTRAIL_TRACKER_COMMAND_COMMAND_SUPPORT_H_
#define OPTRAIL_TRACKER_COMMAND_COMMAND_SUPPORT_H_

// What the commands over a history share: their options, the checks of their
// flags, and what they say of a history that is not there, empty or damaged.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const auto filter,
//                            CompilePattern("filter", options.filter));
//   OPTRAIL_RETURN_IF_ERROR(
//       CheckFlag(options.limit >= 0, "limit", options.limit, "at least 0"));
//   OPTRAIL_ASSIGN_OR_RETURN(const History history,
//                            OpenHistory(options.common));
//
// A command is a struct of options, which the command line fills from flags,
// and a function Run*: it writes its result to `out` in options.common.format
// and returns the process' exit code: 0 fine, 1 a regression or a failed check,
// 3 not enough data. A Status is wrong use or bad input: exit 2. What only
// people need to know goes to standard error. Each stands beside what it
// commands (compare/compare_command.h, gate/gate_command.h and so on).

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/text/table.h"
#include "re2/re2.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

struct CommonOptions {
  std::string history = ".optrail/history";
  // Somebody named the folder: one that is not there is a mistake then, where
  // the default one is a history that is still empty.
  bool history_is_named = false;
  OutputFormat format = OutputFormat::kTable;
  std::string workspace = ".";  // for git
  int64_t now_unix_ns = 0;      // 0: the clock
};

int64_t NowUnixNs(const CommonOptions& options);

// The history of a command that reads. NotFound for a folder that was named
// and is not there.
absl::StatusOr<History> OpenHistory(const CommonOptions& options);
absl::Status CheckHistoryIsThere(const CommonOptions& options);

// " --history=DIR" for the end of a command to copy; "" for the default one,
// which the command finds by itself.
std::string HistoryFlag(const CommonOptions& options);

void PrintTable(const Table& table, OutputFormat format, std::ostream& out);

// Table and Markdown, which have room for sentences beside the table.
bool IsForPeople(OutputFormat format);

// Damaged files are skipped and said, never silently. `what` was done to them.
void WarnOfBadFiles(const std::vector<BadFile>& bad_files,
                    absl::string_view what = "skipped");

// What a person should know of the index, for example that it was damaged.
void PrintNotices(const std::vector<std::string>& notices);

// InvalidArgument "--FLAG=VALUE: expected EXPECTED", unless it `holds`.
absl::Status CheckFlag(bool holds, absl::string_view flag,
                       const absl::AlphaNum& value, absl::string_view expected);

// InvalidArgument for a name to record that is not one line of UTF-8: it would
// tear the lines of tables and scripts. "" is one.
absl::Status CheckName(absl::string_view flag, absl::string_view name);

// The regular expression (RE2) that --FLAG gives; "" matches everything.
// InvalidArgument for one that does not parse.
absl::StatusOr<std::unique_ptr<RE2>> CompilePattern(absl::string_view flag,
                                                    const std::string& pattern);
// Somewhere in the text, and as a whole.
bool MatchesPart(const RE2& pattern, absl::string_view text);
bool MatchesWhole(const RE2& pattern, absl::string_view text);

// "2026-11-20 09:08:07", UTC.
std::string TimeText(int64_t unix_ns);

// "1a2b3c4d5e6f", "1a2b3c4d5e6f+" for a work tree with changes, "-" for none.
std::string CommitText(const proto::Commit& commit);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_COMMAND_SUPPORT_H_
