#ifndef OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_
#define OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_

// SQLite as a Database (tracker/history/sql.h):
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::shared_ptr<Database> db,
//       OpenSqlite(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sqlite3.h"
#include "tracker/history/sql.h"

namespace optrail::tracker {

// `name`: a path, ":memory:" or a URI; `flags`: as for sqlite3_open_v2.
absl::StatusOr<std::shared_ptr<Database>> OpenSqlite(const std::string& name,
                                                     int flags);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_INDEX_SQLITE_H_
