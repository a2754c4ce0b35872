GRANT optrail_recorder TO optrail_pilot;
GRANT optrail_reader TO optrail_submitter;
GRANT SELECT ON optrail.task_states TO optrail_reader;
GRANT SELECT ON optrail.jobs, optrail.tasks, optrail.attempts, optrail.pilots
  TO optrail_submitter, optrail_pilot, optrail_maintainer;
GRANT INSERT ON optrail.jobs, optrail.tasks TO optrail_submitter;
GRANT UPDATE (state, finished) ON optrail.tasks TO optrail_submitter;
GRANT UPDATE (draining) ON optrail.pilots TO optrail_submitter;
GRANT UPDATE (state, attempt, pilot, lease_until, started, finished,
  leases_lost) ON optrail.tasks TO optrail_pilot;
GRANT INSERT ON optrail.attempts, optrail.pilots TO optrail_pilot;
GRANT UPDATE (seen) ON optrail.pilots TO optrail_pilot;
