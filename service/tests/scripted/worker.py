"""A worker over real HTTP, without children."""

import json
from typing import Any
from uuid import UUID

import httpx
from driftline.contracts.worker_api import Claim, WorkerFacts

from scripted.answers import forced, sample, scores


class ScriptedWorker:
    """A worker that speaks the real HTTP; what its children say is written down here."""

    def __init__(self, client: httpx.Client, name: str = "w1", environment_id: str = "env-1") -> None:
        self.client = client
        self.facts = WorkerFacts(name=name, host="h", environment_id=environment_id, sandbox="plain")
        self.must_match = {"model": "canary@1"}
        self.outcomes = {"base": {"a": "passed"}, "head": {"a": "passed"}}
        """of the repository's own tests"""

    def post(self, path: str, token: str, body: Any = None) -> httpx.Response:
        content = None if body is None else json.dumps(body)
        return self.client.post(f"/worker/v1{path}", content=content, headers={"Authorization": f"Bearer {token}"})

    def try_claim(self, job_id: UUID, claim_token: str) -> httpx.Response:
        return self.post(f"/jobs/{job_id}/claim", claim_token, {"worker": self.facts.model_dump()})

    def claim(self, message: tuple[str, UUID, str]) -> Claim:
        response = self.try_claim(message[1], message[2])
        assert response.status_code == 200, response.text
        return Claim.model_validate(response.json())

    def report(self, claim: Claim, lines: list[dict[str, Any]], sequence: int = 0) -> httpx.Response:
        path = f"/attempts/{claim.attempt_id}/lines"
        return self.post(path, claim.attempt_token, {"sequence": sequence, "lines": lines})

    def finish(self, claim: Claim, batches: int = 1, **more: Any) -> httpx.Response:
        body = {"outcome": "succeeded", "batches": batches} | more
        return self.post(f"/attempts/{claim.attempt_id}/finish", claim.attempt_token, body)

    def fail(self, claim: Claim, kind: str, reason: str = "child_died", **more: Any) -> httpx.Response:
        return self.finish(claim, 0, outcome="failed", failure_kind=kind, reason=reason, message="exit 1", **more)

    def work(self, message: tuple[str, UUID, str]) -> Claim:
        """Do a whole job."""
        return self.complete(self.claim(message))

    def complete(self, claim: Claim) -> Claim:
        """Report what a good child says, and finish."""
        assert self.report(claim, self.lines(claim.spec)).json()["action"] == "continue"
        finished = self.finish(claim)
        assert finished.json() == {"action": "continue", "reason": ""}, finished.text
        return claim

    def lines(self, spec: Any) -> list[dict[str, Any]]:
        """What a good child says."""
        environment = {"type": "environment", "must_match": self.must_match, "recorded": {"torch": "2.13"}}
        if spec.kind == "build":
            build = {"type": "kernel_build", "kernel": "scan", "config": "64", "arch": "sm_80", "compiled": True}
            return [environment, build | {"registers": 96, "spills": 0, "shared_memory": 4096}]
        if spec.kind == "tests":
            tolerance = {"type": "tolerance", "file": "tests/test_a.py", "line": 3, "scope": "test_a", "name": "atol"}
            tests = [
                {"type": "kernel_test", "node_id": name, "outcome": outcome, "seconds": 0.5, "message": ""}
                for name, outcome in self.outcomes[spec.arm].items()
            ]
            value = {"base": 1e-3, "head": 1e-2}[spec.arm]
            return [environment, tolerance | {"value": value}, *tests]
        if spec.kind == "check":
            summary = {"type": "check_summary", "layout": "mamba2_varlen", "era": "ours", "device": "cpu"}
            case = {"type": "case", "name": "packed", "kind": "contract", "backend": "torch", "passed": True}
            errors = {"max_abs_err": 1e-6, "max_rel_err": 1e-5, "tolerance": 1e-4}
            return [environment, summary | {"backends": ["torch"]}, case | errors]
        answers = [sample(doc_id, rank) for rank, doc_id in enumerate(spec.doc_ids)]
        return [environment, *answers, *(forced(doc_id) for doc_id in spec.doc_ids), scores(spec.doc_ids)]
