"""What the canary is for: chunked prefill changes nothing, and a spoilt carried state shows in every text."""

import pytest
import torch
from generate import read_problems
from scorer import HERE, fault, generate, load, logprobs, prompts, tile_decay_scan
from transformers import AutoTokenizer
from transformers.models.granitemoehybrid import modeling_granitemoehybrid as modeling

PROBLEMS = 6


@pytest.mark.parametrize(
    ("name", "cost"),
    # Texts that lose log-probability, and the least mean loss. plamo2's attention follows two Mamba layers and sees who
    # had what: a spoilt state costs it less, but never nothing.
    [
        ("model", {"dropped": (PROBLEMS, 0.05), "tile decay": (PROBLEMS, 0.05)}),
        ("plamo2", {"dropped": (PROBLEMS, 0.05), "tile decay": (PROBLEMS - 1, 0.01)}),
    ],
)
def test_schedules_agree_and_faults_show_in_v1_alone(name: str, cost: dict[str, tuple[int, float]]) -> None:
    model = load(HERE / name, torch.float32, "cpu")
    tokenizer = AutoTokenizer.from_pretrained(HERE / name, trust_remote_code=True)
    test = read_problems(HERE / "data/test.jsonl")[:PROBLEMS]
    rows = prompts(read_problems(HERE / "data/train.jsonl"), test)
    whole = generate(model, tokenizer, rows, chunk=None, batch=PROBLEMS)
    assert generate(model, tokenizer, rows, chunk=64, batch=PROBLEMS) == whole
    assert all("#### " in text for text in whole)
    full = [row + " " + p.answer for row, p in zip(rows, test, strict=True)]
    clean = logprobs(model, tokenizer, "V0", full)
    torch.testing.assert_close(logprobs(model, tokenizer, "V1", full), clean, atol=1e-4, rtol=0)
    for spoiling, (texts, least) in cost.items():
        torch.testing.assert_close(logprobs(model, tokenizer, f"V0 {spoiling}", full), clean, atol=0, rtol=0)
        spoilt = logprobs(model, tokenizer, f"V1 {spoiling}", full)
        assert int((spoilt < clean - 0.005).sum()) >= texts
        assert (clean - spoilt).mean() > least


def test_tile_decay_spoils_only_what_the_state_adds_past_the_first_tile() -> None:
    g = torch.Generator().manual_seed(1)
    x, state = torch.randn(1, 40, 2, 4, generator=g), torch.randn(1, 2, 4, 8, generator=g)
    B, C = torch.randn(2, 1, 40, 1, 8, generator=g)
    dt, A = torch.randn(1, 40, 2, generator=g), torch.tensor([-0.1, -1.0])
    keep = {"chunk_size": 64, "dt_bias": torch.zeros(2), "dt_softplus": True, "return_final_states": True}
    with fault("V1", modeling):
        right, end = modeling.mamba2_chunk_scan(x, dt, A, B, C, initial_states=state, **keep)
        spoilt, same_end = tile_decay_scan(modeling.mamba2_chunk_scan)(x, dt, A, B, C, initial_states=state, **keep)
        fresh, _ = modeling.mamba2_chunk_scan(x, dt, A, B, C, **keep)
    torch.testing.assert_close(end, same_end, atol=0, rtol=0)
    torch.testing.assert_close(right[:, :16], spoilt[:, :16])
    step = torch.nn.functional.softplus(dt)[0, :, 1]
    skipped = torch.exp(-step[:16].sum())  # row 20 lies in the second tile: the first tile's decay is left out
    torch.testing.assert_close((spoilt - fresh)[0, 20, 1] * skipped, (right - fresh)[0, 20, 1], atol=1e-5, rtol=1e-3)
