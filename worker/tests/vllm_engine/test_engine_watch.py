"""A process of an engine that ends is noticed, killed or not yet buried; one that is allowed to end is not."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

from driftline_worker.children.vllm_engine.engine_watch import EngineWatch, engine_processes, started_engines

ENGINE = "import sys, time; sys.stdout.write('up\\n'); sys.stdout.flush(); time.sleep(60)"


def engine(title: str) -> "subprocess.Popen[str]":
    """A process that calls itself `title`, as vLLM's do."""
    process = subprocess.Popen([title, "-c", ENGINE], executable=sys.executable, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def ended(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_engines_are_known_by_their_title() -> None:
    core, helper = engine("VLLM::EngineCore"), engine("python")
    try:
        found = engine_processes(os.getpid())
        assert core.pid in found
        assert helper.pid not in found
        assert core.pid not in engine_processes(helper.pid)
    finally:
        ended(core)
        ended(helper)


def test_an_engine_without_a_title_is_known_by_the_name_it_was_started_with() -> None:
    spawn = multiprocessing.get_context("spawn")
    core, helper = (spawn.Process(target=time.sleep, args=(60,), name=name) for name in ("EngineCore_0", "helper"))
    told = threading.Event()
    for process in (core, helper):
        process.start()
    try:
        assert started_engines() == {core.pid}
        assert core.pid not in engine_processes(os.getpid())
        watch = EngineWatch(started_engines(), told.set, grace_seconds=0.1)
        core.kill()
        assert told.wait(20)
        watch.stop()
    finally:
        for process in (core, helper):
            process.kill()
            process.join()


def test_a_killed_engine_is_told_once() -> None:
    core, told = engine("VLLM::EngineCore"), threading.Event()
    EngineWatch(frozenset({core.pid}), told.set, grace_seconds=0.1)
    assert not told.wait(0.8)
    core.kill()  # a zombie until it is waited for, which nobody does here yet
    assert told.wait(20)
    ended(core)


def test_an_engine_that_may_end_is_not_told() -> None:
    core, told = engine("VLLM::EngineCore"), threading.Event()
    watch = EngineWatch(frozenset({core.pid}), told.set, grace_seconds=0.0)
    watch.stop()
    ended(core)
    time.sleep(0.7)
    assert not told.is_set()


def test_an_engine_in_the_same_process_has_nothing_to_watch() -> None:
    told = threading.Event()
    watch = EngineWatch(frozenset(), told.set, grace_seconds=0.0)
    time.sleep(0.7)
    watch.stop()
    assert not told.is_set()
