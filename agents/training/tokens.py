"""Tokens: what the small policy reads and writes, one vocabulary for both.

An episode is one sequence::

    start  k0 family=rows size0=7 size1=9 team=warp block=64  …  left=3
    k0 block=64 run  outcome=correct reason=none eager=1 compile=0 left=2
    k0 team=block run  …

The program's kernels come first, with their sizes and the schedule that holds before anything is
set; then turns: a script, and what came of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelgym.agents.kernels.contraction import ProductKernel
from kernelgym.agents.kernels.kernel import Kernel
from kernelgym.agents.kernels.rows import RowKernel
from kernelgym.agents.training.script import ASSIGNMENTS, KERNELS, RUN, STOP, Schedules
from kernelgym.errors import UsageError
from kernelgym.judge.reasons import REASONS
from kernelgym.judge.verdict import Outcome, Speedup, Verdict

__all__ = ["ACTIONS", "PAD", "VOCABULARY", "action_ids", "encode", "feedback", "prompt", "words"]

MAX_TURNS = 16

ACTIONS = (*KERNELS, *ASSIGNMENTS, RUN, STOP)
"""The words that a policy may say; the first of the vocabulary."""

_BUCKETS = range(-8, 9)  # half octaves of a speedup
_FAMILIES = ("pointwise", "rows", "product", "window", "scan")
_CLASSES = tuple(sorted({reason.partition(".")[0] for reason in REASONS}))

VOCABULARY = (
    *ACTIONS,
    "pad",
    "start",
    *(f"family={family}" for family in _FAMILIES),
    *(f"size{place}={bits}" for place in range(3) for bits in range(41)),
    *(f"outcome={outcome.value}" for outcome in Outcome),
    "outcome=invalid",
    *(f"reason={name}" for name in ("none", *_CLASSES)),
    *(f"{base}={bucket}" for base in ("eager", "compile") for bucket in ("none", *_BUCKETS)),
    *(f"left={turns}" for turns in range(MAX_TURNS + 1)),
)
"""Every token; a token's id is its place here."""

_IDS = {token: place for place, token in enumerate(VOCABULARY)}
PAD = _IDS["pad"]


def encode(tokens: Sequence[str]) -> list[int]:
    """Ids of tokens.

    Raises:
        UsageError: A token is not in the vocabulary.
    """
    try:
        return [_IDS[token] for token in tokens]
    except KeyError as error:
        raise UsageError(f"token: expected one of the vocabulary, got {error}") from error


def words(ids: Sequence[int]) -> tuple[str, ...]:
    """Tokens of ids."""
    return tuple(VOCABULARY[place] for place in ids)


def action_ids(assignments: Sequence[str], kernels: int = len(KERNELS)) -> list[int]:
    """Ids of the words of a smaller language: these assignments, and the first few kernels.

    Raises:
        UsageError: A word is not an assignment.
    """
    for word in assignments:
        if word not in ASSIGNMENTS:
            raise UsageError(f"assignments: expected KNOB=VALUE as in a script, got {word!r}")
    return encode((*KERNELS[:kernels], *assignments, RUN, STOP))


def prompt(schedules: Schedules, turns: int) -> list[int]:
    """An episode's first tokens: the program, and how many turns there are.

    Raises:
        UsageError: More turns than there are tokens for.
    """
    if not 1 <= turns <= MAX_TURNS:
        raise UsageError(f"turns: expected 1 to {MAX_TURNS}, got {turns}")
    tokens = ["start"]
    for word, (name, kernel) in zip(KERNELS, schedules.kernels, strict=False):
        tokens += [word, f"family={kernel.family}"]
        tokens += [f"size{place}={_bits(size)}" for place, size in enumerate(_sizes(kernel))]
        for full, value in schedules.default:
            owner, _, knob = full.rpartition(".")
            if owner == name:
                tokens.append(f"{knob}={value}")
    return encode([*tokens, f"left={turns}"])


def feedback(verdict: Verdict | None, left: int) -> list[int]:
    """What came of a script: five tokens.

    Args:
        verdict: The judge's, or None for a script that could not be applied.
        left: Turns that are left.
    """
    if verdict is None:
        return encode(
            ["outcome=invalid", "reason=none", "eager=none", "compile=none", f"left={left}"]
        )
    timing = verdict.timing if verdict.correct else None
    return encode(
        [
            f"outcome={verdict.outcome.value}",
            f"reason={verdict.reason.partition('.')[0] or 'none'}",
            f"eager={_bucket(timing.speedup_eager if timing else None)}",
            f"compile={_bucket(timing.speedup_compile if timing else None)}",
            f"left={left}",
        ]
    )


def _bucket(speedup: Speedup | None) -> str:
    if speedup is None or speedup.value <= 0:
        return "none"
    bucket = round(2 * math.log2(speedup.value))
    return str(min(max(bucket, _BUCKETS[0]), _BUCKETS[-1]))


def _bits(size: int) -> int:
    return min(round(math.log2(max(size, 1))), 40)


def _sizes(kernel: Kernel) -> tuple[int, ...]:
    """Up to three extents that a kernel's speed depends on."""
    if isinstance(kernel, RowKernel):
        return kernel.rows.count, kernel.rows.length
    if isinstance(kernel, ProductKernel):
        return kernel.m, kernel.n, kernel.k
    return (max(store.buffer.numel for store in kernel.stores),)
