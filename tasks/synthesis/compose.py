"""Sampling compositions: how many operators, on what, and which may follow which."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kernelgym.errors import UsageError
from kernelgym.tasks.synthesis import contractions, losses, pointwise, reductions
from kernelgym.tasks.synthesis.composition import Composition
from kernelgym.tasks.synthesis.draft import Draft
from kernelgym.tasks.synthesis.operator import Operator
from kernelgym.tasks.synthesis.values import BATCH, Dim, Layout, Value

__all__ = ["CUDA_AGENT_LENGTHS", "OPERATORS", "compose", "compositions"]

OPERATORS: tuple[Operator, ...] = (
    *pointwise.OPERATORS,
    *contractions.OPERATORS,
    *reductions.OPERATORS,
    *losses.OPERATORS,
)
"""The catalogue."""

CUDA_AGENT_LENGTHS: tuple[float, ...] = (204, 5026, 457, 168, 74)
"""How many of CUDA-Agent-Ops-6K's tasks have 1, 2, 3, 4 and 5 operators from torch."""

# What a task is likely to be about comes first more often; other families weigh 1.
_START_WEIGHT = {
    "linear": 3.0,
    "matmul": 2.5,
    **{f"convolution{rank}d": 3.0 for rank in (1, 2, 3)},
    **{f"transposed{rank}d": 2.0 for rank in (1, 2, 3)},
    **dict.fromkeys(("arithmetic", "parameter", "gating", "rectifier", "distance", "loss"), 0.5),
}

# Twice in a row they undo, repeat or absorb one another.
_NOT_TWICE = frozenset(
    {
        "rectifier",
        "softmax",
        "normalisation",
        "parameter",
        "pooling",
        "resampling",
        "scan",
        "distance",
    }
)

_BATCHES = (4, 5, 6, 8)
_FULL_BATCH = 16

_LAYOUT_WEIGHTS = {
    Layout.MATRIX: 5,
    Layout.SEQUENCE: 4,
    Layout.SIGNAL: 3,
    Layout.IMAGE: 6,
    Layout.VOLUME: 3,
}

# Preset name -> extents at (full, small) to draw from. Small ones keep a tail behind any block.
_EXTENTS = {
    "features": (
        (512, 48),
        (1024, 40),
        (2048, 56),
        (3000, 60),
        (4096, 72),
        (8192, 80),
        (16384, 96),
    ),
    "sequence_length": ((128, 20), (256, 24), (500, 28), (512, 24), (1024, 32), (2048, 36)),
    "sequence_features": ((256, 40), (384, 48), (512, 40), (768, 56), (1024, 64), (2048, 72)),
    "in_channels": ((8, 8), (16, 8), (32, 16), (48, 8), (64, 16), (96, 24), (128, 16)),
    "length": ((1024, 64), (4096, 72), (10000, 80), (16384, 96), (65536, 90)),
    "side": ((28, 16), (56, 18), (64, 20), (100, 18), (128, 20), (224, 24), (256, 22), (384, 24)),
    "depth": ((8, 8), (16, 9), (24, 10), (32, 10)),
    "volume_side": ((16, 10), (32, 12), (48, 11), (64, 12)),
}


def compose(rng: random.Random, lengths: tuple[float, ...] = CUDA_AGENT_LENGTHS) -> Composition:
    """Draws one composition.

    Args:
        rng: Determines it.
        lengths: Weights of 1, 2, … operators, at most 5.

    Raises:
        UsageError: The weights are not 1 to 5 numbers of which one is above 0.
    """
    if not 1 <= len(lengths) <= 5 or min(lengths) < 0 or not sum(lengths) > 0:
        raise UsageError(
            f"lengths: expected weights of 1 to at most 5 operators, one above 0, got {lengths!r}"
        )
    wanted = rng.choices(range(1, len(lengths) + 1), lengths)[0]
    while True:
        draft = Draft(rng)
        _start(draft)
        layout = draft.value.layout
        chosen: list[Operator] = []
        options: list[tuple[str, ...]] = []
        while len(chosen) < wanted and (operator := _next(draft, chosen, wanted)) is not None:
            operator.apply(draft)
            chosen.append(operator)
            options.append(tuple(draft.options))
            draft.options.clear()
        if len(chosen) == wanted:
            return Composition(
                operators=tuple(operator.name for operator in chosen),
                families=tuple(operator.family for operator in chosen),
                layout=layout,
                options=tuple(options),
                presets=draft.presets,
                constants=draft.constants,
                inputs=tuple(draft.inputs),
                init=tuple(draft.init),
                forward=tuple(draft.forward),
            )


def compositions(
    seed: int, lengths: tuple[float, ...] = CUDA_AGENT_LENGTHS, start: int = 0
) -> Iterator[tuple[int, Composition]]:
    """The endless sequence of a seed's numbered candidates, none depending on another."""
    index = start
    while True:
        yield index, compose(random.Random(f"kernelgym {seed} {index}"), lengths)
        index += 1


def _start(draft: Draft) -> None:
    rng = draft.rng
    layout = rng.choices(list(_LAYOUT_WEIGHTS), list(_LAYOUT_WEIGHTS.values()))[0]

    def dim(name: str, extents: str) -> Dim:
        return draft.dim(name, *rng.choice(_EXTENTS[extents]))

    batch = draft.dim(BATCH, _FULL_BATCH, rng.choice(_BATCHES))
    names = {
        Layout.MATRIX: (("in_features", "features"),),
        Layout.SEQUENCE: (("sequence_length",) * 2, ("in_features", "sequence_features")),
        Layout.SIGNAL: (("in_channels",) * 2, ("length",) * 2),
        Layout.IMAGE: (("in_channels",) * 2, ("height", "side"), ("width", "side")),
        Layout.VOLUME: (
            ("in_channels",) * 2,
            ("depth",) * 2,
            ("height", "volume_side"),
            ("width", "volume_side"),
        ),
    }[layout]
    draft.start(Value(layout, (batch, *(dim(*pair) for pair in names))))


def _next(draft: Draft, chosen: list[Operator], wanted: int) -> Operator | None:
    """Draws the operator that follows: its family first, so that long families do not crowd."""
    last = len(chosen) == wanted - 1
    families: dict[str, list[Operator]] = {}
    for operator in OPERATORS:
        if (operator.last and not last) or not operator.accepts(draft.value):
            continue
        if chosen and (
            operator.name == chosen[-1].name
            or (operator.family == chosen[-1].family and operator.family in _NOT_TWICE)
        ):
            continue
        families.setdefault(operator.family, []).append(operator)
    if not families:
        return None
    weights = [1.0 if chosen else _START_WEIGHT.get(family, 1.0) for family in families]
    family = draft.rng.choices(list(families), weights)[0]
    return draft.rng.choice(families[family])
