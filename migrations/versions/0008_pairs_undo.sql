drop table change_point_decisions;
drop table bisect_steps;
drop table bisects;

-- The old schema knows one pair of a lane: what further ones measured goes. Their events stay, and name no job any more.
alter table events disable trigger append_only;
update events set job_id = null where job_id in (select id from jobs where pair > 0);
alter table events enable trigger append_only;
update jobs set reused_from_job_id = null where reused_from_job_id in (select id from jobs where pair > 0);
delete from jobs where pair > 0;

alter table runs drop column repeats;
alter table jobs drop constraint uq_jobs_run_id_kind_arm_lane_name_pair_generation;
alter table jobs drop column pair;
alter table jobs add constraint uq_jobs_run_id_kind_arm_lane_name_generation
    unique nulls not distinct (run_id, kind, arm, lane_name, generation);
