-- As in versions.sql: another database may do the same now.
DO $$
DECLARE pair text[];
BEGIN
  FOREACH pair SLICE 1 IN ARRAY ARRAY[
      ['optrail_recorder', 'optrail_pilot'],
      ['optrail_reader', 'optrail_submitter']] LOOP
    BEGIN
      EXECUTE format('GRANT %I TO %I', pair[1], pair[2]);
    EXCEPTION WHEN unique_violation THEN
      NULL;
    END;
  END LOOP;
END $$;
GRANT SELECT ON optrail.task_states TO optrail_reader;
GRANT SELECT ON optrail.jobs, optrail.tasks, optrail.attempts, optrail.pilots
  TO optrail_submitter, optrail_pilot, optrail_maintainer;
GRANT INSERT (name, priority, deadline, token) ON optrail.jobs
  TO optrail_submitter;
GRANT INSERT (job, command, priority, hardware_id, most_attempts, time_limit_s,
  deadline, needs_repository, waits_for, state) ON optrail.tasks
  TO optrail_submitter;
GRANT EXECUTE ON FUNCTION optrail.cancel_job(bigint)
  TO optrail_submitter, optrail_maintainer;
GRANT UPDATE (draining) ON optrail.pilots
  TO optrail_submitter, optrail_maintainer;
GRANT UPDATE (state, attempt, pilot, lease_until, started, finished,
  leases_lost) ON optrail.tasks TO optrail_pilot;
GRANT INSERT ON optrail.attempts, optrail.pilots TO optrail_pilot;
GRANT UPDATE (seen) ON optrail.pilots TO optrail_pilot;
