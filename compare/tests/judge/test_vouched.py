"""A base arm that a person reported: only what it states is compared, what it does not say stays unknown, never green."""

from uuid import UUID

from driftline.contracts.words import Verdict
from driftline.evidence import Vouched
from driftline.judge.inputs import inputs_hash
from driftline.judge.run import judge

KEY = {"gpu_type": "cpu", "task": "gsm8k_canary", "num_fewshot": "3"}
WORD = Vouched(UUID(int=7), "Ada", "Root")


def reported(build, right, **key):
    """An evaluation as an import gives it."""
    made = build.evaluation(right, must_match=key or {"task": "gsm8k_canary"}, recorded={"none": "such"})
    samples = tuple(
        build.replace(each, logprobs=None, finish_reason=None, left_truncated=None, prompt_tokens=None)
        for each in made.samples
    )
    return build.replace(made, samples=samples, recorded={}, vouched=WORD)


def judged(build, base, wrong=()):
    head = build.evaluation(build.answers(wrong=wrong), must_match=KEY)
    return judge(build.run(build.evidence(build.lane(), base, head)))


def test_what_is_not_stated_blocks_nothing_and_is_vouched_for(build):
    lane = judged(build, reported(build, build.answers())).lanes[0]
    assert lane.key_differences == []
    assert [cell.verdict for cell in lane.comparisons] == [
        Verdict.EQUIVALENT,
        Verdict.EQUIVALENT,
        Verdict.NOT_COMPARABLE,
    ]
    assert lane.verdict is Verdict.NOT_COMPARABLE
    assert any(str(WORD.import_id) in reason and "Ada" in reason and "Root" in reason for reason in lane.reasons)
    base, head = lane.health
    assert (base.length_stops, base.left_truncated, base.imported_from) == (None, None, WORD.import_id)
    assert (head.length_stops, head.left_truncated, head.imported_from) == (0, 0, None)


def test_what_is_stated_and_differs_blocks(build):
    lane = judged(build, reported(build, build.answers(), task="gsm8k_canary", num_fewshot="5")).lanes[0]
    assert [(each.field, each.base, each.head, each.blocks) for each in lane.key_differences] == [
        ("num_fewshot", "5", "3", True)
    ]
    assert lane.comparisons == []
    assert any("the arms differ in num_fewshot" in reason for reason in lane.reasons)


def test_a_drop_is_called_and_an_equal_run_is_never_green(build):
    wrong = tuple(index for index in range(1, 90) if index % 3 != 0)
    view = judged(build, reported(build, build.answers()), wrong=wrong)
    assert (view.verdict, view.headline.color) == (Verdict.REGRESSED, "red")
    assert judged(build, reported(build, build.answers())).headline.color == "neutral"


def test_whose_import_it_is_goes_into_the_inputs(build):
    head = build.evaluation(build.answers(), must_match=KEY)
    base = reported(build, build.answers())
    other = build.replace(base, vouched=build.replace(WORD, import_id=UUID(int=8)))
    hashes = {inputs_hash(build.run(build.evidence(build.lane(), each, head))) for each in (base, other)}
    assert len(hashes) == 2
