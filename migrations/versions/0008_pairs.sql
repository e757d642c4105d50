-- A lane may be evaluated by further pairs: the first decides, the second confirms a hit, all tell the noise.
alter table jobs add column pair integer default 0 not null;
alter table jobs add constraint ck_jobs_pair check (pair = 0 or (pair > 0 and kind = 'evaluate'));
alter table jobs drop constraint uq_jobs_run_id_kind_arm_lane_name_generation;
alter table jobs add constraint uq_jobs_run_id_kind_arm_lane_name_pair_generation
    unique nulls not distinct (run_id, kind, arm, lane_name, pair, generation);
alter table runs add column repeats integer default 0 not null;
alter table runs add constraint ck_runs_repeats check (repeats >= 0);

-- A search for the first bad commit. Commits are frozen as they were when it was asked for; each step is a run.
create table bisects (
    id uuid default gen_random_uuid() not null,
    repository_id uuid not null,
    layout varchar(32) not null,
    good jsonb not null,
    commits jsonb not null,
    lane jsonb not null,
    margin double precision not null,
    state varchar(32) default 'running' not null,
    first_bad_sha text,
    message text default '' not null,
    created_by text not null,
    created_at timestamptz default now() not null,
    finished_at timestamptz,
    constraint pk_bisects primary key (id),
    constraint ck_bisects_layout check (layout in ('mamba2_varlen', 'vllm')),
    constraint ck_bisects_state check (state in ('running', 'found', 'inconclusive', 'cancelled')),
    constraint ck_bisects_margin check (margin > 0 and margin <= 1),
    constraint ck_bisects_finished check ((finished_at is not null) = (state <> 'running')),
    constraint ck_bisects_found check ((first_bad_sha is not null) = (state = 'found')),
    constraint fk_bisects_repository_id foreign key(repository_id) references repositories (id)
);
create index ix_bisects_running on bisects (created_at) where state = 'running';

create table bisect_steps (
    bisect_id uuid not null,
    number integer not null,
    sha text not null,
    run_id uuid not null,
    outcome varchar(32),
    why text default '' not null,
    constraint pk_bisect_steps primary key (bisect_id, number),
    constraint uq_bisect_steps_bisect_id_sha unique (bisect_id, sha),
    constraint ck_bisect_steps_outcome check (outcome in ('good', 'bad', 'skipped')),
    constraint fk_bisect_steps_bisect_id foreign key(bisect_id) references bisects (id) on delete cascade,
    constraint fk_bisect_steps_run_id foreign key(run_id) references runs (id)
);
create index ix_bisect_steps_run_id on bisect_steps (run_id);

-- What people decide of a change point; the latest of one point counts, and none is changed later.
create table change_point_decisions (
    id bigint generated always as identity not null,
    lane_name text not null,
    repository text not null,
    metric text not null,
    filter text not null,
    commit_sha text not null,
    state varchar(32) not null,
    who text not null,
    why text not null,
    at timestamptz default now() not null,
    constraint pk_change_point_decisions primary key (id),
    constraint ck_change_point_decisions_state check (state in ('detected', 'confirmed', 'acknowledged', 'ignored', 'fixed'))
);
create index ix_change_point_decisions_lane_name_id on change_point_decisions (lane_name, id);
create trigger append_only before update or delete or truncate on change_point_decisions
    for each statement execute function append_only();
