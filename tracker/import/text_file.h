#ifndef OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_
#define OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_

// What importers of plain text ask of a file before they read it.

#include "absl/status/status.h"
#include "tracker/import/import.h"

namespace optrail::tracker {

// InvalidArgument with file and line for what is no UTF-8 or holds a NUL:
// names from it are stored in records, which hold text.
absl::Status CheckText(const ImportedFile& file);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_IMPORT_TEXT_FILE_H_
