"""`python -m driftline_worker.local check|build`: one commit's kernels on this machine, without a service.

The same checkout, sandbox, channel and child as with a service. Progress goes to stderr, the result to stdout.
Exit codes: 0 passed, 1 failed, 2 could not be judged; then stderr says what is wrong and what to do.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from driftline.contracts.jobs import BuildSpec, CheckSpec, CommitSource
from driftline.contracts.words import Arm, FailureKind, Layout
from driftline.git import GitError, Mirror
from driftline.git.names import parse_url
from pydantic import ValidationError
from rich.console import Console

from driftline_worker import sandbox
from driftline_worker.bench import Bench
from driftline_worker.ending import Abandoned, Failed
from driftline_worker.eval_environment import EnvironmentBroken, EvalEnvironment
from driftline_worker.local_result import LocalResult
from driftline_worker.sandbox import SandboxMissing
from driftline_worker.settings import ENVIRONMENT_PREFIX, ChildSettings
from driftline_worker.stop_request import StopRequest

FAILED, NOT_JUDGED, INTERRUPTED = 1, 2, 130

REMEDIES: Mapping[FailureKind, str] = {
    FailureKind.PERMANENT: "correct the commit or choose another",
    FailureKind.UNSUPPORTED: "choose another commit or machine",
    FailureKind.TRANSIENT: "try again; if it stays so, it is the commit that does it",
    FailureKind.LOST: "try again",
}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    try:
        return _judge(options.kind, options.repo, options.commit, as_json=options.as_json, console=console)
    except (GitError, EnvironmentBroken, SandboxMissing) as error:
        _tell(console, str(error))
    except ValidationError as error:
        _tell(console, f"settings: {error}")
    except OSError as error:
        _tell(
            console, f"{error.filename}: {error.strerror}; free space, or name a folder by {ENVIRONMENT_PREFIX}DATA_DIR"
        )
    except KeyboardInterrupt:
        return INTERRUPTED
    return NOT_JUDGED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="driftline_worker.local", description=__doc__)
    parser.add_argument("kind", choices=("check", "build"))
    parser.add_argument("--repo", required=True, help="URL of a git repository, or a folder on this machine")
    parser.add_argument("--commit", required=True, help="SHA, branch or tag")
    parser.add_argument("--json", action="store_true", dest="as_json", help="the result as JSON")
    return parser


def _judge(kind: Literal["check", "build"], repo: str, commit: str, *, as_json: bool, console: Console) -> int:
    settings = ChildSettings(**_defaults())
    if parse_url(repo).local:  # a folder is read in place, in mirrors that no fetch must ever fill
        settings = settings.model_copy(update={"cache_dir": settings.mirrors / "borrowed"})
    source = _source(settings, repo, commit)
    environment = EvalEnvironment.probe(settings.eval_python, settings.eval_lock)
    bench = Bench(settings, sandbox.choose(environment, settings.sandbox))
    spec = _spec(kind, source)
    with console.status(f"{kind} {source.sha[:12]}") as status:
        result = LocalResult(spec, show=status.update)
        ending = bench.run(spec, result, StopRequest())
    if isinstance(ending, Failed | Abandoned):
        told = _told(ending) if isinstance(ending, Failed) else ending.why
        _tell(console, f"{source.sha[:12]} could not be judged: {told}")
        return NOT_JUDGED
    if as_json:
        sys.stdout.write(json.dumps(result.values(), indent=2) + "\n")
    else:
        Console().print(result.table())
    return 0 if result.passed else FAILED


def _told(ending: Failed) -> str:
    """The reason, and what to do, before what the child printed."""
    first, _, printed = ending.message.partition("\n")
    told = f"{ending.reason}: {first}; {REMEDIES[ending.kind]}"
    return f"{told}\n{printed}" if printed else told


def _tell(console: Console, text: str) -> None:
    """Never broken by the width of a terminal: a pipe has none, and grep wants whole lines."""
    console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def _defaults() -> dict[str, Any]:
    """What differs from a worker's settings. A folder that the environment names still wins."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftline"
    given = {} if f"{ENVIRONMENT_PREFIX}DATA_DIR" in os.environ else {"data_dir": cache}
    return given | {"allow_local_repositories": True}


def _source(settings: ChildSettings, repo: str, commit: str) -> CommitSource:
    """Raises GitError: among others no_kernels."""
    mirror = Mirror.open(settings.mirrors, repo)
    if mirror.url.local:
        mirror.borrow()
    else:
        mirror.fetch()
    sha = mirror.resolve(commit)
    kernels = mirror.find_kernels(sha, foreign=True)
    if kernels is None:
        raise GitError(
            "no_kernels",
            f"commit {sha[:12]} of {mirror.url.shown} has no Mamba2 kernels: neither a package mamba2_varlen nor "
            "vLLM's or mamba_ssm's folder of them; choose another commit",
        )
    return CommitSource(url=repo, sha=sha, layout=kernels.layout, kernel_path=kernels.path)


def _spec(kind: Literal["check", "build"], source: CommitSource) -> CheckSpec | BuildSpec:
    job, run = uuid4(), uuid4()
    if kind == "build":
        return BuildSpec(job_id=job, run_id=run, arm=Arm.HEAD, source=source)
    backends = ["torch", "triton"] if source.layout is Layout.MAMBA2_VARLEN else ["triton"]
    return CheckSpec(job_id=job, run_id=run, arm=Arm.HEAD, source=source, backends=backends)


if __name__ == "__main__":
    sys.exit(main())
