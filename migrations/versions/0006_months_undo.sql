create table samples_whole (like samples including defaults);
insert into samples_whole select * from samples;
create table teacher_forced_whole (like teacher_forced including defaults);
insert into teacher_forced_whole select * from teacher_forced;
drop table samples, teacher_forced;
alter table samples_whole rename to samples;
alter table samples drop column month;
alter table samples
    add constraint pk_samples primary key (attempt_id, doc_id),
    add constraint ck_samples_finish_reason check (finish_reason in ('stop', 'length')),
    add constraint fk_samples_attempt_id foreign key (attempt_id) references attempts (id) on delete cascade,
    add constraint fk_samples_content_hash foreign key (content_hash) references questions (content_hash);
alter table teacher_forced_whole rename to teacher_forced;
alter table teacher_forced drop column month;
alter table teacher_forced
    add constraint pk_teacher_forced primary key (attempt_id, doc_id),
    add constraint fk_teacher_forced_attempt_id foreign key (attempt_id) references attempts (id) on delete cascade;
drop index ix_jobs_sort, ix_jobs_unfinished;
alter table attempts drop constraint uq_attempts_id_month, drop column month;
