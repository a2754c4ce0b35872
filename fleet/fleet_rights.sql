GRANT optrail_recorder TO optrail_pilot;
GRANT optrail_reader TO optrail_submitter;
GRANT SELECT ON optrail.task_states TO optrail_reader;
GRANT SELECT ON optrail.jobs, optrail.tasks, optrail.attempts, optrail.pilots
  TO optrail_submitter, optrail_pilot, optrail_maintainer;
GRANT INSERT (name, priority, deadline, token) ON optrail.jobs
  TO optrail_submitter;
GRANT INSERT (job, command, priority, hardware_id, most_attempts, time_limit_s,
  deadline, needs_repository, waits_for, state) ON optrail.tasks
  TO optrail_submitter;
GRANT EXECUTE ON FUNCTION optrail.cancel_job(bigint) TO optrail_submitter;
GRANT UPDATE (draining) ON optrail.pilots TO optrail_submitter;
GRANT UPDATE (state, attempt, pilot, lease_until, started, finished,
  leases_lost) ON optrail.tasks TO optrail_pilot;
GRANT INSERT ON optrail.attempts, optrail.pilots TO optrail_pilot;
GRANT UPDATE (seen) ON optrail.pilots TO optrail_pilot;
