#ifndef OPTRAIL_CLI_OLD_JOURNALS_H_
#define OPTRAIL_CLI_OLD_JOURNALS_H_

// Journals of tuning that nobody went on with. `optrail tune` removes its own
// when a session ends well; those of a command that was changed, and of
// `tune --command`, stay in .optrail/state until somebody deletes them.

#include <cstdint>
#include <string>

namespace optrail::cli {

constexpr int kOldJournalDays = 30;

struct OldJournals {
  int64_t count = 0;
  int64_t size_bytes = 0;
};

// Journals below `state` that were last written before then.
OldJournals FindOldJournals(const std::string& state, int64_t now_unix_s);

// "3 older than 30 days (12 KiB); next: find ...", or "none older than 30
// days".
std::string OldJournalsText(const OldJournals& old, const std::string& state);

}  // namespace optrail::cli

#endif  // OPTRAIL_CLI_OLD_JOURNALS_H_
