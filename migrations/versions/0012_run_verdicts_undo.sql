drop trigger count_verdict on runs;
drop function count_verdict();
drop table run_verdicts;
