"""The one fixed order in which a lane's questions are looked at. No data is read here."""

from hashlib import sha256

ORDER_SEED = 21467
"""Another seed asks other questions. The number is that of the vLLM pull request whose lanes are the default ones."""


def fixed_order(total: int, count: int, *, seed: int = ORDER_SEED) -> list[int]:
    """The first `count` of the shuffled doc ids 0 … `total` - 1.

    gsm8k's file begins with easier questions, so its head is no fair sample of it. The shuffle is Fisher and Yates's
    over sha256, so that no random number library, platform or Python version can change it; a shorter order is always
    the beginning of a longer one.

    Raises:
        ValueError: if `count` is not between 1 and `total`.
    """
    if not 1 <= count <= total:
        raise ValueError(f"cannot ask {count} questions of {total}: ask for 1 to {total}")
    order = list(range(total))
    for place in range(count):
        other = place + _draw(seed, place) % (total - place)
        order[place], order[other] = order[other], order[place]
    return order[:count]


def _draw(seed: int, place: int) -> int:
    """256 uniform bits: the bias of taking them modulo a number of questions is below 2**-200."""
    return int.from_bytes(sha256(f"driftline order {seed} {place}".encode()).digest(), "big")
