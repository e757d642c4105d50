create table api_tokens (
    id uuid default gen_random_uuid() not null,
    name text not null,
    scope varchar(32) not null,
    token_hash text not null,
    created_by text not null,
    created_at timestamptz default now() not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    constraint pk_api_tokens primary key (id),
    constraint ck_api_tokens_scope check (scope in ('read', 'submit', 'admin')),
    constraint ck_api_tokens_name check (name <> 'admin')
);
create unique index ix_api_tokens_name on api_tokens (name) where revoked_at is null;
create unique index ix_api_tokens_token_hash on api_tokens (token_hash);

create table audit_log (
    id bigint generated always as identity not null,
    at timestamptz default now() not null,
    actor text not null,
    action text not null,
    subject uuid,
    details jsonb default '{}' not null,
    constraint pk_audit_log primary key (id)
);
create index ix_audit_log_subject on audit_log (subject);
create trigger append_only before update or delete or truncate on audit_log
    for each statement execute function append_only();
