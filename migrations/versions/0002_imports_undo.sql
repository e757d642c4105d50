-- Runs that stand on an import cannot be told in the old schema, nor can the log of imports: both go with them.
alter table events disable trigger append_only;
delete from events where import_id is not null
    or run_id in (select run_id from jobs where import_id is not null);
alter table events enable trigger append_only;
delete from outbox where job_id in (
    select id from jobs where run_id in (select run_id from jobs where import_id is not null)
);
update jobs set reused_from_job_id = null where reused_from_job_id in (
    select id from jobs where run_id in (select run_id from jobs where import_id is not null)
);
delete from runs where id in (select run_id from jobs where import_id is not null);

drop index ix_jobs_history;
alter table jobs drop constraint ck_jobs_import;
alter table jobs drop constraint ck_jobs_adopted;
alter table jobs drop column import_id;
alter table jobs add constraint ck_jobs_adopted check ((adopted_attempt_id is not null) = (state = 'succeeded'));

create or replace function notify_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('driftline_events', new.run_id::text);
    return null;
end
$$;
drop index ix_events_import_id_id;
alter table events drop constraint ck_events_subject;
alter table events drop column import_id;
alter table events alter column run_id set not null;

drop table import_samples, import_scores, imports;
