-- For a gate: what compiled ahead and failed is no measurement that lacks,
-- since the tasks that waited for it compile themselves.
CREATE INDEX tasks_first ON optrail.tasks (waits_for)
  WHERE waits_for IS NOT NULL;
CREATE OR REPLACE VIEW optrail.task_states AS
  SELECT job, task, hardware_id, state,
    EXISTS (SELECT FROM optrail.tasks other
      WHERE other.waits_for = t.task AND other.job = t.job) AS is_ahead
  FROM optrail.tasks t;

-- The number of tasks that were not finished, in an order in which the trigger
-- of a task takes those that wait for it. Who may cancel may set no other
-- state: "done" is what a gate waits for.
CREATE FUNCTION optrail.cancel_job(the_job bigint) RETURNS bigint
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH open AS (
      SELECT task FROM optrail.tasks WHERE job = the_job
        AND state IN ('waiting', 'queued', 'leased') ORDER BY task FOR UPDATE),
    cancelled AS (
      UPDATE optrail.tasks t SET state = 'cancelled', finished = now()
      FROM open WHERE t.task = open.task RETURNING t.task)
    SELECT count(*) FROM cancelled;
  $$;
REVOKE EXECUTE ON FUNCTION optrail.cancel_job(bigint) FROM PUBLIC;
-- Rights by column (fleet_rights.sql) take their place: the name of who
-- submitted is what the server knows, not what it is told.
REVOKE INSERT ON optrail.jobs, optrail.tasks FROM optrail_submitter;
REVOKE UPDATE (state, finished) ON optrail.tasks FROM optrail_submitter;

-- Nobody adds to the jobs of others, whose gates would wait for it. A task may
-- wait for one of its own job that has not ended: nothing would ever queue it
-- otherwise, and `is_ahead` of a task that failed would hide it from a gate.
-- The lock lets a task that ends just now go first. It needs more rights than a
-- submitter's.
CREATE FUNCTION optrail.check_new_task() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  BEGIN
    IF NEW.state NOT IN ('waiting', 'queued') THEN
      RAISE EXCEPTION 'a new task is waiting or queued, not %', NEW.state
        USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (SELECT FROM optrail.jobs
        WHERE job = NEW.job AND submitted_by = session_user) THEN
      RAISE EXCEPTION 'job % was not submitted by %', NEW.job, session_user
        USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.waits_for IS NOT NULL THEN
      PERFORM FROM optrail.tasks WHERE task = NEW.waits_for AND job = NEW.job
        AND state IN ('waiting', 'queued', 'leased') FOR SHARE;
    END IF;
    IF (NEW.waits_for IS NULL AND NEW.state = 'waiting')
        OR (NEW.waits_for IS NOT NULL AND NOT FOUND) THEN
      RAISE EXCEPTION
        'a % task that waits for %: expected one of job % that has not ended',
        NEW.state, coalesce(NEW.waits_for::text, 'none'), NEW.job
        USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
  END $$;
CREATE TRIGGER check_new_task BEFORE INSERT ON optrail.tasks
  FOR EACH ROW EXECUTE FUNCTION optrail.check_new_task();
