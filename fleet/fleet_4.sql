-- For a gate: what compiled ahead and failed is no measurement that lacks,
-- since the tasks that waited for it compile themselves.
CREATE INDEX tasks_first ON optrail.tasks (waits_for)
  WHERE waits_for IS NOT NULL;
CREATE OR REPLACE VIEW optrail.task_states AS
  SELECT job, task, hardware_id, state,
    EXISTS (SELECT FROM optrail.tasks other WHERE other.waits_for = t.task)
      AS is_ahead
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
CREATE FUNCTION optrail.refuse_begun_task() RETURNS trigger
  LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'a new task is waiting or queued, not %', NEW.state
      USING ERRCODE = 'insufficient_privilege';
  END $$;
CREATE TRIGGER refuse_begun_task BEFORE INSERT ON optrail.tasks
  FOR EACH ROW WHEN (NEW.state NOT IN ('waiting', 'queued'))
  EXECUTE FUNCTION optrail.refuse_begun_task();
