-- Who submitted a job cancels it, and so do maintainers and the owner of the
-- database, for somebody who is away. Here session_user is who is connected,
-- current_user the owner.
CREATE OR REPLACE FUNCTION optrail.cancel_job(the_job bigint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DECLARE
    owner text;
    ended bigint;
  BEGIN
    SELECT submitted_by INTO owner FROM optrail.jobs WHERE job = the_job;
    IF owner <> session_user
        AND NOT pg_has_role(session_user, 'optrail_maintainer', 'MEMBER')
        AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
      RAISE EXCEPTION 'job % was submitted by %: expected them or a member of '
        'optrail_maintainer to cancel it', the_job, owner
        USING ERRCODE = 'insufficient_privilege';
    END IF;
    WITH open AS (
      SELECT task FROM optrail.tasks WHERE job = the_job
        AND state IN ('waiting', 'queued', 'leased') ORDER BY task FOR UPDATE),
    cancelled AS (
      UPDATE optrail.tasks t SET state = 'cancelled', finished = now()
      FROM open WHERE t.task = open.task RETURNING t.task)
    SELECT count(*) INTO ended FROM cancelled;
    RETURN ended;
  END $$;

-- For dashboards, too, which readers look at.
CREATE OR REPLACE VIEW optrail.task_states AS
  SELECT job, task, hardware_id, state,
    EXISTS (SELECT FROM optrail.tasks other
      WHERE other.waits_for = t.task AND other.job = t.job) AS is_ahead,
    started, finished
  FROM optrail.tasks t;
