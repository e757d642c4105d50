"""The pages in Chromium: the policy forbids nothing they need, plots load, news arrive, and a phone is wide enough."""

from typing import Any

from scripted.tab import OVERFLOWS

PLOTS_LOADED = "[...document.querySelectorAll('.plot img')].map((img) => img.complete && img.naturalWidth > 0)"


def test_the_run_page_is_whole(site, store, rich_view, tab, pictures):
    run_id = store(rich_view)
    for name, width, dark in (("run", 1240, False), ("run-dark", 1240, True), ("run-phone", 400, False)):
        tab.show(f"{site.base_url}/runs/{run_id}", width=width, dark=dark)
        assert tab.ask(PLOTS_LOADED) == [True, True]
        assert tab.ask("getComputedStyle(document.querySelector('.headline')).borderLeftWidth") == "8px"  # styled
        assert not tab.ask(OVERFLOWS)
        tab.picture(pictures / f"{name}.png")
        assert (pictures / f"{name}.png").stat().st_size > 20_000
    tab.show(f"{site.base_url}/runs/{run_id}/intervals.svg")  # by itself, under its own policy
    assert tab.ask("document.querySelectorAll('circle').length") >= 12


def test_hostile_text_runs_nothing(site, store, hostile_view, tab):
    tab.show(f"{site.base_url}/runs/{store(hostile_view)}?cases=all")
    assert tab.ask("document.querySelectorAll('script').length") == 1
    assert tab.ask("document.querySelectorAll('main img').length") == 2  # the plots and nothing else
    assert "<script>alert(1)</script>" in tab.ask("document.querySelector('h1').textContent")


def test_news_arrive_without_a_reload(site, world, tab, pictures):
    run_id = world.submit()
    messages = world.messages()
    tab.show(f"{site.base_url}/runs/{run_id}")
    tab.ask("document.body.dataset.kept = 'yes'")
    claim = world.worker.claim(messages.pop())
    world.worker.report(claim, [{"type": "progress", "phase": "compile", "done": 2, "total": 9}])
    tab.wait_for("document.querySelector('progress[max=\"9\"]')?.value === 2")
    tab.picture(pictures / "running.png")
    world.worker.report(claim, world.worker.lines(claim.spec), sequence=1)
    world.worker.finish(claim, batches=2)
    for message in messages:
        world.worker.work(message)
    world.run_until_done(run_id)
    tab.wait_for("document.querySelector('#live [data-state]').dataset.state === 'finished'")
    assert "accuracy" in tab.ask("document.querySelector('.headline').textContent")
    assert tab.ask("document.body.dataset.kept") == "yes"
    tab.wait_for("document.getElementById('live-note').textContent === 'This run has ended.'")


def test_the_list_and_the_answers_fit_a_phone(site, world, store, rich_view, tab, pictures):
    run_id = world.submit(name="chunk the state pass")
    worker = type(world.worker)(world.client, name="w1")
    say = worker.lines
    worker.lines = lambda spec: [line | _other_answer(spec, line) for line in say(spec)]
    world.run_until_done(run_id, worker)
    store(rich_view)
    world.submit(name="still to come")
    for name, address in (("list", "/"), ("answers", f"/runs/{run_id}/samples")):
        for width in (400, 1240):
            tab.show(f"{site.base_url}{address}", width=width)
            assert not tab.ask(OVERFLOWS)
            tab.picture(pictures / f"{name}-{width}.png")


def _other_answer(spec: Any, line: dict[str, Any]) -> dict[str, Any]:
    if line["type"] != "sample" or spec.arm == "base":
        return {}
    return {"response": f"She has {line['doc_id']} eggs and sells half of them, so #### 42"}
