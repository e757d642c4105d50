-- The tables, in the order in which they need each other. Words are CHECKs, so that a new one is a small migration.

create table repositories (
    id uuid default gen_random_uuid() not null,
    url text not null,
    main_branch text not null,
    created_at timestamptz default now() not null,
    constraint pk_repositories primary key (id),
    constraint uq_repositories_url unique (url)
);

create table runs (
    id uuid default gen_random_uuid() not null,
    name text not null,
    repository_id uuid not null,
    base_ref text not null,
    head_ref text not null,
    base_sha text not null,
    head_sha text not null,
    base_subject text not null,
    head_subject text not null,
    layout varchar(32) not null,
    base_kernel_path text not null,
    head_kernel_path text not null,
    base_kernel_tree text not null,
    head_kernel_tree text not null,
    state varchar(32) default 'queued' not null,
    margin double precision not null,
    measure_noise boolean default false not null,
    failure_reason text,
    failure_message text,
    created_by text not null,
    idempotency_key text,
    created_at timestamptz default now() not null,
    started_at timestamptz,
    finished_at timestamptz,
    view jsonb,
    method_version text,
    inputs_hash text,
    constraint pk_runs primary key (id),
    constraint uq_runs_idempotency_key unique (idempotency_key),
    constraint ck_runs_layout check (layout in ('mamba2_varlen', 'vllm')),
    constraint ck_runs_state check (
        state in ('queued', 'building', 'checking', 'evaluating', 'judging', 'done', 'failed', 'cancelled', 'superseded')
    ),
    constraint ck_runs_margin check (margin > 0 and margin <= 1),
    constraint ck_runs_finished check ((finished_at is not null) = (state in ('done', 'failed', 'cancelled', 'superseded'))),
    constraint ck_runs_judged check ((view is not null) = (state = 'done')),
    constraint ck_runs_failure check ((failure_reason is not null) = (state = 'failed')),
    constraint fk_runs_repository_id foreign key(repository_id) references repositories (id)
);
create index ix_runs_active on runs (state) where state not in ('done', 'failed', 'cancelled', 'superseded');
create index ix_runs_created_at on runs (created_at);
create index ix_runs_repository_id on runs (repository_id);

create table run_lanes (
    run_id uuid not null,
    position integer not null,
    name text not null,
    lane jsonb not null,
    lane_hash text not null,
    identical text,
    unreachable text,
    constraint pk_run_lanes primary key (run_id, position),
    constraint uq_run_lanes_run_id_name unique (run_id, name),
    constraint fk_run_lanes_run_id foreign key(run_id) references runs (id) on delete cascade
);

create table jobs (
    id uuid default gen_random_uuid() not null,
    run_id uuid not null,
    kind varchar(32) not null,
    arm varchar(32) not null,
    commit_sha text not null,
    kernel_path text not null,
    lane_name text,
    lane_hash text,
    generation integer default 0 not null,
    queue text not null,
    state varchar(32) default 'queued' not null,
    failure_kind varchar(32),
    failure_reason text,
    message text default '' not null,
    adopted_attempt_id uuid,
    reused_from_job_id uuid,
    not_before timestamptz,
    created_at timestamptz default now() not null,
    started_at timestamptz,
    finished_at timestamptz,
    constraint pk_jobs primary key (id),
    constraint uq_jobs_run_id_kind_arm_lane_name_generation unique nulls not distinct (run_id, kind, arm, lane_name, generation),
    constraint ck_jobs_kind check (kind in ('build', 'check', 'evaluate')),
    constraint ck_jobs_arm check (arm in ('base', 'head')),
    constraint ck_jobs_state check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    constraint ck_jobs_failure_kind check (failure_kind in ('transient', 'lost', 'permanent', 'unsupported')),
    constraint ck_jobs_lane check ((lane_name is not null) = (kind = 'evaluate')),
    constraint ck_jobs_adopted check ((adopted_attempt_id is not null) = (state = 'succeeded')),
    constraint ck_jobs_failure check ((failure_kind is not null) = (state = 'failed')),
    constraint ck_jobs_finished check ((finished_at is not null) = (state in ('succeeded', 'failed', 'cancelled'))),
    constraint fk_jobs_run_id foreign key(run_id) references runs (id) on delete cascade,
    constraint fk_jobs_reused_from_job_id foreign key(reused_from_job_id) references jobs (id)
);
create index ix_jobs_baseline on jobs (commit_sha, kind, lane_hash) where state = 'succeeded';

create table attempts (
    id uuid default gen_random_uuid() not null,
    job_id uuid not null,
    number integer not null,
    state varchar(32) default 'running' not null,
    worker_name text not null,
    worker jsonb not null,
    environment_id text not null,
    token_hash text not null,
    lease_until timestamptz not null,
    next_sequence integer default 0 not null,
    phase text,
    done integer,
    total integer,
    failure_kind varchar(32),
    failure_reason text,
    message text default '' not null,
    dropped_lines integer default 0 not null,
    child_seconds double precision default 0 not null,
    must_match jsonb,
    recorded jsonb,
    scores jsonb,
    check_summary jsonb,
    created_at timestamptz default now() not null,
    finished_at timestamptz,
    constraint pk_attempts primary key (id),
    constraint uq_attempts_job_id_number unique (job_id, number),
    constraint uq_attempts_token_hash unique (token_hash),
    constraint ck_attempts_state check (state in ('running', 'succeeded', 'failed', 'lost', 'cancelled')),
    constraint ck_attempts_failure_kind check (failure_kind in ('transient', 'lost', 'permanent', 'unsupported')),
    constraint ck_attempts_finished check ((finished_at is not null) = (state <> 'running')),
    constraint fk_attempts_job_id foreign key(job_id) references jobs (id) on delete cascade
);
create unique index ix_attempts_running on attempts (job_id) where state = 'running';

create table events (
    id bigint generated always as identity,
    run_id uuid not null,
    job_id uuid,
    at timestamptz default clock_timestamp() not null,
    kind text not null,
    message text default '' not null,
    constraint pk_events primary key (id),
    constraint fk_events_run_id foreign key(run_id) references runs (id),
    constraint fk_events_job_id foreign key(job_id) references jobs (id)
);
create index ix_events_run_id_id on events (run_id, id);

create table claim_tokens (
    token_hash text not null,
    job_id uuid not null,
    created_at timestamptz default now() not null,
    expires_at timestamptz not null,
    used_at timestamptz,
    constraint pk_claim_tokens primary key (token_hash),
    constraint fk_claim_tokens_job_id foreign key(job_id) references jobs (id) on delete cascade
);
create index ix_claim_tokens_job_id on claim_tokens (job_id);

create table outbox (
    id uuid default gen_random_uuid() not null,
    job_id uuid not null,
    kind text default 'work' not null,
    created_at timestamptz default now() not null,
    not_before timestamptz default now() not null,
    sent_at timestamptz,
    tries integer default 0 not null,
    last_error text,
    constraint pk_outbox primary key (id),
    constraint fk_outbox_job_id foreign key(job_id) references jobs (id) on delete cascade
);
create index ix_outbox_due on outbox (not_before) where sent_at is null;
create index ix_outbox_job_id on outbox (job_id);

create table workers (
    name text not null,
    facts jsonb not null,
    last_seen timestamptz not null,
    constraint pk_workers primary key (name)
);

create table questions (
    content_hash text not null,
    question text not null,
    target text not null,
    constraint pk_questions primary key (content_hash)
);

create table samples (
    attempt_id uuid not null,
    doc_id integer not null,
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
    constraint pk_samples primary key (attempt_id, doc_id),
    constraint ck_samples_finish_reason check (finish_reason in ('stop', 'length')),
    constraint fk_samples_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade,
    constraint fk_samples_content_hash foreign key(content_hash) references questions (content_hash)
);

create table teacher_forced (
    attempt_id uuid not null,
    doc_id integer not null,
    logprobs bytea not null,
    scored_prompt_tokens integer not null,
    constraint pk_teacher_forced primary key (attempt_id, doc_id),
    constraint fk_teacher_forced_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade
);

create table kernel_cases (
    attempt_id uuid not null,
    position integer not null,
    name text not null,
    kind varchar(32) not null,
    backend text not null,
    passed boolean not null,
    max_abs_err double precision,
    max_rel_err double precision,
    tolerance double precision not null,
    config text not null,
    message text not null,
    constraint pk_kernel_cases primary key (attempt_id, position),
    constraint ck_kernel_cases_kind check (kind in ('contract', 'outside')),
    constraint fk_kernel_cases_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade
);

create table kernel_builds (
    attempt_id uuid not null,
    position integer not null,
    kernel text not null,
    config text not null,
    arch text not null,
    registers integer,
    spills integer,
    shared_memory integer,
    compiled boolean not null,
    error text not null,
    constraint pk_kernel_builds primary key (attempt_id, position),
    constraint fk_kernel_builds_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade
);

alter table jobs add constraint fk_jobs_adopted_attempt_id foreign key (adopted_attempt_id) references attempts (id);

-- A finished state never changes, whatever a program believes.
create function keep_finished() returns trigger language plpgsql as $$
begin
    if old.finished_at is not null and new.state is distinct from old.state then
        raise exception '% % is %: a finished state never changes', tg_table_name, old.id, old.state
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger keep_finished before update on runs for each row execute function keep_finished();
create trigger keep_finished before update on jobs for each row execute function keep_finished();
create trigger keep_finished before update on attempts for each row execute function keep_finished();

-- The event log tells why; what it told is not told differently later.
create function append_only() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: % refused', tg_table_name, tg_op using errcode = 'restrict_violation';
end
$$;
create trigger append_only before update or delete or truncate on events
    for each statement execute function append_only();

-- Listeners hear of an event when its transaction commits, never before.
create function notify_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('driftline_events', new.run_id::text);
    return null;
end
$$;
create trigger notify_event after insert on events for each row execute function notify_event();
