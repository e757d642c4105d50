-- Where a lane of a run was stopped, and why in words; set once, by the first look that decides.
alter table run_lanes add column stopped_after integer;
alter table run_lanes add column stopped_why text;
alter table run_lanes add constraint ck_run_lanes_stopped check (
    (stopped_after is null) = (stopped_why is null) and (stopped_after is null or stopped_after > 0)
);

-- How many questions an evaluation consists of, if not all of its lane; and up to where it was looked at beside the other arm.
alter table attempts add column asked integer;
alter table attempts add column looked integer default 0 not null;
alter table attempts add constraint ck_attempts_asked check (asked is null or asked > 0);
