CREATE TABLE optrail.jobs (
  job bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  priority integer NOT NULL,
  deadline timestamptz,
  submitted timestamptz NOT NULL DEFAULT now(),
  submitted_by text NOT NULL DEFAULT session_user
);
CREATE TABLE optrail.tasks (
  task bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job bigint NOT NULL REFERENCES optrail.jobs,
  command text NOT NULL,
  priority integer NOT NULL,
  hardware_id text NOT NULL,
  most_attempts integer NOT NULL CHECK (most_attempts > 0),
  time_limit_s double precision NOT NULL CHECK (time_limit_s > 0),
  deadline timestamptz,
  state text NOT NULL DEFAULT 'queued' CHECK
    (state IN ('queued', 'leased', 'done', 'failed', 'cancelled')),
  attempt integer NOT NULL DEFAULT 0,
  leases_lost integer NOT NULL DEFAULT 0,
  pilot text,
  lease_until timestamptz,
  started timestamptz,
  finished timestamptz
);
CREATE INDEX tasks_queued ON optrail.tasks (priority DESC, task)
  WHERE state = 'queued';
CREATE INDEX tasks_leased ON optrail.tasks (lease_until)
  WHERE state = 'leased';
CREATE INDEX tasks_job ON optrail.tasks (job);
CREATE TABLE optrail.attempts (
  task bigint NOT NULL REFERENCES optrail.tasks,
  attempt integer NOT NULL,
  pilot text NOT NULL,
  is_result boolean NOT NULL,
  exit_code integer NOT NULL,
  log text NOT NULL,
  finished timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (task, attempt)
);
CREATE TABLE optrail.pilots (
  pilot text PRIMARY KEY,
  host text NOT NULL,
  hardware_id text NOT NULL,
  slurm_job text,
  draining boolean NOT NULL DEFAULT false,
  seen timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION optrail.take_back_lost_tasks() RETURNS void
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
      WHERE state = 'queued' AND deadline < now()
      FOR UPDATE SKIP LOCKED)
    UPDATE optrail.tasks t SET state = 'failed', finished = now()
    FROM late WHERE t.task = late.task;
  $$;

-- True if the task was this attempt's, also where it said so before: its
-- answer may have been lost.
CREATE FUNCTION optrail.finish_task(
    the_task bigint, the_attempt integer, the_pilot text,
    result boolean, code integer, the_log text) RETURNS boolean
  LANGUAGE plpgsql AS $$
  BEGIN
    UPDATE optrail.tasks SET
      state = CASE WHEN result THEN 'done'
                   WHEN attempt < most_attempts THEN 'queued'
                   ELSE 'failed' END,
      finished = CASE WHEN result OR attempt >= most_attempts
                      THEN now() END,
      lease_until = NULL
    WHERE task = the_task AND attempt = the_attempt AND pilot = the_pilot
      AND state = 'leased';
    IF FOUND THEN
      INSERT INTO optrail.attempts
        (task, attempt, pilot, is_result, exit_code, log)
      VALUES (the_task, the_attempt, the_pilot, result, code, the_log);
      RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM optrail.attempts
      WHERE task = the_task AND attempt = the_attempt AND pilot = the_pilot);
  END $$;
