"""The rules that hold the packages apart, seen from outside."""

import subprocess
import sys
from pathlib import Path

import pytest
from driftline_service.dispatch.sender import CLAIM_TOKEN_LIFE
from driftline_service.settings import Settings
from driftline_service.worker_api.router import DEFAULT_LEASE_SECONDS
from driftline_worker.celery_app import VISIBILITY_SECONDS
from driftline_worker.heartbeat import BEATS_PER_LEASE, LONGEST_PAUSE_SECONDS
from driftline_worker.settings import ChildSettings

ROOT = Path(__file__).resolve().parent.parent
EVAL = ROOT / ".venv-eval" / "bin" / "python"
PROBE = "import importlib.util, sys; sys.exit(importlib.util.find_spec('kernels') is not None)"


@pytest.mark.parametrize("python", [sys.executable, str(EVAL)])
def test_no_process_of_ours_can_import_kernels(python):
    assert subprocess.run([python, "-P", "-c", PROBE], cwd=ROOT, check=False).returncode == 0


def test_the_control_environment_has_no_torch_and_the_command_line_is_light():
    code = (
        "import sys, importlib.util, driftline.cli, driftline.judge\n"
        "assert importlib.util.find_spec('torch') is None\n"
        "heavy = {'scipy.stats', 'fastapi', 'sqlalchemy', 'celery'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, check=True)


def test_children_import_nothing_of_ours_but_the_trusted_check():
    children = (ROOT / "worker" / "driftline_worker" / "children").rglob("*.py")
    for path in children:
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith(("import ", "from ")):
                assert not line.split()[1].startswith(("driftline.", "driftline_service")), f"{path}: {line}"


def test_every_committed_file_keeps_the_repository_rules():
    subprocess.run([sys.executable, "-P", "tests/repository_rules.py"], cwd=ROOT, check=True)


def test_times_that_service_and_worker_must_agree_on():
    """They never import each other, so nothing else holds these together: a message that Redis gives out once more opens no
    job, a lease outlasts two lost heartbeats, and Redis forgets nothing that still runs."""
    claim = CLAIM_TOKEN_LIFE.total_seconds()
    assert claim < VISIBILITY_SECONDS
    lease = Settings.model_fields["lease_seconds"]
    assert lease.default == DEFAULT_LEASE_SECONDS
    assert lease.default >= BEATS_PER_LEASE * LONGEST_PAUSE_SECONDS
    assert ChildSettings.model_fields["total_seconds"].default + lease.default < VISIBILITY_SECONDS
