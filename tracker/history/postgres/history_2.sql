-- `folds` as of SQLite: what the judge found in a series, to go on from.
CREATE TABLE optrail.folds (
  series bigint PRIMARY KEY,
  bytes bytea NOT NULL
);
