create table run_verdicts (
    verdict text not null,
    kernel_check text not null,
    runs bigint not null,
    constraint pk_run_verdicts primary key (verdict, kernel_check),
    constraint ck_run_verdicts_runs check (runs > 0)
);

-- One reconciler judges, one run a transaction: nobody waits for a row here.
create function count_verdict() returns trigger language plpgsql as $$
begin
    insert into run_verdicts (verdict, kernel_check, runs)
    values (coalesce(new.view ->> 'verdict', 'none'), coalesce(new.view -> 'kernel_check' ->> 'result', 'none'), 1)
    on conflict (verdict, kernel_check) do update set runs = run_verdicts.runs + 1;
    return null;
end
$$;
create trigger count_verdict after update of state on runs
    for each row when (new.state = 'done' and old.state <> 'done') execute function count_verdict();

insert into run_verdicts (verdict, kernel_check, runs)
select coalesce(view ->> 'verdict', 'none'), coalesce(view -> 'kernel_check' ->> 'result', 'none'), count(*)
from runs where state = 'done' group by 1, 2;
