#ifndef OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_STORE_H_
#define OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_STORE_H_

// A history's records in PostgreSQL, and the index of its runs beside them: one
// transaction writes both, so that the index is always current. Linking this
// library lets OpenRecordStore take URLs:
//
//   OPTRAIL_ASSIGN_OR_RETURN(const History history,
//                            History::Open("postgresql://host/db"));
//
// A record that was sent when the connection broke is looked for and sent
// again: Put means the same as with files. Thread safety: one connection serves
// all threads, one after another.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/history/postgres/postgres.h"
#include "tracker/history/record_store.h"

namespace optrail::tracker {

absl::StatusOr<std::shared_ptr<const RecordStore>> OpenPostgresStore(
    absl::string_view url);

struct PlacedRecord {
  std::string folder;  // "runs"
  std::string id;
  std::string bytes;
};

// Puts all records of another history and calls `also`, in one transaction:
// either all of it happens or nothing. `also` may refuse, and is called again
// where the connection broke. Records that are there already count as put.
absl::Status PutTogether(const RecordStore& store,
                         const std::vector<PlacedRecord>& records,
                         const std::function<absl::Status(Postgres&)>& also);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_POSTGRES_POSTGRES_STORE_H_
