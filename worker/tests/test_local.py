"""`check` and `build` without a service: the JSON, the exit code, and one line for everything that cannot be judged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from driftline.contracts.channel import Case, CheckSummary, KernelBuild
from driftline.contracts.jobs import BuildSpec, CheckSpec
from driftline.contracts.words import CaseKind
from driftline.contracts.worker_api import ReportedLine
from driftline_worker.local_result import LocalResult
from git_repository import commit, git


def local(kind: str, repo: object, commit: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "400"}
    command = [
        sys.executable,
        "-P",
        "-m",
        "driftline_worker.local",
        kind,
        "--repo",
        str(repo),
        "--commit",
        commit,
        "--json",
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("repo", "commit", "said"),
    [
        ("{repository}", "nowhere", "no commit 'nowhere'"),
        ("{repository}", "a..b", "no commit name"),
        ("/no/such/folder", "main", "does not exist"),
        ("{repository}/src", "main", "no git repository"),
        ("ext::sh -c id", "main", "remote helper"),
    ],
)
def test_what_cannot_be_judged_is_told_in_a_line(
    repository: Path, tmp_path: Path, repo: str, commit: str, said: str
) -> None:
    answer = local("check", repo.format(repository=repository), commit, tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_commit_without_kernels(repository: Path, tmp_path: Path) -> None:
    rewrite(repository, "README", "nothing here", remove="src")
    answer = local("check", repository, "main", tmp_path)
    assert answer.returncode == 2
    assert "no Mamba2 kernels" in answer.stderr


def test_a_cache_that_cannot_be_written_is_named(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = local("check", repository, "main", tmp_path / "file")
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert f"{tmp_path / 'file'}" in answer.stderr
    assert "DRIFTLINE_WORKER_DATA_DIR" in answer.stderr


def test_kernels_that_do_not_import(repository: Path, tmp_path: Path) -> None:
    """Through the real check child, in the evaluation environment."""
    rewrite(repository, "src/mamba2_varlen/__init__.py", "raise RuntimeError('broken on purpose')\n")
    for kind in ("check", "build"):
        answer = local(kind, repository, "main", tmp_path)
        assert answer.returncode == 2, answer.stderr
        assert "could not be judged" in answer.stderr
        assert "broken on purpose; correct the commit or choose another" in answer.stderr, "one line, with a remedy"
        assert answer.stdout == ""


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("vllm/model_executor/layers/mamba/ops", "unknown_signature: ssd_combined has no known signature"),
        ("mamba_ssm/ops/triton", "kernels_do_not_import: mamba_ssm does not import"),
    ],
)
def test_other_layouts_reach_their_adapters_through_the_child(
    repository: Path, tmp_path: Path, folder: str, said: str
) -> None:
    (repository / folder).mkdir(parents=True)
    (repository / folder / "__init__.py").touch()
    rewrite(repository, f"{folder}/ssd_combined.py", "import torch\n", remove="src")
    answer = local("check", repository, "main", tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert said in answer.stderr


def result(spec: CheckSpec | BuildSpec, *lines: ReportedLine) -> LocalResult:
    made = LocalResult(spec, show=lambda text: None)
    for line in lines:
        made.put(line, 1)
    return made


def case(name: str, *, passed: bool, kind: CaseKind = CaseKind.CONTRACT) -> Case:
    return Case(
        name=name, kind=kind, backend="torch", passed=passed, max_abs_err=None, max_rel_err=None, tolerance=1e-5
    )


def test_only_contract_cases_decide_a_check(check_spec: CheckSpec) -> None:
    summary = CheckSummary(layout="mamba2_varlen", era="metadata", device="cpu", backends=["torch"])
    outside = case("b", passed=False, kind=CaseKind.OUTSIDE)
    passed = result(check_spec, summary, case("a", passed=True), outside)
    assert passed.passed
    assert passed.values() == {
        "commit": "0" * 40, "layout": "mamba2_varlen", "era": "metadata", "device": "cpu", "passed": True,
        "cases": [
            {"name": "a", "kind": "contract", "backend": "torch", "passed": True, "max_abs_err": None,
             "max_rel_err": None, "tolerance": 1e-5, "config": "", "message": ""},
            {"name": "b", "kind": "outside", "backend": "torch", "passed": False, "max_abs_err": None,
             "max_rel_err": None, "tolerance": 1e-5, "config": "", "message": ""},
        ],
    }  # fmt: skip
    assert not result(check_spec, summary, case("a", passed=True), case("c", passed=False)).passed
    assert not result(check_spec, summary, outside).passed, "nothing that decides was checked"
    assert not result(check_spec).passed


def test_a_build_passes_when_every_kernel_compiled(build_spec: BuildSpec) -> None:
    good = KernelBuild(kernel="k", config="c", arch="sm_90", registers=32, spills=0, shared_memory=0, compiled=True)
    bad = KernelBuild(kernel="k2", config="c", arch="sm_90", compiled=False, error="ptxas: no")
    assert result(build_spec, good).passed
    assert not result(build_spec, good, bad).passed
    assert not result(build_spec).passed
    assert result(build_spec, good).values()["kernels"] == [good.model_dump(mode="json", exclude={"type"})]


def rewrite(repository: Path, name: str, text: str, *, remove: str | None = None) -> None:
    if remove is not None:
        git(repository, "rm", "-rq", remove)
    commit(repository, "Change", {name: text})
