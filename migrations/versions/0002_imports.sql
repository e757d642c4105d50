create table imports (
    id uuid default gen_random_uuid() not null,
    kind varchar(32) not null,
    content_hash text not null,
    lane_name text not null,
    task text not null,
    commit_sha text not null,
    repository text,
    facts jsonb not null,
    details jsonb not null,
    warnings text[] default '{}' not null,
    reported_by text not null,
    note text default '' not null,
    measured_at timestamptz,
    created_at timestamptz default clock_timestamp() not null,
    promoted_at timestamptz,
    promoted_by text,
    environment_id text,
    lane_hash text,
    withdrawn_at timestamptz,
    constraint pk_imports primary key (id),
    constraint ck_imports_kind check (kind in ('samples', 'figures')),
    constraint ck_imports_commit check (commit_sha ~ '^[0-9a-f]{7,40}$'),
    constraint ck_imports_promoted check (num_nonnulls(promoted_at, promoted_by, environment_id, lane_hash) in (0, 4)),
    constraint ck_imports_baseline check (
        promoted_at is null
        or (kind = 'samples' and repository is not null and length(commit_sha) = 40 and withdrawn_at is null)
    )
);
create unique index ix_imports_content_hash on imports (content_hash) where withdrawn_at is null;
create index ix_imports_lane_name_created_at on imports (lane_name, created_at);
create index ix_imports_created_at on imports (created_at, id);
create index ix_imports_baseline on imports (commit_sha, lane_hash) where promoted_at is not null;

create table import_scores (
    import_id uuid not null,
    metric text not null,
    filter text not null,
    value double precision not null,
    stderr double precision,
    questions integer not null,
    constraint pk_import_scores primary key (import_id, metric, filter),
    constraint ck_import_scores_questions check (questions > 0),
    constraint fk_import_scores_import_id foreign key(import_id) references imports (id) on delete cascade
);

create table import_samples (
    import_id uuid not null,
    doc_id integer not null,
    content_hash text not null,
    doc_hash text not null,
    prompt_hash text not null,
    target_hash text not null,
    response text not null,
    scores jsonb not null,
    extracted jsonb not null,
    constraint pk_import_samples primary key (import_id, doc_id),
    constraint fk_import_samples_import_id foreign key(import_id) references imports (id) on delete cascade,
    constraint fk_import_samples_content_hash foreign key(content_hash) references questions (content_hash)
);

-- An event tells of a run or of an import. The old NOT NULL is kept as a CHECK that says so.
alter table events alter column run_id drop not null;
alter table events add column import_id uuid;
alter table events add constraint fk_events_import_id foreign key (import_id) references imports (id);
alter table events add constraint ck_events_subject check (num_nonnulls(run_id, import_id) = 1);
create index ix_events_import_id_id on events (import_id, id) where import_id is not null;

create or replace function notify_event() returns trigger language plpgsql as $$
begin
    if new.run_id is not null then
        perform pg_notify('driftline_events', new.run_id::text);
    end if;
    return null;
end
$$;

-- A promoted import may stand for the evaluation of a base arm.
alter table jobs add column import_id uuid;
alter table jobs add constraint fk_jobs_import_id foreign key (import_id) references imports (id);
alter table jobs drop constraint ck_jobs_adopted;
alter table jobs add constraint ck_jobs_adopted check (
    (adopted_attempt_id is not null or import_id is not null) = (state = 'succeeded')
);
create index ix_jobs_history on jobs (lane_name, finished_at) where kind = 'evaluate' and state = 'succeeded';
alter table jobs add constraint ck_jobs_import check (
    import_id is null or (adopted_attempt_id is null and kind = 'evaluate' and arm = 'base')
);
