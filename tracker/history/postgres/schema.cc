#include "tracker/history/postgres/schema.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optrail::tracker {
namespace {

constexpr char kVersions[] = R"sql(
  CREATE SCHEMA IF NOT EXISTS optrail;
  CREATE TABLE IF NOT EXISTS optrail.schema_versions (
    component text PRIMARY KEY,
    version integer NOT NULL
  );
  DO $$
  DECLARE name text;
  BEGIN
    FOREACH name IN ARRAY ARRAY['optrail_reader', 'optrail_recorder',
        'optrail_maintainer', 'optrail_submitter', 'optrail_pilot'] LOOP
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
        EXECUTE format('CREATE ROLE %I NOLOGIN', name);
      END IF;
    END LOOP;
  END $$;
  GRANT USAGE ON SCHEMA optrail TO optrail_reader, optrail_recorder,
    optrail_maintainer, optrail_submitter, optrail_pilot;
  GRANT SELECT ON optrail.schema_versions TO optrail_reader, optrail_recorder,
    optrail_maintainer, optrail_submitter, optrail_pilot;
)sql";

// Tables and columns of the index are those of SQLite
// (index/history_index.cc), which the same statements read and fill.
constexpr char kHistory1[] = R"sql(
  CREATE TABLE optrail.records (
    folder text NOT NULL CHECK (folder IN
      ('runs', 'sessions', 'triage', 'diagnoses', 'tombstones')),
    id text NOT NULL CHECK (id ~ '^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{1,47}$'),
    bytes bytea NOT NULL CHECK (octet_length(bytes) <= 268435456),
    written timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (folder, id)
  );
  CREATE TABLE optrail.quarantine (
    folder text NOT NULL,
    id text NOT NULL,
    bytes bytea NOT NULL,
    reason text NOT NULL,
    moved timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE optrail.runs (
    run bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    path text NOT NULL UNIQUE,
    result_count bigint NOT NULL,
    started_unix_ns bigint NOT NULL,
    commit_id text NOT NULL,
    position bigint,
    header bytea NOT NULL
  );
  CREATE TABLE optrail.series (
    series bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text text NOT NULL,
    benchmark bytea NOT NULL,
    metric text NOT NULL,
    unit text NOT NULL,
    hardware_id text NOT NULL,
    branch text NOT NULL
  );
  CREATE TABLE optrail.attributes (
    attributes bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bytes bytea NOT NULL
  );
  -- Hashed, since a B-tree takes no key of more than 2.7 kB. Writers take
  -- turns, so that nothing is there twice.
  CREATE INDEX series_text ON optrail.series USING hash (text);
  CREATE INDEX attributes_bytes ON optrail.attributes USING hash (bytes);
  CREATE TABLE optrail.observations (
    series bigint NOT NULL,
    run bigint NOT NULL,
    ordinal bigint NOT NULL,
    attributes bigint NOT NULL,
    value double precision,
    bytes bytea NOT NULL,
    PRIMARY KEY (series, run, ordinal)
  );
  -- Runs are added one after another: a small index finds what one wrote.
  CREATE INDEX observations_run ON optrail.observations
    USING brin (run) WITH (pages_per_range = 16);
  -- `series.runs`, as SQLite's column of that name.
  CREATE FUNCTION optrail.runs(optrail.series) RETURNS bigint
    LANGUAGE sql STABLE AS $$
      SELECT count(DISTINCT run) FROM optrail.observations
      WHERE observations.series = $1.series $$;
  -- For dashboards.
  CREATE VIEW optrail.points AS
    SELECT s.text AS series, s.metric, s.unit, s.hardware_id, s.branch,
      to_timestamp(r.started_unix_ns / 1e9) AS started, r.commit_id,
      r.position, o.value
    FROM optrail.observations o
    JOIN optrail.series s USING (series) JOIN optrail.runs r USING (run);
)sql";

constexpr char kHistoryRights[] = R"sql(
  GRANT SELECT ON optrail.records, optrail.runs, optrail.series,
    optrail.attributes, optrail.observations, optrail.points
    TO optrail_reader, optrail_recorder, optrail_maintainer;
  GRANT INSERT ON optrail.records, optrail.runs, optrail.series,
    optrail.attributes, optrail.observations
    TO optrail_recorder, optrail_maintainer;
  GRANT UPDATE, DELETE ON optrail.records, optrail.runs, optrail.series,
    optrail.attributes, optrail.observations TO optrail_maintainer;
  GRANT SELECT, INSERT ON optrail.quarantine TO optrail_maintainer;
)sql";

const SchemaComponent& HistoryComponent() {
  static const auto& component = *new SchemaComponent{"history", {kHistory1}};
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
