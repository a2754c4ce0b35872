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
