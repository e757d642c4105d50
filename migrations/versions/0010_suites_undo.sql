drop table test_tolerances;
drop table kernel_tests;

-- The old schema knows no such job: it goes, with what it measured. Its events stay, and name no job any more.
alter table events disable trigger append_only;
update events set job_id = null where job_id in (select id from jobs where kind = 'tests');
alter table events enable trigger append_only;
update jobs set reused_from_job_id = null where reused_from_job_id in (select id from jobs where kind = 'tests');
delete from jobs where kind = 'tests';

-- Of a kernel the old schema holds one build for each architecture: the worker's own Triton's, which comes first.
delete from kernel_builds as later using kernel_builds as first
    where later.attempt_id = first.attempt_id and later.kernel = first.kernel and later.config = first.config
    and later.arch = first.arch and later.position > first.position;
alter table kernel_builds drop column triton;

alter table runs drop column suite;
alter table runs drop column tritons;
alter table jobs drop constraint ck_jobs_kind;
alter table jobs add constraint ck_jobs_kind check (kind in ('build', 'check', 'evaluate'));
