"""lm-eval's own files over HTTP: stored once and whole, refused by name, never half-written."""

import json
from typing import Any

import httpx
import pytest
from driftline.contracts.imports import ImportDetail, RescoreReport
from driftline_service.database.tables import Import, ImportSample, ImportScore, Question
from sqlalchemy import func, select

from . import lm_eval_files as files

COMMIT = "3" * 40
TAR = {"Content-Type": "application/x-tar"}


def send(api: httpx.Client, body: bytes, **changes: str) -> httpx.Response:
    about = {"commit": COMMIT, "lane": "canary V0", "reported_by": "Ada", "note": "twelve questions"} | changes
    return api.post("/api/v1/imports", params=about, content=body, headers=TAR)


def rows(world: Any) -> list[int]:
    with world.sessions() as session:
        return [
            session.scalar(select(func.count()).select_from(table)) for table in (Import, ImportScore, ImportSample)
        ]


def test_what_lm_eval_wrote_is_stored_with_all_it_says(api: httpx.Client, world: Any) -> None:
    answer = send(api, files.real(), repo="https://example.org/kernels.git")
    assert answer.status_code == 201, answer.text
    view = answer.json()
    assert answer.headers["location"] == f"/api/v1/imports/{view['import_id']}"
    assert (view["kind"], view["task"], view["questions"], view["measured_at"]) == (
        "samples", "gsm8k_canary", 12, "2026-12-02T08:55:01.231065Z",
    )  # fmt: skip
    assert [(score["filter"], round(score["value"], 6), round(score["stderr"], 6)) for score in view["scores"]] == [
        ("strict-match", 0.916667, 0.083333), ("flexible-extract", 0.916667, 0.083333),
    ]  # fmt: skip
    assert view["warnings"] == []
    detail = ImportDetail.model_validate(api.get(f"/api/v1/imports/{view['import_id']}").json())
    assert detail.facts["lm_eval"] == "0.4.13"
    assert detail.facts["num_fewshot"] == "3"
    assert detail.facts["filters"] == '["strict-match","flexible-extract"]'
    assert detail.facts["seeds"] == "fewshot 1234; greedy decoding"
    assert detail.details["model_args"] == '{"dtype":"float32","pretrained":"canary/model"}'
    assert rows(world) == [1, 2, 12]
    with world.sessions() as session:
        asked = dict(session.execute(select(ImportSample.doc_id, Question.question).join(Question)).all())
    assert asked == {line["doc_id"]: line["doc"]["question"] for line in files.lines()}


def test_the_same_files_again_are_the_same_import(api: httpx.Client, world: Any) -> None:
    first = send(api, files.real())
    again = send(api, files.real("w"), reported_by="Bob")
    assert (again.status_code, again.json()["import_id"]) == (200, first.json()["import_id"])
    refused = send(api, files.real(), commit="4" * 40)
    assert (refused.status_code, refused.json()["reason"]) == (409, "imported_elsewhere")
    assert rows(world) == [1, 2, 12]


def test_gzipped_samples_and_what_postgres_cannot_hold(api: httpx.Client) -> None:
    """NUL and half a surrogate pair in a response are valid JSON; rescore must see them as the model said them."""

    def change(samples: list[files.Line]) -> None:
        for line in samples:
            if line["doc_id"] == 3:
                line["resps"] = [[line["resps"][0][0] + "\n\0 \ud83d"]]

    answer = send(api, files.spoilt(change_lines=change, gzipped=True))
    assert answer.status_code == 201, answer.text
    report = RescoreReport.model_validate(api.get(f"/api/v1/imports/{answer.json()['import_id']}/rescore").json())
    assert report.same
    assert [each.questions for each in report.evaluations[0].filters] == [12, 12]


def test_an_import_is_scored_again(api: httpx.Client) -> None:
    """lm-eval is said to have called question 5 wrong under strict-match."""
    samples = files.lines()
    changed = next(line for line in samples if line["doc_id"] == 5 and line["filter"] == "strict-match")
    assert changed["exact_match"] == 1.0
    changed["exact_match"] = 0.0
    body = files.spoilt(lambda table: files.rescored(samples, table), lambda _: samples)
    stored = send(api, body).json()["import_id"]
    report = api.get(f"/api/v1/imports/{stored}/rescore").json()
    (difference,) = report["evaluations"][0]["differences"]
    gold = changed["target"].split("#### ")[1]
    assert difference == {
        "doc_id": 5, "filter": "strict-match", "stored": 0.0, "rescored": 1.0, "extracted": gold, "stored_extracted": gold,
    }  # fmt: skip
    assert api.get(f"/api/v1/imports/{stored}/rescore").json() == report, "nothing was changed"


def doubled(samples: list[files.Line]) -> list[files.Line]:
    return [*samples, samples[0]]


def other_question(samples: list[files.Line]) -> None:
    samples[-1]["prompt_hash"] = "0" * 64


REFUSED = {
    "half the samples": (files.spoilt(change_lines=lambda found: found[:13]), "line_count"),
    "a question twice": (files.spoilt(change_lines=doubled), "line_count"),
    "another mean": (
        files.spoilt(lambda table: table["results"][files.TASK].update({"exact_match,strict-match": 0.5})), "mean_mismatch",
    ),
    "another task": (files.spoilt(lambda table: table["results"].update(x=table["results"].pop(files.TASK))), "other_task"),
    "a prompt that its hash denies": (files.spoilt(change_lines=other_question), "mixed_hashes"),
    "no samples": (files.packed({files.RESULTS: (files.DATA / files.RESULTS).read_bytes()}), "no_samples"),
    "no results": (files.packed({files.SAMPLES: (files.DATA / files.SAMPLES).read_bytes()}), "no_results"),
    "results that are none": (files.packed({files.RESULTS: b"{}"}), "not_results"),
    "cut JSON": (files.packed({files.RESULTS: b'{"results": {'}), "bad_json"),
    "a line that is none": (
        files.packed({files.RESULTS: (files.DATA / files.RESULTS).read_bytes(), files.SAMPLES: b'{"doc_id": 0}\n'}), "bad_sample",
    ),
    "another filter of the same name": (
        files.spoilt(lambda table: table["configs"][files.TASK]["filter_list"][0]["filter"][0].update(regex_pattern="is (.*)")),
        "other_filters",
    ),
    "another metric of the same name": (
        files.spoilt(lambda table: table["configs"][files.TASK]["metric_list"][0].update(ignore_case=False)), "other_filters",
    ),
    "shots unsaid": (files.spoilt(lambda table: table.pop("n-shot")), "no_shots"),
    "two answers a question": (
        files.spoilt(change_lines=lambda found: [line | {"resps": [["a", "b"]]} for line in found]), "repeated_answers",
    ),
    "NaN": (
        files.spoilt(lambda table: table["results"][files.TASK].update({"exact_match,strict-match": float("nan")})),
        "mean_mismatch",
    ),
    "nothing": (b"", "empty_archive"),
    "no archive": (b"results " * 500, "bad_archive"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_hold_together_is_refused_by_name(api: httpx.Client, world: Any, what: str) -> None:
    body, reason = REFUSED[what]
    answer = send(api, body)
    assert (answer.status_code, answer.json()["reason"]) == (422, reason), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert "head, " not in answer.json()["detail"]
    assert "/tmp" not in answer.json()["detail"]
    assert rows(world) == [0, 0, 0]


def test_a_limited_evaluation_is_stored_with_its_warning(api: httpx.Client) -> None:
    body = files.spoilt(lambda table: table["n-samples"][files.TASK].update(original=1319))
    view = send(api, body).json()
    assert len(view["warnings"]) == 1
    assert "12 of 1319 questions were asked" in view["warnings"][0]
    assert "12 of 1319 questions were asked" in api.get(f"/imports/{view['import_id']}").text


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"lane": "canary V9"}, 422, "unknown_lane"),
        ({"lane": "granite-4.0-tiny V1"}, 422, "other_task"),
        ({"commit": "main"}, 422, "malformed"),
        ({"reported_by": ""}, 422, "malformed"),
        ({"repo": "https://me:secret@example.org/x"}, 422, "malformed"),
    ],
)
def test_a_wrong_request_is_refused(api: httpx.Client, changes: dict[str, str], status: int, reason: str) -> None:
    answer = send(api, files.real(), **changes)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text


def test_the_caps_hold(api: httpx.Client, imports_folder: Any) -> None:
    large = send(api, bytes(3 << 20))
    assert (large.status_code, large.json()["reason"]) == (413, "body_too_large")

    def chunks() -> Any:
        for _ in range(48):
            yield bytes(1 << 16)

    about = {"commit": COMMIT, "lane": "canary V0", "reported_by": "Ada"}
    undeclared = api.post("/api/v1/imports", params=about, content=chunks(), headers=TAR)
    assert (undeclared.status_code, undeclared.json()["reason"]) == (413, "body_too_large")
    bomb = files.packed({files.RESULTS: bytes(9 << 20)})
    assert len(bomb) < 100_000
    unpacked = send(api, bomb)
    assert (unpacked.status_code, unpacked.json()["reason"]) == (413, "archive_too_large")
    assert list((imports_folder / "incoming").iterdir()) == [], "nothing is left behind"


def test_without_a_token_nothing_is_read(api: httpx.Client, world: Any) -> None:
    for token, status in (("Bearer wrong", 403), ("", 401)):
        answer = api.post(
            "/api/v1/imports",
            params={"commit": COMMIT, "lane": "canary V0", "reported_by": "Ada"},
            content=files.real(),
            headers=TAR | {"Authorization": token},
        )
        assert answer.status_code == status, json.dumps(answer.json())
    assert rows(world) == [0, 0, 0]
