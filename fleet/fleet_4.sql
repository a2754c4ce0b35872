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
