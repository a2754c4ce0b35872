#include "tracker/history/postgres/schema.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

constexpr char kVersions[] =
#include "tracker/history/postgres/versions.inc"
    ;

// Tables and columns of the index are those of SQLite
// (index/index_tables.sql), which the same statements read and fill.
constexpr char kHistory1[] =
#include "tracker/history/postgres/history_1.inc"
    ;

constexpr char kHistory2[] =
#include "tracker/history/postgres/history_2.inc"
    ;

constexpr char kHistory3[] =
#include "tracker/history/postgres/history_3.inc"
    ;

constexpr char kHistory4[] =
#include "tracker/history/postgres/history_4.inc"
    ;

constexpr char kHistory5[] =
#include "tracker/history/postgres/history_5.inc"
    ;

constexpr char kHistoryRights[] =
#include "tracker/history/postgres/history_rights.inc"
    ;

const SchemaComponent& HistoryComponent() {
  static const auto& component = *new SchemaComponent{
      "history", {kHistory1, kHistory2, kHistory3, kHistory4, kHistory5}};
  return component;
}

absl::StatusOr<int> VersionOf(Postgres& db, const std::string& component) {
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<Postgres::Row> rows,
      db.Query("SELECT version FROM optrail.schema_versions "
               "WHERE component = $1",
               {component}));
  int version = 0;
  if (rows.empty() || !rows[0][0].has_value() ||
      !absl::SimpleAtoi(*rows[0][0], &version)) {
    return 0;
  }
  return version;
}

absl::Status NewerError(const SchemaComponent& component, int version) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the tables of the ", component.name, " are version ", version,
      ", this program knows versions up to ", component.migrations.size(),
      "; next: use the newer optrail that made them"));
}

}  // namespace

absl::Status InitSchema(Postgres& db, const SchemaComponent& component,
                        const char* rights) {
  Transaction transaction(db);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db.begin_writing()));
  OPTRAIL_RETURN_IF_ERROR(db.Execute(kVersions));
  OPTRAIL_ASSIGN_OR_RETURN(const int version, VersionOf(db, component.name));
  const int newest = static_cast<int>(component.migrations.size());
  if (version > newest) return NewerError(component, version);
  for (int i = version; i < newest; ++i) {
    OPTRAIL_RETURN_IF_ERROR(db.Execute(component.migrations[i]));
  }
  OPTRAIL_RETURN_IF_ERROR(
      db.Query("INSERT INTO optrail.schema_versions VALUES ($1, $2) "
               "ON CONFLICT (component) DO UPDATE SET version = $2",
               {component.name, absl::StrCat(newest)})
          .status());
  OPTRAIL_RETURN_IF_ERROR(db.Execute(rights));
  return transaction.Commit();
}

absl::Status CheckSchema(Postgres& db, const SchemaComponent& component) {
  OPTRAIL_ASSIGN_OR_RETURN(const int version, VersionOf(db, component.name));
  const int newest = static_cast<int>(component.migrations.size());
  if (version > newest) return NewerError(component, version);
  if (version == newest) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the tables of the ", component.name, " are version ",
                   version, ", expected ", newest, "; next: optrail ",
                   component.name, " init --history=... as their owner"));
}

absl::Status InitHistorySchema(Postgres& db) {
  return InitSchema(db, HistoryComponent(), kHistoryRights);
}

absl::Status UseHistorySchema(Postgres& db) {
  OPTRAIL_RETURN_IF_ERROR(CheckSchema(db, HistoryComponent()));
  return db.Execute(
      "SET search_path = optrail;"
      "SET idle_in_transaction_session_timeout = '30s'");
}

}  // namespace optrail::tracker
