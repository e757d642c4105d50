-- A new kind of job: the repository's own kernel tests.
alter table jobs drop constraint ck_jobs_kind;
alter table jobs add constraint ck_jobs_kind check (kind in ('build', 'check', 'tests', 'evaluate')) not valid;
alter table jobs validate constraint ck_jobs_kind;

-- What a run's jobs are configured with, frozen when it was asked for.
alter table runs add column suite jsonb;
alter table runs add column tritons jsonb;

alter table kernel_builds add column triton text default '' not null;

create table kernel_tests (
    attempt_id uuid not null,
    position integer not null,
    node_id text not null,
    outcome varchar(32) not null,
    seconds double precision not null,
    message text not null,
    constraint pk_kernel_tests primary key (attempt_id, position),
    constraint ck_kernel_tests_outcome check (outcome in (
        'passed', 'failed', 'error', 'crashed', 'timed_out', 'flooded', 'skipped', 'xfailed', 'xpassed', 'not_run'
    )),
    constraint fk_kernel_tests_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade
);

create table test_tolerances (
    attempt_id uuid not null,
    position integer not null,
    file text not null,
    line integer not null,
    scope text not null,
    name text not null,
    value double precision not null,
    constraint pk_test_tolerances primary key (attempt_id, position),
    constraint fk_test_tolerances_attempt_id foreign key(attempt_id) references attempts (id) on delete cascade
);
