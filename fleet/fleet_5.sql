-- One submission, said again because its answer was lost, is one job.
ALTER TABLE optrail.jobs ADD COLUMN token text UNIQUE;
-- Pilots of earlier versions do not say it: nobody leaves them a task that
-- builds commits.
ALTER TABLE optrail.pilots
  ADD COLUMN has_repository boolean NOT NULL DEFAULT false;

-- True if a pilot other than this one is there to take the task, and has not
-- failed at it: one that was heard of so many seconds ago, or runs a task.
CREATE FUNCTION optrail.another_may_take(
    the_task bigint, the_hardware text, builds boolean, the_pilot text,
    patience_s double precision)
  RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
      SELECT FROM optrail.pilots p
      WHERE p.pilot <> the_pilot AND the_hardware IN ('', p.hardware_id)
        AND (p.has_repository OR NOT builds) AND NOT p.draining
        AND (p.seen > now() - make_interval(secs => patience_s)
          OR EXISTS (SELECT FROM optrail.tasks own
            WHERE own.pilot = p.pilot AND own.state = 'leased'
              AND own.lease_until > now()))
        AND NOT EXISTS (SELECT FROM optrail.attempts a
          WHERE a.task = the_task AND a.pilot = p.pilot));
  $$;

-- Leases the first task of the queue that this pilot may take. One at which it
-- has failed is left to another pilot, where there is one: a machine without a
-- compiler would use up all attempts within a moment. Without statistics, as
-- after a large job, the planner would sort the whole queue for every claim:
-- here it walks along the index.
CREATE OR REPLACE FUNCTION optrail.claim_task(
    the_pilot text, lease_s double precision, the_hardware text,
    has_repository boolean)
  RETURNS TABLE (task bigint, attempt integer, command text,
                 time_limit_s double precision)
  LANGUAGE plpgsql
  SET enable_sort TO off SET enable_bitmapscan TO off
  SET enable_seqscan TO off AS $$
  BEGIN
    RETURN QUERY UPDATE optrail.tasks t SET state = 'leased',
      attempt = t.attempt + 1, pilot = the_pilot, started = now(),
      lease_until = now() + make_interval(secs => lease_s)
    WHERE t.task = (SELECT q.task FROM optrail.tasks q
      WHERE q.state = 'queued' AND q.hardware_id IN ('', the_hardware)
        AND (claim_task.has_repository OR NOT q.needs_repository)
        AND (q.deadline IS NULL OR q.deadline > now())
        AND NOT EXISTS (SELECT FROM optrail.pilots p
          WHERE p.pilot = the_pilot AND p.draining)
        AND NOT (q.attempt > 0
          AND EXISTS (SELECT FROM optrail.attempts a
            WHERE a.task = q.task AND a.pilot = the_pilot)
          AND optrail.another_may_take(q.task, q.hardware_id,
            q.needs_repository, the_pilot, 2 * lease_s))
      ORDER BY q.priority DESC, q.task LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING t.task, t.attempt, t.command, t.time_limit_s;
  END $$;
