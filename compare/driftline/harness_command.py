"""The `lm_eval` command line of a lane: what a person types to get the number that the lane measures. Pure."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from driftline.contracts.lane import Argument, Lane
from driftline.contracts.words import Engine, Mode

HARNESS_ARGUMENTS = frozenset({"batch_size", "num_fewshot", "max_gen_toks", "prefill_chunk_size"})
"""Engine arguments that are options of the command line or of generation; the others are the model's."""

DEFAULT_CHUNK = 64
"""Of mode V1 on engine hf, where a lane names none."""

DEFAULT_HF_BATCH = 16


@dataclass(frozen=True, slots=True)
class HarnessCommand:
    """`line` is for a shell; `notes` say in what the lane differs from it, one sentence each."""

    line: str
    notes: tuple[str, ...]


def harness_command(lane: Lane, *, root: Path, programs: Path) -> HarnessCommand:
    """The command for a checkout at `root`; `programs` is the folder of the environment's `lm_eval`.

    A lane's variables come first, in the order in which it names them.
    """
    model = "vllm" if lane.engine is Engine.VLLM else "hf"
    words = [
        *(f"{name}={shlex.quote(value)}" for name, value in lane.environment.items()),
        shlex.quote(str(programs / "lm_eval")),
        *("--model", model),
        *("--model_args", shlex.quote(",".join(_model_arguments(lane, root)))),
        *_options(lane, root),
        *("--output_path", "out/lm_eval", "--log_samples"),
    ]
    return HarnessCommand(f"cd {shlex.quote(str(root))} && {' '.join(words)}", tuple(_notes(lane)))


def _model_arguments(lane: Lane, root: Path) -> Iterator[str]:
    source = lane.model
    yield f"pretrained={root / source.path if source.path is not None else source.hub_id}"
    if source.path is None and source.revision is not None:
        yield f"revision={source.revision}"
    for name, value in lane.engine_arguments.items():
        if name not in HARNESS_ARGUMENTS:
            yield f"{name}={_written(value)}"


def _options(lane: Lane, root: Path) -> Iterator[str]:
    arguments = lane.engine_arguments
    yield from ("--include_path", shlex.quote(str(root / Path(lane.task.yaml).parent)))
    yield from ("--tasks", shlex.quote(lane.task.name))
    default_batch: Argument = "auto" if lane.engine is Engine.VLLM else DEFAULT_HF_BATCH
    yield from ("--batch_size", str(arguments.get("batch_size", default_batch)))
    if "num_fewshot" in arguments:
        yield from ("--num_fewshot", str(arguments["num_fewshot"]))
    generation = {name: arguments[name] for name in ("max_gen_toks",) if name in arguments}
    if lane.engine is Engine.HF and lane.mode is Mode.V1:
        generation["prefill_chunk_size"] = arguments.get("prefill_chunk_size", DEFAULT_CHUNK)
    if generation:
        yield from ("--gen_kwargs", ",".join(f"{name}={_written(value)}" for name, value in generation.items()))


def _notes(lane: Lane) -> Iterator[str]:
    if lane.questions < lane.task.total_questions:
        yield (
            f"the lane asks {lane.questions} of {lane.task.total_questions} questions, in Driftline's fixed order and with "
            "the prompts of the full run; lm_eval has no option for that, so this command asks all"
        )
    if lane.engine is Engine.HF:
        yield "the lane puts a commit's kernels in the place of transformers' own; this command runs transformers' own"
    if lane.engine is Engine.VLLM and lane.runs_in is not None:
        if lane.backend == "vllm":
            yield f"vLLM {lane.runs_in.vllm} as released; for a commit, install its Python tree in that environment first"
        else:
            yield "the lane puts a commit's kernels in the place of vLLM's own by a plugin; this command runs vLLM's own"


def _written(value: Argument) -> str:
    """As lm_eval's own parser reads it back."""
    return str(value)
