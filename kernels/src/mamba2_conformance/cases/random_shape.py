"""The properties at shapes that nobody chose: seeded, so that every run and both arms meet the same ones. GPU only, for
an interpreter takes seconds for each; this project's own kernels meet others in its tests, on a CPU as well."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from mamba2_conformance import properties
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.deviation import Deviation
from mamba2_conformance.draw import ScanShape

SEEDS = range(16)
LONGEST = 300
"""Tokens of a sequence: over the largest chunk, so that states are passed on."""

Check = Callable[[Subject, ScanShape, Random], Sequence[Deviation]]


def cases() -> Iterator[Case]:
    for seed in SEEDS:
        shape = shape_of(Random(seed))  # noqa: S311 - it chooses shapes
        yield property_case(seed, "packed", shape, packed)
        yield property_case(seed, "permuted", shape, permuted)
        yield property_case(seed, "repeated", shape, repeated)
        yield property_case(seed, "split", shape, split, carries=True)


def property_case(seed: int, name: str, shape: ScanShape, check: Check, *, carries: bool = False) -> Case:
    def put(subject: Subject) -> Sequence[Deviation]:
        return check(subject, shape, Random(seed))  # noqa: S311

    about = "carried_state" if carries or "initial_states" in shape.options else "packing"
    return Case(f"{about}/random_{seed}_{name}", str(shape), put, needs_gpu=True)


def shape_of(random: Random) -> ScanShape:
    """No empty sequence and none of one token, for a split cuts each of them."""
    groups = random.choice([1, 2, 4])
    options = [name for name in ("initial_states", "D", "z", "dt_bias") if random.random() < 0.5]
    return ScanShape(
        tuple(random.randint(2, LONGEST) for _ in range(random.randint(1, 6))),
        random.choice([16, 32, 64, 128, 256]),
        heads=groups * random.choice([1, 2, 3]),
        head_dim=random.choice([16, 24, 32, 64]),
        state_size=random.choice([16, 32, 64, 128]),
        groups=groups,
        options=frozenset(options),
        dt_softplus=random.random() < 0.5,
    )


def packed(subject: Subject, shape: ScanShape, random: Random) -> Sequence[Deviation]:
    return properties.packed_equals_alone(subject, shape)


def permuted(subject: Subject, shape: ScanShape, random: Random) -> Sequence[Deviation]:
    return properties.permuted_alike(subject, shape, random.sample(range(len(shape.lens)), len(shape.lens)))


def repeated(subject: Subject, shape: ScanShape, random: Random) -> Sequence[Deviation]:
    return properties.repeated_to_the_bit(subject, shape)


def split(subject: Subject, shape: ScanShape, random: Random) -> Sequence[Deviation]:
    return properties.split_equals_whole(subject, shape, [random.randint(1, length - 1) for length in shape.lens])
