create table github_deliveries (
    id text not null,
    event text not null,
    payload jsonb not null,
    received_at timestamptz default now() not null,
    handled_at timestamptz,
    outcome text,
    tries integer default 0 not null,
    constraint pk_github_deliveries primary key (id)
);
create index ix_github_deliveries_waiting on github_deliveries (received_at) where handled_at is null;

create table github_pulls (
    id uuid default gen_random_uuid() not null,
    repository text not null,
    number integer not null,
    installation_id bigint not null,
    clone_url text not null,
    base_ref text not null,
    head_sha text not null,
    fork boolean not null,
    open boolean not null,
    approved_sha text,
    notice text default '' not null,
    comment_id bigint,
    shown text,
    look boolean default true not null,
    next_try_at timestamptz,
    tries integer default 0 not null,
    last_error text,
    created_at timestamptz default now() not null,
    constraint pk_github_pulls primary key (id),
    constraint uq_github_pulls_repository_number unique (repository, number)
);

create table github_runs (
    run_id uuid not null,
    pull_id uuid not null,
    check_run_id bigint,
    shown text,
    shown_state text,
    created_at timestamptz default now() not null,
    constraint pk_github_runs primary key (run_id),
    constraint fk_github_runs_run_id foreign key (run_id) references runs (id) on delete cascade,
    constraint fk_github_runs_pull_id foreign key (pull_id) references github_pulls (id) on delete cascade
);
create index ix_github_runs_pull_id on github_runs (pull_id);
