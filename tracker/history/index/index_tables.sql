CREATE TABLE files (
  path TEXT PRIMARY KEY,      -- below the history
  size_bytes INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  modified_unix_ns INTEGER NOT NULL,
  reason TEXT                 -- why it is no intact run; NULL if it is one
) WITHOUT ROWID;
CREATE TABLE runs (
  run INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  result_count INTEGER NOT NULL,
  started_unix_ns INTEGER NOT NULL,
  commit_id TEXT NOT NULL,
  position INTEGER,           -- of the commit, along first parents
  header BLOB NOT NULL        -- proto.Run without results
);
CREATE TABLE series (
  series INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE,
  benchmark BLOB NOT NULL,    -- proto.BenchmarkKey
  metric TEXT NOT NULL,
  unit TEXT NOT NULL,
  hardware_id TEXT NOT NULL,
  branch TEXT NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE attributes (
  attributes INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL UNIQUE  -- proto.IndexedAttributes
);
-- Clustered, so that one series lies in a few pages.
CREATE TABLE observations (
  series INTEGER NOT NULL,
  run INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,   -- of a benchmark that a run has twice
  attributes INTEGER NOT NULL,
  value REAL,                 -- median of its processes, for other readers
  outcome INTEGER,            -- proto.Outcome, for other readers
  bytes BLOB NOT NULL,        -- proto.IndexedObservation
  PRIMARY KEY (series, run, ordinal)
) WITHOUT ROWID;
CREATE TABLE folds (
  series INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL         -- proto.SeriesFolds: judge/fold_memory.h
);
CREATE TABLE digests (
  series INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL         -- proto.SeriesDigest: reports/digest.h
);
