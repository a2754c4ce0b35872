GRANT SELECT ON optrail.records, optrail.documents, optrail.runs, optrail.series,
  optrail.attributes, optrail.observations, optrail.points, optrail.folds,
  optrail.digests, optrail.judgements, optrail.changes
  TO optrail_reader, optrail_recorder, optrail_maintainer;
GRANT INSERT ON optrail.records, optrail.documents, optrail.runs, optrail.series,
  optrail.attributes, optrail.observations
  TO optrail_recorder, optrail_maintainer;
GRANT UPDATE, DELETE ON optrail.records, optrail.runs, optrail.series,
  optrail.attributes, optrail.observations TO optrail_maintainer;
-- A document never changes; one that cannot be read may be removed.
GRANT DELETE ON optrail.documents TO optrail_maintainer;
GRANT SELECT, INSERT ON optrail.quarantine TO optrail_maintainer;
-- Folds are no records: the newest replaces the one before.
GRANT INSERT, UPDATE ON optrail.folds, optrail.digests
  TO optrail_recorder, optrail_maintainer;
GRANT INSERT, UPDATE, DELETE ON optrail.judgements
  TO optrail_recorder, optrail_maintainer;
GRANT DELETE ON optrail.folds, optrail.digests TO optrail_maintainer;
