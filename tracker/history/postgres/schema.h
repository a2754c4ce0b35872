#ifndef OPTRAIL_TRACKER_HISTORY_POSTGRES_SCHEMA_H_
#define OPTRAIL_TRACKER_HISTORY_POSTGRES_SCHEMA_H_

// The tables of Optrail in a PostgreSQL database, their versions, and who may
// do what with them (docs/reference/fleet.md).
//
//   OPTRAIL_RETURN_IF_ERROR(InitHistorySchema(*db));     // its owner, once
//   OPTRAIL_RETURN_IF_ERROR(UseHistorySchema(*db));      // everybody else
//
// Everything lies in the schema "optrail". Each component's tables have a
// version; a migration leads from each version to the next.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tracker/history/postgres/postgres.h"

namespace optrail::tracker {

struct SchemaComponent {
  std::string name;  // "history"
  // The statements that lead from version i to version i + 1.
  std::vector<const char*> migrations;
};

// Brings a component's tables to the newest version, in one transaction;
// `rights` are the statements that grant them, run each time.
// FailedPrecondition where the tables are newer than this program.
absl::Status InitSchema(Postgres& db, const SchemaComponent& component,
                        const char* rights);

// FailedPrecondition, with what to do, unless the tables are there and of the
// newest version.
absl::Status CheckSchema(Postgres& db, const SchemaComponent& component);

absl::Status InitHistorySchema(Postgres& db);
// Checks, and lets names without a schema mean ours.
absl::Status UseHistorySchema(Postgres& db);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_HISTORY_POSTGRES_SCHEMA_H_
