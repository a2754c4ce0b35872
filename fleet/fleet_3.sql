-- Tasks that build commits are for pilots with a repository: others leave them
-- where they are, and use up no attempt.
ALTER TABLE optrail.tasks
  ADD COLUMN needs_repository boolean NOT NULL DEFAULT false;
DROP FUNCTION optrail.claim_task(text, double precision, text);
-- Leases the first task of the queue that this pilot may take. Without
-- statistics, as after a large job, the planner would sort the whole queue for
-- every claim: here it walks along the index.
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
        AND (has_repository OR NOT q.needs_repository)
        AND (q.deadline IS NULL OR q.deadline > now())
        AND NOT EXISTS (SELECT FROM optrail.pilots p
          WHERE p.pilot = the_pilot AND p.draining)
      ORDER BY q.priority DESC, q.task LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING t.task, t.attempt, t.command, t.time_limit_s;
  END $$;
