#ifndef OPTRAIL_TRACKER_COMMAND_SUPPORT_H_
#define OPTRAIL_TRACKER_COMMAND_SUPPORT_H_

// What several of the tracker's commands need.

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/table.h"
#include "re2/re2.h"
#include "tracker/commands.h"
#include "tracker/history.h"

namespace optrail::tracker {

int64_t NowUnixNs(const CommonOptions& options);

void PrintTable(const Table& table, OutputFormat format, std::ostream& out);

// Damaged files are skipped and said, never silently.
void WarnOfBadFiles(const std::vector<BadFile>& bad_files);

// Null for "", which matches everything.
absl::StatusOr<std::unique_ptr<RE2>> CompileFilter(const std::string& pattern);
bool Matches(const std::unique_ptr<RE2>& filter, absl::string_view text);

// A selector of History::Resolve; a name that only git knows ("HEAD~1", a tag)
// becomes the commit it stands for.
std::string SelectorOf(const std::string& text, const History& history,
                       const std::string& workspace);

// "2026-11-20 09:08:07", UTC.
std::string TimeText(int64_t unix_ns);

// "1a2b3c4d5e6f", "1a2b3c4d5e6f+" for a work tree with changes, "-" for none.
std::string CommitText(const proto::Commit& commit);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_COMMAND_SUPPORT_H_
