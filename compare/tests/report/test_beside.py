"""The sentences beside a verdict say what was measured, and nothing of what was not."""

from driftline.contracts.beside import Distribution, Divergence, FormatDrift, InvalidAnswers, NoiseFloor
from driftline.contracts.report import LaneView
from driftline.report.beside import remarks

WORDS = Distribution(questions=48, lowest=0, lower_quartile=5, median=12, upper_quartile=40, highest=90)
SEEN = Divergence(
    questions=300, moved_questions=300, largest_move=3.2, text_diverged=48, first_divergent_token=65, forced_questions=300,
    first_tokens=WORDS.model_copy(update={"questions": 300}), first_words=WORDS, text_interval=(0.1258, 0.1994),
    moved_interval=(0.9901, 1.0), text_beyond_noise=True, moved_beyond_noise=False,
)  # fmt: skip
FLOOR = NoiseFloor(
    pairs=2, questions=600, flips=3, text_diverged=9, bit_identical=False, unstable=False, forced_questions=600,
    moved_questions=590, flip_interval=(0.0013, 0.0129), text_interval=(0.0078, 0.0262), moved_interval=(0.97, 0.99),
    first_words=Distribution(questions=1, lowest=7, lower_quartile=7, median=7, upper_quartile=7, highest=7),
)  # fmt: skip
FORM = FormatDrift(
    questions=300, strict_only_lost=20, strict_only_gained=1, strict_only_p=2e-5, drifted=True,
    invalid=[InvalidAnswers(filter="strict-match", base=3, head=21, appeared=19, vanished=1, p_value=4e-5)],
)  # fmt: skip


def lane(**given: object) -> LaneView:
    values: dict[str, object] = {
        "name": "canary V1", "model": "canary", "engine": "hf", "mode": "V1", "mode_label": "V1", "backend": "torch",
        "task": "gsm8k", "verdict": "equivalent", "confirmed": "no", "unstable": False, "reasons": [], "comparisons": [],
        "scores": [], "health": [], "divergence": None, "noise": None, "key_differences": [], "changed_answers": None,
    }  # fmt: skip
    return LaneView.model_validate(values | given)


def told(**given: object) -> dict[str, str]:
    return dict(remarks(lane(**given)))


def test_nothing_measured_says_nothing() -> None:
    assert told() == {}


def test_divergence_alone_is_told_with_its_interval_and_places() -> None:
    assert told(divergence=SEEN) == {
        "responses": "48 of 300 (16.0 %; 90 % interval 12.6 % to 19.9 %) responses differ in text, first at word 12 in the "
        "median (half of them 5 to 40, all 0 to 90)",
        "tokens": "300 of 300 (100.0 %; 90 % interval 99.0 % to 100.0 %) questions have a teacher-forced token moved by more "
        "than 0.001 nats, the largest by 3.2, first at token 12 in the median (half of them 5 to 40, all 0 to 90)",
    }


def test_against_the_lanes_own_noise() -> None:
    found = told(divergence=SEEN, noise=FLOOR)
    assert found["responses"].endswith(
        "; between evaluations of one commit 9 of 600 (1.5 %; 90 % interval 0.8 % to 2.6 %), first at word 7: more than this "
        "lane's own noise"
    )
    assert found["tokens"].endswith(
        "; between evaluations of one commit 590 of 600 (98.3 %; 90 % interval 97.0 % to 99.0 %): not shown to be more than "
        "this lane's own noise"
    )
    assert found["noise floor"] == (
        "3 of 600 (0.5 %; 90 % interval 0.1 % to 1.3 %) answers turned right or wrong in 2 pairs of evaluations of one commit"
    )


def test_bit_identical_and_unstable_floors() -> None:
    same = FLOOR.model_copy(update={"bit_identical": True, "pairs": 1})
    assert told(noise=same)["noise floor"] == (
        "1 pair of evaluations of one commit, identical bit for bit: any difference is the commit's"
    )
    assert told(noise=FLOOR.model_copy(update={"unstable": True}))["noise floor"].endswith(
        "; the lane differs from itself"
    )


def test_the_form_is_told_as_drift_or_as_none() -> None:
    sentence = "20 lost and 1 gained under strict-match alone; nothing extracted strict-match 3 on base and 21 on head"
    assert told(format_drift=FORM)["form"] == f"format drift: {sentence}"
    assert told(format_drift=FORM.model_copy(update={"drifted": False}))["form"] == f"{sentence}: no format drift"


def test_a_view_stored_by_an_earlier_release_still_reads() -> None:
    old = {
        "questions": 300,
        "moved_questions": 5,
        "largest_move": 0.01,
        "text_diverged": 2,
        "first_divergent_token": 65,
    }
    floor = {"pairs": 1, "questions": 300, "flips": 0, "text_diverged": 0, "bit_identical": False, "unstable": False}
    found = told(divergence=old, noise=floor)
    assert found["responses"] == "2 of 300 responses differ in text"
    assert found["tokens"].endswith("the largest by 0.01, first at token 65 in the median")
    assert found["noise floor"] == "0 of 300 answers turned right or wrong in 1 pair of evaluations of one commit"


def test_without_log_probabilities_no_share_of_tokens_is_made_up() -> None:
    bare = SEEN.model_copy(
        update={"forced_questions": 0, "moved_questions": 0, "moved_interval": None, "first_tokens": None}
    )
    assert told(divergence=bare)["tokens"] == "no log-probabilities to compare"
