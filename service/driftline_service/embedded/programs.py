"""The Python children of the embedded stack: command lines and environments, each what it needs."""

import os
import sys
from dataclasses import dataclass

from driftline_service.embedded.child import Program
from driftline_service.embedded.folder import DataFolder
from driftline_service.embedded.options import PROJECT_ROOT, Options

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
             "DRIFTLINE_WORKER_THREADS")  # fmt: skip
"""Everything else of the caller's environment stays out, credentials above all."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What the children are told."""

    options: Options
    folder: DataFolder
    database_url: str
    url: str
    listen_fd: int

    @property
    def broker_url(self) -> str:
        return f"filesystem://{self.folder.broker}"


def service(stack: Stack) -> Program:
    environment = _service_environment(stack) | {"DRIFTLINE_LISTEN_FD": str(stack.listen_fd)}
    return _python(stack, "service", "driftline_service", environment, passed_fds=(stack.listen_fd,))


def reconciler(stack: Stack) -> Program:
    return _python(stack, "reconciler", "driftline_service.reconciler", _service_environment(stack))


def worker(stack: Stack) -> Program:
    """The worker is told no database URL and no token: it has what a worker on another host would have."""
    options = stack.options
    environment = _inherited() | {
        "DRIFTLINE_WORKER_SERVICE_URL": stack.url,
        "DRIFTLINE_WORKER_BROKER_URL": stack.broker_url,
        "DRIFTLINE_WORKER_DATA_DIR": str(stack.folder.worker),
        "DRIFTLINE_WORKER_CACHE_DIR": str(stack.folder.root / "mirrors"),  # the service's: one fetch serves both
        "DRIFTLINE_WORKER_CACHE_BYTES": "0",  # and not the worker's to clean
        "DRIFTLINE_WORKER_ASSETS_ROOT": str(options.assets_root),
        "DRIFTLINE_WORKER_EVAL_PYTHON": str(options.eval_python),
        "DRIFTLINE_WORKER_CONCURRENCY": str(options.concurrency),
        "DRIFTLINE_WORKER_ALLOW_LOCAL_REPOSITORIES": "true",
    }
    return _python(stack, "worker", "driftline_worker", environment)


def _service_environment(stack: Stack) -> dict[str, str]:
    return _inherited() | {
        "DRIFTLINE_DATABASE_URL": stack.database_url,
        "DRIFTLINE_BROKER_URL": stack.broker_url,
        "DRIFTLINE_DATA_DIR": str(stack.folder.root),
        "DRIFTLINE_CONFIG_PATH": str(stack.options.config),
        "DRIFTLINE_ASSETS_ROOT": str(stack.options.assets_root),
        "DRIFTLINE_DASHBOARDS_DIR": str(PROJECT_ROOT / "dashboards"),
        "DRIFTLINE_ADMIN_TOKEN_FILE": str(stack.folder.token_file),
        "DRIFTLINE_PUBLIC_URL": stack.url,
        "DRIFTLINE_ALLOW_LOCAL_REPOSITORIES": "true",
        "DRIFTLINE_EMBEDDED": "true",
    }


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | {"PYTHONUNBUFFERED": "1"}


def _python(
    stack: Stack, name: str, module: str, environment: dict[str, str], *, passed_fds: tuple[int, ...] = ()
) -> Program:
    """`-P`: a folder kernels/ in the working directory must not become importable."""
    return Program(
        name=name, arguments=(sys.executable, "-P", "-m", module), environment=environment,
        folder=stack.folder.root,        log=stack.folder.logs / f"{name}.log", passed_fds=passed_fds,
    )  # fmt: skip
