-- Answers and log-probabilities by the month in which their attempt began: one month is one table, which can be detached and
-- dropped at once. The month is the attempt's own, generated there and held here by the foreign key, so that the primary key
-- still means one row a question of an attempt.
alter table attempts add column month date not null
    generated always as (date_trunc('month', created_at at time zone 'UTC')::date) stored;
alter table attempts add constraint uq_attempts_id_month unique (id, month);

lock table samples, teacher_forced in access exclusive mode;
alter table samples rename to samples_before;
alter table samples_before rename constraint pk_samples to pk_samples_before;
alter table teacher_forced rename to teacher_forced_before;
alter table teacher_forced_before rename constraint pk_teacher_forced to pk_teacher_forced_before;

-- The default is for the release before, which names no month: right, but for attempts older than the month.
create table samples (
    attempt_id uuid not null,
    doc_id integer not null,
    month date default date_trunc('month', now() at time zone 'UTC')::date not null,
    rank integer not null,
    content_hash text not null,
    doc_hash text not null,
    prompt_hash text not null,
    target_hash text not null,
    response text not null,
    finish_reason text not null,
    prompt_tokens integer not null,
    response_tokens integer not null,
    left_truncated boolean not null,
    constraint pk_samples primary key (attempt_id, doc_id, month),
    constraint ck_samples_finish_reason check (finish_reason in ('stop', 'length')),
    constraint fk_samples_attempt_id_month foreign key (attempt_id, month) references attempts (id, month) on delete cascade,
    constraint fk_samples_content_hash foreign key (content_hash) references questions (content_hash)
) partition by range (month);

create table teacher_forced (
    attempt_id uuid not null,
    doc_id integer not null,
    month date default date_trunc('month', now() at time zone 'UTC')::date not null,
    logprobs bytea not null,
    scored_prompt_tokens integer not null,
    constraint pk_teacher_forced primary key (attempt_id, doc_id, month),
    constraint fk_teacher_forced_attempt_id_month foreign key (attempt_id, month)
        references attempts (id, month) on delete cascade
) partition by range (month);
-- Floats do not shrink (docs/scale.md): trying to costs time at every row.
alter table teacher_forced alter column logprobs set storage external;

-- What comes to no month's table is kept all the same; the reconciler makes the tables ahead, and moves what lies here.
create table samples_default partition of samples default;
create table teacher_forced_default partition of teacher_forced default;

-- What the live page, waiting runs and the queue's figures look for.
create index ix_jobs_sort on jobs (kind, lane_name, finished_at) where state = 'succeeded';
create index ix_jobs_unfinished on jobs (commit_sha, kind) where state in ('queued', 'running');
