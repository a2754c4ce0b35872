CREATE SCHEMA IF NOT EXISTS optrail;
CREATE TABLE IF NOT EXISTS optrail.schema_versions (
  component text PRIMARY KEY,
  version integer NOT NULL
);
-- Roles belong to the server, and an advisory lock to one database: where
-- another database is prepared at the same moment, its transaction may make
-- them first, and this one waits for it.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['optrail_reader', 'optrail_recorder',
      'optrail_maintainer', 'optrail_submitter', 'optrail_pilot'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', name);
      EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL;
      END;
    END IF;
  END LOOP;
END $$;
GRANT USAGE ON SCHEMA optrail TO optrail_reader, optrail_recorder,
  optrail_maintainer, optrail_submitter, optrail_pilot;
GRANT SELECT ON optrail.schema_versions TO optrail_reader, optrail_recorder,
  optrail_maintainer, optrail_submitter, optrail_pilot;
