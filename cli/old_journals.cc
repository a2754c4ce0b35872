#include "cli/old_journals.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/text/units.h"

namespace optrail::cli {

OldJournals FindOldJournals(const std::string& state, int64_t now_unix_s) {
  OldJournals old;
  const auto paths = ListRecursively(state, ".journal");
  if (!paths.ok()) return old;  // a folder that cannot be read has none for us
  for (const std::string& path : *paths) {
    struct stat info = {};
    if (stat(path.c_str(), &info) != 0) continue;  // somebody ended it
    if (info.st_mtime > now_unix_s - kOldJournalDays * 24LL * 3600) continue;
    ++old.count;
    old.size_bytes += info.st_size;
  }
  return old;
}

std::string OldJournalsText(const OldJournals& old, const std::string& state) {
  if (old.count == 0) {
    return absl::StrCat("none older than ", kOldJournalDays, " days");
  }
  return absl::StrCat(
      old.count, " older than ", kOldJournalDays, " days (",
      FormatBytes(static_cast<double>(old.size_bytes)), "); next: find '",
      // find counts whole days and takes those beyond.
      state, "' -name '*.journal' -mtime +", kOldJournalDays - 1, " -delete");
}

}  // namespace optrail::cli
