-- `digests` as of SQLite: what the page of a report shows of a series. They are
-- read as a whole, and compressing them costs more than it saves.
CREATE TABLE optrail.digests (
  series bigint PRIMARY KEY,
  bytes bytea NOT NULL
);
ALTER TABLE optrail.digests ALTER COLUMN bytes SET STORAGE EXTERNAL;
