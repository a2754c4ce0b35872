-- Tasks that build commits are for pilots with a repository: others leave them
-- where they are, and use up no attempt.
ALTER TABLE optrail.tasks
  ADD COLUMN needs_repository boolean NOT NULL DEFAULT false;

-- A task may wait for another one, such as the compiler for what is measured
-- elsewhere. It is queued when that one has ended, however it ended: what was
-- not compiled ahead is compiled by the task itself.
ALTER TABLE optrail.tasks ADD COLUMN waits_for bigint REFERENCES optrail.tasks;
ALTER TABLE optrail.tasks DROP CONSTRAINT tasks_state_check;
ALTER TABLE optrail.tasks ADD CONSTRAINT tasks_state_check CHECK (state IN
  ('waiting', 'queued', 'leased', 'done', 'failed', 'cancelled'));
CREATE INDEX tasks_waiting ON optrail.tasks (waits_for)
  WHERE state = 'waiting';

CREATE FUNCTION optrail.queue_what_waited() RETURNS trigger
  LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE optrail.tasks SET state = 'queued'
    WHERE waits_for = NEW.task AND state = 'waiting';
    RETURN NULL;
  END $$;
CREATE TRIGGER queue_what_waited AFTER UPDATE OF state ON optrail.tasks
  FOR EACH ROW WHEN (OLD.state IN ('queued', 'leased') AND
                     NEW.state IN ('done', 'failed', 'cancelled'))
  EXECUTE FUNCTION optrail.queue_what_waited();

CREATE OR REPLACE FUNCTION optrail.take_back_lost_tasks() RETURNS void
  LANGUAGE sql AS $$
    WITH lost AS (
      SELECT task FROM optrail.tasks
      WHERE state = 'leased' AND lease_until < now()
      FOR UPDATE SKIP LOCKED)
    UPDATE optrail.tasks t SET
      state = CASE WHEN attempt < most_attempts THEN 'queued'
                   ELSE 'failed' END,
      finished = CASE WHEN attempt < most_attempts THEN NULL
                      ELSE now() END,
      pilot = NULL, leases_lost = leases_lost + 1
    FROM lost WHERE t.task = lost.task;
    WITH late AS (
      SELECT task FROM optrail.tasks
      WHERE state IN ('waiting', 'queued') AND deadline < now()
      FOR UPDATE SKIP LOCKED)
    UPDATE optrail.tasks t SET state = 'failed', finished = now()
    FROM late WHERE t.task = late.task;
  $$;

-- True if there is a task for this pilot, or one that waits for another task,
-- which another pilot runs or is there to take. A pilot that is new also waits
-- for what nobody is there to take, yet.
CREATE FUNCTION optrail.may_get_tasks(
    the_hardware text, has_repository boolean, patience_s double precision,
    is_new boolean)
  RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
      SELECT FROM optrail.tasks t
      LEFT JOIN optrail.tasks first ON first.task = t.waits_for
      WHERE t.state IN ('waiting', 'queued')
        AND t.hardware_id IN ('', the_hardware)
        AND (has_repository OR NOT t.needs_repository)
        AND (t.deadline IS NULL OR t.deadline > now())
        AND (t.state = 'queued' OR is_new OR first.state = 'leased'
          OR EXISTS (
            SELECT FROM optrail.pilots p
            WHERE first.hardware_id IN ('', p.hardware_id) AND NOT p.draining
              AND (p.seen > now() - make_interval(secs => patience_s)
                OR EXISTS (SELECT FROM optrail.tasks own
                  WHERE own.pilot = p.pilot AND own.state = 'leased')))));
  $$;

-- For a gate, which may know how far a job is, but not what others submitted.
CREATE VIEW optrail.task_states AS
  SELECT job, task, hardware_id, state FROM optrail.tasks;

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

DROP FUNCTION optrail.claim_task(text, double precision, text);
-- Leases the first task of the queue that this pilot may take. One at which it
-- has failed is left to another pilot, where there is one: a machine without a
-- compiler would use up all attempts within a moment. Without statistics, as
-- after a large job, the planner would sort the whole queue for every claim:
-- here it walks along the index.
CREATE FUNCTION optrail.claim_task(
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
