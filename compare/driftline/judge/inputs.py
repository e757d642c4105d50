"""What went into a judgement, as one digest: a verdict that is computed again from the same inputs has the same one."""

import hashlib
import json
from typing import Final

from driftline.evidence import ArmEvidence, ArmFailure, RunEvidence

METHOD_VERSION: Final = "2"
"""Rises with every change that could turn one verdict into another."""


def inputs_hash(evidence: RunEvidence) -> str:
    """sha256 over everything a verdict depends on: commits, margin, lanes, samples, checks."""
    digest = hashlib.sha256()
    for part in (METHOD_VERSION, evidence.base_sha, evidence.head_sha, repr(evidence.margin)):
        digest.update(part.encode() + b"\0")
    for lane in evidence.lanes:
        digest.update(lane.lane.model_dump_json(exclude={"confirm"}).encode())
        digest.update(json.dumps([lane.identical, lane.unreachable]).encode())
        digest.update(lane.noise.model_dump_json().encode() if lane.noise else b"-")
        for arm in (lane.base, lane.head, *(lane.fresh or ())):
            _add_arm(digest, arm)
    for name, check in sorted(evidence.checks.items()):
        digest.update(f"{name}{check!r}".encode())
    if evidence.suites is not None:
        for name, suite in sorted(evidence.suites.items()):
            digest.update(f"{name}{suite!r}".encode())
    return digest.hexdigest()


def _add_arm(digest: "hashlib._Hash", arm: ArmEvidence) -> None:
    if arm is None or isinstance(arm, ArmFailure):
        digest.update(repr(arm).encode())
        return
    digest.update(json.dumps([arm.must_match, arm.recorded, arm.expected_doc_ids], sort_keys=True).encode())
    # Sorted, since JSON columns keep no order of keys: the same scores must give the same digest.
    scores = arm.scores.model_dump(mode="json") if arm.scores else None
    digest.update(json.dumps(scores, sort_keys=True).encode())
    if arm.vouched is not None:
        digest.update(arm.vouched.import_id.bytes)
    for sample in sorted(arm.samples, key=lambda each: each.doc_id):
        text = [
            sample.doc_id, sample.rank, sample.doc_hash, sample.prompt_hash, sample.target_hash, sample.target,
            sample.response, sample.finish_reason, sample.left_truncated,
        ]  # fmt: skip
        digest.update(json.dumps(text).encode())
        digest.update(sample.logprobs or b"-")
    for forced in sorted(arm.forced_only, key=lambda each: each.doc_id):
        digest.update(str(forced.doc_id).encode() + b"\0" + forced.logprobs)
