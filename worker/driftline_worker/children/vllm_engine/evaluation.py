"""One evaluation on vLLM from spec to last line: prepare, start, generate, force. Order lives here, no numbers do."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from lm_eval.api.instance import Instance
from lm_eval.evaluator import evaluate

from ..hf_engine.refusal import Refusal
from ..hf_engine.task_subset import SubsetTask, load_task, sample_fields
from ..line_channel import Channel, LineError
from ..score_fields import score_fields
from .comparability import must_match, recorded
from .engine_log import EngineLog, read_output
from .engine_start import prepare, start
from .engine_watch import EngineWatch, engine_processes, started_engines
from .rehearsal import rehearse
from .spec import VllmSpec
from .teacher_forced import forced_logprobs, forced_text

if TYPE_CHECKING:  # it imports vLLM, which has to wait until `prepare` has put the commit's in place
    from .observed_vllm import ObservedVLLM, ResponseFacts

PROGRESS_QUESTIONS = 16
"""Questions between two progress lines."""


def run_evaluation(spec: VllmSpec, channel: Channel) -> None:
    """Every line of an evaluation but the first and the last. Raises Refusal."""
    with read_output() as log:
        try:
            _run(spec, channel, log)
        except Refusal:
            raise
        except Exception as error:
            told = log.error(error)
            if told is None:
                raise
            raise Refusal(told.kind, told.reason, f"{type(error).__name__}: {told.line}") from error


def _run(spec: VllmSpec, channel: Channel, log: EngineLog) -> None:
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    prepared = prepare(spec, Path.cwd())
    lm, banner = start(spec, prepared, log)
    watch = EngineWatch(engine_processes(os.getpid()) | started_engines(), lambda: _told_gone(channel, log))
    try:
        torch.set_num_threads(spec.threads)
        task = load_task(spec)
        served = {} if prepared.report is None else rehearse(lm, prepared.report)
        channel.send(
            "environment",
            must_match=must_match(spec, lm, task),
            recorded=recorded(spec, lm, banner=banner, prepared=prepared, served=served),
        )
        generate(lm, task, spec, channel)
        force(lm, task, channel)
    finally:
        watch.stop()
        end_engine(lm)


def _told_gone(channel: Channel, log: EngineLog) -> None:
    """The last line of a child whose engine is gone and whose main thread waits for it in vain; ends the process."""
    told = log.error(RuntimeError("EngineDeadError: a process of the engine ended while it was at work"))
    assert told is not None  # noqa: S101 - the text given is itself a known sign
    with suppress(LineError):  # the main thread was quicker
        channel.fail(told.kind, told.reason, told.line)
    os._exit(1)


def generate(lm: "ObservedVLLM", task: SubsetTask, spec: VllmSpec, channel: Channel) -> None:
    """Ask the questions through lm-eval's evaluate(): a sample line for each response as it finishes, then the scores."""
    rank = {doc_id: place for place, doc_id in enumerate(spec.doc_ids)}
    sent: dict[int, tuple[str, str, str]] = {}

    def finished(instance: Instance, response: str, facts: "ResponseFacts") -> None:
        fields = sample_fields(task, instance)
        sent[fields["doc_id"]] = (fields["doc_hash"], fields["prompt_hash"], fields["target_hash"])
        channel.send("sample", rank=rank[fields["doc_id"]], response=response, **fields, **vars(facts))
        if len(sent) % PROGRESS_QUESTIONS == 1 or len(sent) == len(rank):
            channel.send("progress", phase="generate", done=len(sent), total=len(rank))

    channel.send("progress", phase="first_response", done=0, total=len(rank))
    lm.observe(finished)
    results = evaluate(lm, {"tasks": {spec.lane.task: task}})
    samples = results["samples"][spec.lane.task]
    for sample in samples:
        if sent.get(sample["doc_id"]) != (sample["doc_hash"], sample["prompt_hash"], sample["target_hash"]):
            raise Refusal(
                "transient", "samples_differ", f"question {sample['doc_id']} was not sent as lm-eval scored it"
            )
    channel.send("scores", **score_fields(results, samples, task))


def force(lm: "ObservedVLLM", task: SubsetTask, channel: Channel) -> None:
    """The teacher-forced pass over the same questions."""
    channel.send("progress", phase="teacher_forced", done=0, total=len(task.instances))
    texts = [
        forced_text(lm, i.doc_id, i.args[0], task.config.target_delimiter + str(task.doc_to_target(i.doc)))
        for i in task.instances
    ]
    done = 0
    for lines in forced_logprobs(lm, texts):
        for line in lines:
            channel.send("teacher_forced", **line)
        done += len(lines)
        channel.send("progress", phase="teacher_forced", done=done, total=len(texts))


def end_engine(lm: "ObservedVLLM") -> None:
    """Ask the engine's processes to end; the sandbox ends those that do not."""
    core = getattr(lm.model.llm_engine, "engine_core", None)
    if core is not None and hasattr(core, "shutdown"):
        core.shutdown()
