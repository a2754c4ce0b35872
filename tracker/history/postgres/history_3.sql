-- proto.Outcome; NULL of what was recorded before.
ALTER TABLE optrail.observations ADD COLUMN outcome bigint;
CREATE OR REPLACE VIEW optrail.points AS
  SELECT s.text AS series, s.metric, s.unit, s.hardware_id, s.branch,
    to_timestamp(r.started_unix_ns / 1e9) AS started, r.commit_id,
    r.position, o.value,
    o.outcome = 10 AS disturbed  -- CONTENDED
  FROM optrail.observations o
  JOIN optrail.series s USING (series) JOIN optrail.runs r USING (run);
-- The report's verdict on each series and its changes, for dashboards.
CREATE TABLE optrail.judgements (
  series bigint PRIMARY KEY,
  verdict text NOT NULL,
  -- The view `changes` takes it apart. It keeps the text as it was written,
  -- which jsonb would not: it is compared with what the next report finds.
  changes json NOT NULL CHECK (json_typeof(changes) = 'array'),
  judged timestamptz NOT NULL DEFAULT now()
);
CREATE VIEW optrail.changes AS
  SELECT s.text AS series, s.metric, s.hardware_id, s.branch,
    to_timestamp(c.started_unix_ns / 1e9) AS started, c.commit_id,
    c.relative_change, c.text
  FROM optrail.judgements j JOIN optrail.series s USING (series),
    json_to_recordset(j.changes) AS c (started_unix_ns bigint,
      commit_id text, relative_change double precision, text text);
