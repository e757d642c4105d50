"""Many reports at once: of both arms, of one worker, the same batch twice, and a claim raced by two messages."""

from concurrent.futures import ThreadPoolExecutor

from driftline_service.database import result_queries


def test_both_arms_report_the_same_questions_at_once(world):
    claims = [world.worker.claim(message) for message in world.evaluating(questions=10)]
    batches = [
        (claim, [world.sample(doc_id, rank), world.forced(doc_id)], rank)
        for rank in range(10)
        for claim in claims
        for doc_id in [claim.spec.doc_ids[rank]]
    ]

    def report(claim):
        mine = [batch for batch in batches if batch[0] is claim]
        return [world.worker.report(*batch).status_code for batch in mine for _ in range(2)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(report, [*claims, *claims]))
    assert {status for statuses in answers for status in statuses} <= {200, 409}  # 409: the twin thread is behind
    for claim in claims:
        with world.sessions() as session:
            assert len(result_queries.samples_of(session, claim.attempt_id)) == 10


def test_of_two_claims_at_once_one_is_given(world):
    world.submit()
    first = world.messages()[0]
    world.clock.pass_seconds(31)
    second = next(message for message in world.messages() if message[1] == first[1])
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda message: world.worker.try_claim(*message[1:]).status_code, (first, second)))
    assert sorted(answers) == [200, 409]
